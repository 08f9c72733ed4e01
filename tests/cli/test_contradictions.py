"""Results that contradict each other end a command with exit code 70 and both values, and without a result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from mtpp.inference.instance import Instance
from mtpp.solvers.limits import Limits, SearchLimits, SearchResult
from mtpp.solvers.partitioners import random
from mtpp.solvers.planners.pfeife import planner

REPORT = "this is a bug in mtpp, please report it with the model"


Command = Callable[..., tuple[int, str, str]]


def contradicted(mtpp: Command, *arguments: str | Path) -> str:
    """Run a command in this process that has to find a contradiction and to print nothing; return its error."""
    code, out, err = mtpp(*arguments)
    assert (code, out) == (70, "")
    return err


def test_partition(monkeypatch: pytest.MonkeyPatch, chain_file: Path, tmp_path: Path, mtpp: Command) -> None:
    """A search that says less than its partition costs."""
    search = random.partition

    def lying(instance: Instance, limits: SearchLimits) -> SearchResult:
        found = search(instance, limits)
        return replace(found, bottleneck=found.bottleneck - 1)

    monkeypatch.setattr(random, "partition", lying)
    file = tmp_path / "plan.json"
    said = contradicted(mtpp, "partition", chain_file, "-k", "2", "--algorithm", "random", "-o", file)
    assert "bottleneck of 60999999999 ticks, and its slowest stage costs 61000000000" in said
    assert said.rstrip().endswith(REPORT)
    assert not file.exists()


def test_plan(monkeypatch: pytest.MonkeyPatch, chain_file: Path, tmp_path: Path, mtpp: Command) -> None:
    """A planner whose iteration is not that of its passes."""
    plan = planner.plan

    def lying(problem: Any, limits: Limits) -> Any:
        found = plan(problem, limits)
        return replace(found, iteration=found.iteration + 1)

    monkeypatch.setattr(planner, "plan", lying)
    file = tmp_path / "plan.json"
    given = ("--planner", "pfeife", "--devices", "2", "--micro-batches", "2", "-o", file)
    said = contradicted(mtpp, "plan", chain_file, *given)
    assert "and replayed it takes" in said
    assert REPORT in said
    assert not file.exists()


MODEL = {
    "format": "mtpp-training-model",
    "version": 1,
    "name": "three layers",
    "time_unit": "ps",
    "micro_batch_size": 1,
    "layers": [
        {
            "name": name,
            "configurations": {
                "1": [
                    {
                        "id": "plain",
                        "time": 60,
                        "parameter_bytes": 10,
                        "memory_bytes_per_micro_batch": 8,
                        "memory_bytes": 40,
                    }
                ]
            },
        }
        for name in "abc"
    ],
    "edges": [{"source": "a", "target": "b", "bytes": 4}, {"source": "b", "target": "c", "bytes": 4}],
}

LINE = ("--devices", "3", "--memory", "1kB", "--bandwidth", "1TB/s", "--max-micro-batches", "3")
GRAPH = ("--planner", "graphpipe", "--devices", "3", "--memory", "1kB", "--bandwidth", "1TB/s", "--batch-size", "4")
SPLIT = ("--planner", "pfeife", "--devices", "3", "--micro-batches", "3", "--bandwidth", "1TB/s", "--memory", "1kB")
LEVELS = ("--memory", "1kB", "--max-micro-batches", "3", "--topology", "levels.toml")


TREE = """
[[levels]]
devices = 2
bandwidth = "1TB/s"

