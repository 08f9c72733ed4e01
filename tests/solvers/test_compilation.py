"""Compilation as others see it: told once, and on no clock of a search."""

from __future__ import annotations

import time

import pytest

from mtpp.host.deadline import Deadline
from mtpp.solvers import compilation
from mtpp.solvers.certify.cells.processes import _Pool, _Post
from mtpp.solvers.compilation import search_clock, tell_watchers, watched_compilation, work_begins, work_ends


def test_whoever_watches_is_told_once() -> None:
    """All who watch at that time hear of it, each once; others, before and afterwards, do not."""
    said: list[str] = []
    tell_watchers()
    with watched_compilation(lambda: said.append("outer")), watched_compilation(lambda: said.append("inner")):
        tell_watchers()
        tell_watchers()
    with watched_compilation(lambda: said.append("unheard")):
        pass
    tell_watchers()
    assert sorted(said) == ["inner", "outer"]


def test_the_clock_of_a_search_stands_still_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of compiling do not count, a kernel that is compiled for another one included, nor do deadlines run."""
    monkeypatch.setattr(compilation._Work, "seconds", 0.0)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    deadline = Deadline(10.0, clock=search_clock)
    begin = search_clock()
    now[0] += 2
    work_begins()
    now[0] += 30
    assert search_clock() - begin == pytest.approx(2)
    work_begins()
    now[0] += 30
    work_ends()
    now[0] += 30
    work_ends()
    assert search_clock() - begin == pytest.approx(2)
    assert deadline.remaining_s() == pytest.approx(8)
    now[0] += 3
    assert search_clock() - begin == pytest.approx(5)
    assert deadline.share(0.5).remaining_s() == pytest.approx(2.5)


def test_cells_in_other_processes_are_not_killed_while_they_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their process says so, it is told here, and from then on they end by themselves."""
    said: list[str] = []
    pool = _Pool(iter(()), 1, 0.0, lambda text: None)
    post = _Post(None, cell=object(), kill_at=1.0)  # type: ignore[arg-type]
    with watched_compilation(lambda: said.append("compiling")):
        assert list(pool._heard(post, "compiling")) == []
    assert post.kill_at is None
    assert said == ["compiling"]
