"""Work that may not come back in time."""

from __future__ import annotations

import threading

import pytest

from mtpp.host.deadline import Deadline
from mtpp.host.overrun import Overrun, TimedThread, run_in_time


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
    with pytest.raises(Overrun) as overrun:
        thread.run(release.wait, past(), lambda: "time-limit")
    assert overrun.value.stopped == "time-limit"
    assert thread.run(threading.current_thread, Deadline(), lambda: None).is_alive()
    release.set()
    thread.close()


def test_one_thread_does_all_the_work_that_comes_back() -> None:
    """What belongs to a thread, such as a solver's process, is kept from one piece of work to the next."""
    thread = TimedThread()
    first, second = (thread.run(threading.get_ident, Deadline(), lambda: None) for _ in range(2))
    thread.close()
    assert first == second != threading.get_ident()
