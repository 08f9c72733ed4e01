"""The paper's heuristic for configurations: what it chooses, and where that is not the best."""

from __future__ import annotations

from given_plans import chain_problem, chain_stages

from mtpp.machine.machine import Machine
from mtpp.solvers.planners.piper.bang_per_buck import bang_per_buck, slower_by_bang_per_buck
from mtpp.training.model import Configuration, Layer, TrainingModel
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem


def _problem(layers: list[list[tuple[int, int]]], memory: int) -> PlanningProblem:
    """Return a problem of layers without edges, each with configurations of a time and a size in memory."""
    model = TrainingModel(
        "layers",
        "ps",
        [
            Layer(i, str(i), {1: [Configuration(str(c), time, 0, 0, size) for c, (time, size) in enumerate(rows)]})
            for i, rows in enumerate(layers)
        ],
        [],
    )
    return PlanningProblem(
        model, machine=Machine.of_devices(1, memory_bytes=memory, bandwidth_bytes_per_s=1), micro_batches=1
    )


def test_ample_memory_leaves_the_fastest() -> None:
    """Nothing changes where the fastest configurations fit."""
    problem = _problem([[(3, 9), (2, 10)], [(5, 5)]], 15)
    assert bang_per_buck(problem, LayerStage([0, 1], 1, 1, [1, 0]), 1) == [1, 0]


def test_most_memory_per_time_goes_first() -> None:
    """The change with the highest ratio is made even where a smaller one would do, so another choice is faster."""
    problem = _problem([[(10, 10), (14, 2)], [(10, 10), (12, 8)]], 18)
    both = LayerStage([0, 1], 1, 1, [0, 1])
    assert bang_per_buck(problem, both, 1) == [1, 0]
    assert slower_by_bang_per_buck(problem, [both], [1]) == [0]


def test_changes_go_on_until_it_fits_or_nothing_is_left() -> None:
    """A layer may change more than once; where the leanest choice is too large there is none."""
    layers = [[(1, 30), (2, 20), (9, 5)]]
    assert bang_per_buck(_problem(layers, 20), LayerStage([0], 1, 1, [0]), 1) == [1]
    assert bang_per_buck(_problem(layers, 6), LayerStage([0], 1, 1, [0]), 1) == [2]
    problem = _problem(layers, 4)
    assert bang_per_buck(problem, LayerStage([0], 1, 1, [0]), 1) is None
    assert slower_by_bang_per_buck(problem, [LayerStage([0], 1, 1, [2])], [1]) == [0]


def test_stages_that_are_no_better_do_not_differ() -> None:
    """A plan that recomputes without need is slower than what the heuristic gives, which is no difference to report."""
    assert slower_by_bang_per_buck(chain_problem(), chain_stages(), [2, 2, 1]) == []
