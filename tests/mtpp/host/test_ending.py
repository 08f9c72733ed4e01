"""Early ends of work: reasons in their order, and work that does not come back in time."""

from __future__ import annotations

import threading

import pytest

from mtpp.host import ending
from mtpp.host.deadline import Deadline
from mtpp.host.ending import EndedEarly, TimedThread, reason_to_end, run_in_time


def past() -> Deadline:
    """Return a deadline that is over."""
    return Deadline(-100.0)


def test_work_in_time_gives_its_result() -> None:
    """What the work returns comes back."""
    assert run_in_time(lambda: 7, Deadline(), lambda: None) == 7


def test_an_error_of_the_work_is_raised() -> None:
    """An exception in the thread is raised where the result is waited for."""

    def fails() -> None:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        run_in_time(fails, Deadline(), lambda: None)


def test_work_that_does_not_come_back_is_given_up() -> None:
    """Past its deadline the caller goes on, and the next work gets another thread."""
    release, thread = threading.Event(), TimedThread()
    with pytest.raises(EndedEarly) as ended:
        thread.run(release.wait, past(), lambda: "time-limit")
    assert ended.value.stopped == "time-limit"
    assert thread.run(threading.current_thread, Deadline(), lambda: None).is_alive()
    release.set()
    thread.close()


def test_one_thread_does_all_the_work_that_comes_back() -> None:
    """What belongs to a thread, such as a solver's process, is kept from one piece of work to the next."""
    thread = TimedThread()
    first, second = (thread.run(threading.get_ident, Deadline(), lambda: None) for _ in range(2))
    thread.close()
    assert first == second != threading.get_ident()


def test_a_signal_counts_before_memory_and_memory_before_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where several reasons hold, one is named."""
    assert reason_to_end(Deadline(), lambda: False) is None
    assert reason_to_end(past(), lambda: False) == "time-limit"
    monkeypatch.setattr(ending, "short_of_memory", lambda: True)
    assert reason_to_end(past(), lambda: False) == "memory-limit"
    assert reason_to_end(past(), lambda: True) == "interrupted"


def test_an_allocation_that_fails_is_an_early_end() -> None:
    """The reason is memory, and the thread serves the next work."""
    thread = TimedThread()

    def takes_too_much() -> None:
        raise MemoryError

    with pytest.raises(EndedEarly) as ended:
        thread.run(takes_too_much, Deadline(), lambda: None)
    assert ended.value.stopped == "memory-limit"
    assert thread.run(lambda: 7, Deadline(), lambda: None) == 7
    thread.close()
