"""Cells in processes: what comes out of those that die, hang, break, or are no longer wanted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import unruly_worker
from graph_strategies import chain
from processes import ROOT, environment, gone, until

from mtpp.errors import MtppError
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.certify.cell_state import CellLimits, Certification
from mtpp.solvers.certify.cells import processes
from mtpp.solvers.certify.cells.cell import CertificateCell, Outcome, run_here
from mtpp.solvers.certify.cells.processes import run_in_processes

LIMITS = CellLimits(60.0, Fraction(1), ("simple",))


def cell(label: str, number: int = 0, limits: CellLimits = LIMITS) -> CertificateCell:
    """Return a chain of 10, 20, 30, 40 ms that costs 61 ms in two stages."""
    graph = chain([10, 20, 30, 40], [1, 1, 1], "ms")
    return CertificateCell(number, label, Instance.build(graph, Machine.uniform(2, load_device())), limits)


def outcomes(
    *cells: CertificateCell, at_once: int = 1, interrupted: Callable[[], bool] = lambda: False, grace_s: float = 60.0
) -> list[Outcome[Certification]]:
    """Run the cells to the end."""
    return list(run_in_processes(cells, interrupted, at_once=at_once, grace_s=grace_s))


@pytest.fixture
def unruly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the processes do what the cells' labels say."""
    monkeypatch.setattr(processes, "_COMMAND", unruly_worker.COMMAND)


def test_processes_find_what_this_one_finds() -> None:
    """The same bottlenecks and bounds, whichever process worked at a cell, and each cell once."""
    cells = [cell(f"cell {number}", number) for number in range(5)]
    (here,) = run_here(cells[:1], lambda: False)
    found = sorted(outcomes(*cells, at_once=2), key=lambda outcome: outcome.cell.number)
    assert [outcome.cell.number for outcome in found] == [0, 1, 2, 3, 4]
    for outcome in found:
        assert outcome.finished
        assert outcome.state is not None
        assert here.state is not None
        assert (outcome.state.upper, outcome.state.lower) == (here.state.upper, here.state.lower)
        assert outcome.state.stopped == "target"


def test_cells_are_asked_for_when_there_is_a_process_for_them() -> None:
    """Of ten cells, two more than have ended have been asked for at most."""
    asked = 0

    def endless() -> Iterator[CertificateCell]:
        nonlocal asked
        for number in range(10):
            asked += 1
            yield cell(f"cell {number}", number)

    for ended, _ in enumerate(run_in_processes(endless(), lambda: False, at_once=2)):
        assert asked <= ended + 2


@pytest.mark.usefixtures("unruly")
def test_a_process_that_dies_costs_one_attempt(tmp_path: Path) -> None:
    """The cell is tried again in another process, and the others know nothing of it."""
    marks = tmp_path / "attempts"
    told: list[str] = []
    cells = cell(f"die-once {marks}"), cell("good", 1)
    found = list(run_in_processes(cells, lambda: False, at_once=1, tell=told.append))
    assert told == [f"die-once {marks}: its process was killed by signal 9; trying again"]
    assert marks.read_text() == "xx"
    assert [outcome.finished for outcome in found] == [True, True]


@pytest.mark.usefixtures("unruly")
@pytest.mark.slow
def test_a_cell_that_kills_its_processes_is_given_up(tmp_path: Path) -> None:
    """After two attempts; what they proved is kept, but is not the last word."""
    marks = tmp_path / "attempts"
    given_up, good = sorted(outcomes(cell(f"die {marks}"), cell("good", 1)), key=lambda outcome: outcome.cell.number)
    assert marks.read_text() == "xx"
    assert given_up.problem == "its process was killed by signal 9, 2 times"
    assert not given_up.finished
    assert given_up.state is not None
    assert (given_up.state.upper, given_up.state.stopped) == (61 * 10**9, "interrupted")
    assert good.finished


