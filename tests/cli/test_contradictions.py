"""Results that contradict each other end a command with exit code 70 and both values, and without a result."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtpp.cli.main import main
from mtpp.inference.instance import Instance
from mtpp.solvers.limits import Limits, SearchLimits, SearchResult
from mtpp.solvers.partitioners import random
from mtpp.solvers.planners.pfeife import planner

REPORT = "this is a bug in mtpp, please report it with the model"


def code_of(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the command line in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["mtpp", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_partition(
    monkeypatch: pytest.MonkeyPatch, chain_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search that says less than its partition costs."""
    search = random.partition

    def lying(instance: Instance, limits: SearchLimits) -> SearchResult:
        found = search(instance, limits)
        return replace(found, bottleneck=found.bottleneck - 1)

    monkeypatch.setattr(random, "partition", lying)
    file = tmp_path / "plan.json"
    assert code_of(monkeypatch, "partition", chain_file, "-k", "2", "--algorithm", "random", "-o", file) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert "bottleneck of 60999999999 ticks, and its slowest stage costs 61000000000" in said.err
    assert said.err.rstrip().endswith(REPORT)
    assert not file.exists()


def test_plan(
    monkeypatch: pytest.MonkeyPatch, chain_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A planner whose iteration is not that of its passes."""
    plan = planner.plan

    def lying(problem: Any, limits: Limits) -> Any:
        found = plan(problem, limits)
        return replace(found, iteration=found.iteration + 1)

    monkeypatch.setattr(planner, "plan", lying)
    file = tmp_path / "plan.json"
    given = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "2", "-o", file)
    assert code_of(monkeypatch, "plan", chain_file, *given) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert "and replayed it takes" in said.err
    assert REPORT in said.err
    assert not file.exists()


def test_certify_keeps_the_other_cells(
    monkeypatch: pytest.MonkeyPatch, chain_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cell whose results contradict each other has no row; the others have theirs, and the exit code is 70."""
    from mtpp.solvers.certify.cells import processes
    from mtpp.solvers.certify.cells.cell import Outcome

    def outcomes(cells: Any, interrupted: Any, **rest: Any) -> Any:
        for cell in cells:
            if cell.instance.k == 2:
                yield Outcome(cell, None, "the lower bound 3 (some) is above the bottleneck 2", contradiction=True)
            else:
                yield Outcome(cell, cell.certify())

    monkeypatch.setattr(processes, "run_in_processes", outcomes)
    assert code_of(monkeypatch, "certify", chain_file, "-k", "2,3", "--format", "csv", "--time-limit", "100000") == 70
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert "k = 2: the lower bound 3 (some) is above the bottleneck 2" in said.err
    assert REPORT in said.err
