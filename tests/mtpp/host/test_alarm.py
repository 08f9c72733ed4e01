"""The alarm: strikes inside its block, and nowhere else."""

from __future__ import annotations

import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from mtpp.host.alarm import TimeIsUp, alarm
from mtpp.host.deadline import Deadline


def _work_for_ever() -> None:
    while True:
        pass


def _import_and_work(name: str) -> None:
    import_module(name)
    _work_for_ever()


def test_it_ends_work_that_does_not_look_at_the_clock() -> None:
    """An endless loop ends, and the handler is what it was."""
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeIsUp), alarm(Deadline(0.05)):
        _work_for_ever()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_deadline_that_has_passed_strikes_at_once() -> None:
    """There is no second chance."""
    with pytest.raises(TimeIsUp), alarm(Deadline(-1)):
        _work_for_ever()


def test_an_import_is_finished_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error would be another one: a class that is being made turns what is raised into RuntimeError."""
    text = """
import time

class Field:
    def __set_name__(self, owner, name):
        time.sleep(0.1)

class Options:
    field = Field()
"""
    (tmp_path / "slow_to_import.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TimeIsUp), alarm(Deadline(0.02)):
        _import_and_work("slow_to_import")
    assert "slow_to_import" in sys.modules


def test_work_that_ends_in_time_is_left_alone() -> None:
    """Nothing is raised, inside or afterwards, with a limit or without."""
    for limit_s in (60.0, None):
        with alarm(Deadline(limit_s)):
            total = sum(range(1000))
        assert total == 499_500
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_other_threads_run_as_they_are() -> None:
    """Signals belong to the main thread: the block runs to its end."""
    ended = []

    def work() -> None:
        with alarm(Deadline(0.001)):
            ended.append(sum(range(100_000)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [4_999_950_000]