@pytest.mark.usefixtures("unruly")
def test_memory_that_runs_out_costs_one_attempt_too(tmp_path: Path) -> None:
    """The problem names the exception."""
    marks = tmp_path / "attempts"
    (outcome,) = outcomes(cell(f"exhaust {marks}"))
    assert marks.read_text() == "xx"
    assert outcome.state is None
    assert outcome.problem.startswith("MemoryError")


@pytest.mark.usefixtures("unruly")
def test_bounds_that_contradict_each_other_are_not_tried_again(tmp_path: Path) -> None:
    """A bug is told of once, with both numbers."""
    marks = tmp_path / "attempts"
    (outcome,) = outcomes(cell(f"contradict {marks}"))
    assert marks.read_text() == "x"
    assert "the lower bound 3 (some) is above the bottleneck 2" in outcome.problem


@pytest.mark.slow
@pytest.mark.usefixtures("unruly")
def test_a_cell_that_overruns_is_killed_and_keeps_what_it_proved(tmp_path: Path) -> None:
    """The process and its own child are gone; the state is what was last told."""
    marks = tmp_path / "pids"
    limits = CellLimits(0.5, Fraction(1), ("simple",))
    (outcome,) = outcomes(cell(f"hang {marks}", limits=limits), grace_s=6.0)
    assert outcome.finished
    assert outcome.state is not None
    assert (outcome.state.upper, outcome.state.lower.value) == (61 * 10**9, 61 * 10**9)
    assert outcome.state.stopped == "time-limit"
    assert outcome.state.total_seconds > 0.5
    for pid in map(int, marks.read_text().split()):
        until(lambda pid=pid: gone(pid))


@pytest.mark.usefixtures("unruly")
def test_a_cell_killed_before_its_first_partition(tmp_path: Path) -> None:
    """There is nothing to keep, and the problem says so."""
    (outcome,) = outcomes(cell(f"hang-at-once {tmp_path / 'p'}", limits=CellLimits(0.1, Fraction(1), ())), grace_s=0.5)
    assert outcome.state is None
    assert outcome.problem == "no partition was found in the time"


@pytest.mark.usefixtures("unruly")
def test_what_a_library_prints_is_no_message() -> None:
    """The outcome comes through."""
    (outcome,) = outcomes(cell("chatter"))
    assert outcome.finished


@pytest.mark.usefixtures("unruly")
@pytest.mark.parametrize("verb", ["end-softly", "hang"])
def test_interruption_gives_what_there_is(verb: str, tmp_path: Path) -> None:
    """Of the cell at work the last state, whether its process listens or not; of those to come nothing."""
    marks = tmp_path / "marks"
    first = cell(f"{verb} {marks}")

    def at_work() -> bool:
        return marks.exists() and " " in marks.read_text()

    found = outcomes(first, cell("good", 1), interrupted=at_work, grace_s=3.0 if verb == "hang" else 60.0)
    assert [outcome.cell for outcome in found] == [first]
    assert found[0].state is not None
    assert found[0].state.upper == 61 * 10**9


def test_processes_that_cannot_start_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than being started again for ever."""
    monkeypatch.setattr(processes, "_COMMAND", "import sys; sys.exit(3)")
    with pytest.raises(MtppError, match="exit code 3"):
        outcomes(cell("good"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.slow
def test_processes_die_with_their_parent(number: signal.Signals, tmp_path: Path) -> None:
    """And so do theirs, even where the parent is killed."""
    marks = tmp_path / "pids"
    code = (
        "import sys; sys.path.append('tests/support'); import unruly_worker;"
        "from mtpp.solvers.certify.cells import processes; processes._COMMAND = unruly_worker.COMMAND;"
        "sys.path.append('tests/solvers/certify/cells'); import test_processes as t;"
        f"t.outcomes(t.cell('hang {marks}'))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment())
    until(lambda: marks.exists() and len(marks.read_text().split()) == 2)
    pids = [int(pid) for pid in marks.read_text().split()]
    assert not any(map(gone, pids))
    os.kill(parent.pid, number)
    parent.wait()
    until(lambda: all(map(gone, pids)))