[[levels]]
devices = 2
bandwidth = "1TB/s"
"""


def _less_memory(figures: Any) -> Any:
    return lambda *given: [replace(one, memory_bytes=one.memory_bytes - 1) for one in figures(*given)]


def _less_time(figures: Any) -> Any:
    return lambda *given: [replace(one, time=one.time - 1) for one in figures(*given)]


def _one_less(method: Any) -> Any:
    return lambda self, *given: method(self, *given) - 1


def _faster(method: Any) -> Any:
    def passes(self: Any, *given: Any) -> Any:
        found = method(self, *given)
        return replace(found, forward_ticks=found.forward_ticks - 1)

    return passes


def _each_less(method: Any) -> Any:
    return lambda self, *given: [one - 1 for one in method(self, *given)]


def _later(method: Any) -> Any:
    def starts(*given: Any) -> Any:
        start, sent = method(*given)
        return start + 1, sent

    return starts


INTERNALS = [
    (LINE, "mtpp.training.plan.stage_figures", _less_memory, r"needs (\d+) bytes, and .* layers (\d+)"),
    (LINE, "mtpp.training.plan.stage_figures", _less_time, r"takes (\d+) ticks .*layers (\d+)"),
    (("--planner", "equi", *LINE), "mtpp.training.plan.stage_figures", _less_memory, r"needs (\d+) .* layers (\d+)"),
    (
        ("--planner", "pipedream-2bw", *LINE),
        "mtpp.training.plan.stage_figures",
        _less_memory,
        r"needs (\d+) bytes, and .* layers (\d+)",
    ),
    (LEVELS, "mtpp.training.nested_plan.stage_figures", _less_memory, r"needs (\d+) bytes, and .* layers (\d+)"),
    (GRAPH, "mtpp.training.stage_costs.PipelineCosts.memory_bytes", _one_less, r"needs (\d+) .* layers (\d+)"),
    (GRAPH, "mtpp.training.stage_costs.PipelineCosts.passes", _faster, r"takes \((\d+), .* layers \((\d+)"),
    (GRAPH, "mtpp.training.stage_costs.PipelineCosts.transfer", _one_less, r"is \(0, 1, (\d+).* layers \(0, 1, (\d+)"),
    (
        GRAPH,
        "mtpp.solvers.planners.simulation.simulate.earliest_starts",
        _later,
        r"start at (\d+) .*can start at (\d+)",
    ),
    (SPLIT, "mtpp.training.pfeife.problem.SplitProblem.device_bytes", _each_less, r"needs (\d+) .* layers (\d+)"),
    (
        (*SPLIT, "--order", "search"),
        "mtpp.training.pfeife.problem.SplitProblem.device_bytes",
        _each_less,
        r"needs (\d+) bytes, and .* layers (\d+)",
    ),
    (SPLIT, "mtpp.training.pfeife.costs._divided", _one_less, r"takes \((\d+), .* layers \((\d+)"),
]
"""What a planner is asked, a part of what its results are made from, a way to make it lie, and what is said."""


@pytest.mark.parametrize(("asked", "part", "lying", "said"), INTERNALS)
def test_planners_whose_sums_are_not_those_of_their_layers(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mtpp: Command,
    asked: tuple[str, ...],
    part: str,
    lying: Callable[[Any], Any],
    said: str,
) -> None:
    """Memory, times, transfers and starts that are off by one: both values, exit code 70, no result."""
    model, file = tmp_path / "model.json", tmp_path / "plan.json"
    model.write_text(json.dumps(MODEL))
    tmp_path.joinpath("levels.toml").write_text(TREE)
    monkeypatch.chdir(tmp_path)
    speed = ("--speed", "2") if part.endswith("_divided") else ()
    given = ("plan", model, *asked, *speed, "-o", file)
    assert mtpp(*given)[0] == 0
    file.unlink()
    monkeypatch.setattr(part, lying(resolve_name(part)))
    error = contradicted(mtpp, *given)
    values = re.search(said, error)
    assert values is not None, error
    assert int(values[1]) - int(values[2]) in (-1, 1)
    assert REPORT in error
    assert not file.exists()


def test_sweeps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mtpp: Command) -> None:
    """Times of a sweep are of plans that were looked at."""
    model = tmp_path / "model.json"
    model.write_text(json.dumps(MODEL))
    part = "mtpp.training.plan.stage_figures"
    monkeypatch.setattr(part, _less_time(resolve_name(part)))
    contradicted(mtpp, "plan", model, *LINE, "--sweep", "1,2,3")


def test_simulations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mtpp: Command) -> None:
    """Starts of passes that are not when what they wait for is there, in stage graphs and in schedules."""
    model, graph, split = tmp_path / "model.json", tmp_path / "graph.json", tmp_path / "split.json"
    model.write_text(json.dumps(MODEL))
    assert mtpp("plan", model, *GRAPH, "-o", graph)[0] == 0
    assert mtpp("plan", model, *SPLIT, "-o", split)[0] == 0
    assert mtpp("simulate", graph, "--model", model)[0] == 0
    assert mtpp("simulate", split)[0] == 0
    part = "mtpp.solvers.planners.simulation.simulate.earliest_starts"
    monkeypatch.setattr(part, _later(resolve_name(part)))
    for given in ((graph, "--model", model), (split,)):
        assert re.search(r"simulated to (start|take) .*\d+.* \d+", contradicted(mtpp, "simulate", *given))


def test_evaluate(monkeypatch: pytest.MonkeyPatch, chain_file: Path, mtpp: Command) -> None:
    """Sums of stages that are not those of their ops."""
    split = chain_file.with_name("split.json")
    split.write_text(json.dumps({"op0": 0, "op1": 0, "op2": 1, "op3": 1}))
    assert mtpp("evaluate", chain_file, "--assignment", split)[0] == 0
    sums = resolve_name("mtpp.inference.objective.sum_by")
    monkeypatch.setattr("mtpp.inference.objective.sum_by", lambda *given: sums(*given) + 1)
    assert "and summed up op by op" in contradicted(mtpp, "evaluate", chain_file, "--assignment", split)


def test_certify_keeps_the_other_cells(monkeypatch: pytest.MonkeyPatch, chain_file: Path, mtpp: Command) -> None:
    """The cell whose results contradict each other has no row; the others have theirs, and the exit code is 70."""
    from mtpp.solvers.certify.cells import processes
    from mtpp.solvers.certify.cells.cell import Outcome

    def outcomes(cells: Any, interrupted: Any, **rest: Any) -> Any:
        for cell in cells:
            if cell.instance.k == 2:
                yield Outcome(cell, None, "the lower bound 3 (some) is above the bottleneck 2", contradiction=True)
            else:
                yield Outcome(cell, cell.work())

    monkeypatch.setattr(processes, "run_in_processes", outcomes)
    code, out, err = mtpp("certify", chain_file, "-k", "2,3", "--format", "csv", "--time-limit", "100000")
    assert (code, len(out.splitlines())) == (70, 2)
    assert "k = 2: the lower bound 3 (some) is above the bottleneck 2" in err
    assert REPORT in err
