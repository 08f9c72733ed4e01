"""Compilation of the planners' kernels ahead of time, and a forecast of it."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise, product
from typing import Any

import numpy as np

from mtpp.names import KNAPSACKS
from mtpp.solvers.jit import on_disk
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, PLANNERS, SPLIT_PLANNERS, PlannerEntry
from mtpp.training.device_tree import DeviceTree, Level
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.pfeife.costs import LineCosts, LineTensor
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.problem import SplitProblem, SplitRules
from mtpp.training.positions import LinePlace
from mtpp.training.problem import PlanningProblem

_STAGES = "mtpp.solvers.planners.piper.stage_making"

_CALLERS = {
    "mtpp.solvers.planners.piper.planner": ("mtpp.solvers.planners.piper.threshold", _STAGES),
    "mtpp.solvers.planners.nested.planner": (
        "mtpp.solvers.planners.nested.segments",
        "mtpp.solvers.planners.nested.splits",
        _STAGES,
    ),
}
"""Module of a planner → modules that call its kernels."""

_ENOUGH_MEMORY = 9
"""Of the tiny problems: short enough that configurations are chosen for it."""

_TOO_LITTLE_MEMORY = 1
"""The least that would do is searched for then."""


def compiled_planner(entry: PlannerEntry, *, nested: bool) -> bool:
    """Return whether the kernels of a planner have machine code on disk; only a forecast.

    *nested* asks for networks of several levels.
    """
    return all(on_disk(kernel) for kernel in planner_kernels(entry, nested=nested))


def planner_kernels(entry: PlannerEntry, *, nested: bool) -> list[Any]:
    """Return the kernels that a planner calls, for several levels if *nested*."""
    callers = _CALLERS.get((entry.nested if nested else entry.module) or "", ())
    return [value for caller in callers for value in vars(import_module(caller)).values() if hasattr(value, "py_func")]


def load_planner(entry: PlannerEntry, *, nested: bool) -> None:
    """Have the kernels of a planner ready, those for several levels if *nested*."""
    for knapsack, memory in product(KNAPSACKS, (_ENOUGH_MEMORY, _TOO_LITTLE_MEMORY)):
        limits = PlanLimits(knapsack=knapsack)
        if not nested:
            entry.load()(tiny_planning_problem(memory), limits)
        elif (plan := entry.load_nested()) is not None:
            plan(tiny_nested_problem(memory), limits)


def load_simulation() -> None:
    """Have the kernels of the simulation ready."""
    from mtpp.solvers.planners.simulation.simulate import simulate
    from mtpp.training.pass_order import interleaved_order
    from mtpp.training.stage_graph import PipelineStage, StageGraph

    simulate(StageGraph("warmup", "ps", 1, [PipelineStage("", 1, 1, 1, 0, interleaved_order(1, 1))], []))


def compiled_simulation(*, stage_graph: bool) -> bool:
    """Return whether the kernels of a simulation have machine code on disk; only a forecast.

    A *stage_graph* takes one more than a schedule whose passes are listed.
    """
    from mtpp.solvers.planners.simulation.kernels.pass_times import pass_times
    from mtpp.solvers.planners.simulation.kernels.stage_passes import stage_passes

    return on_disk(pass_times) and (not stage_graph or on_disk(stage_passes))


def load_graph_planner() -> None:
    """Have the kernels of the planner of stage graphs ready."""
    for memory in (_ENOUGH_MEMORY, _TOO_LITTLE_MEMORY):
        for planner in GRAPH_PLANNERS.values():
            planner.load()(tiny_graph_problem(memory), Limits())


def load_split_planner(*, rare: bool = False) -> None:
    """Have the kernels of the planner of split points ready; with *rare*, those of beams too."""
    from mtpp.solvers.planners.pfeife.search import SplitSearch

    for planner in SPLIT_PLANNERS.values():
        for ops, search in ((60, "anneal"), *(((60, "beam"),) if rare else ())):
            planner.load()(tiny_split_problem(ops, search), Limits())
    # So small a problem is solved by going through all splits.
    problem = tiny_split_problem(60, "anneal")
    SplitSearch(problem, Limits()).quick(*problem.cells[-1]).annealed(10, 0.01, 0.001, 0)


def load_planners() -> None:
    """Have the kernels of all planners of the time per sample ready, for one level of devices and several."""
    for entry in PLANNERS.values():
        for nested in (False, True):
            load_planner(entry, nested=nested)


def tiny_planning_problem(memory: int) -> PlanningProblem:
    """Return a small problem of planning a training pipeline on devices of so many bytes."""
    model = _tiny_model()
    return PlanningProblem(model, devices=4, memory_bytes=memory, bandwidth_bytes_per_s=10**9, micro_batches=4)


def tiny_graph_problem(memory: int) -> GraphProblem:
    """Return a small problem of planning a stage graph on devices of so many bytes."""
    layers = [Layer(i, str(i), {1: [Configuration(str(c), 4 + c, 1, 2 - c, 2) for c in range(2)]}) for i in range(10)]
    edges = [Edge(i, j, 1) for i in range(8) for j in (i + 1, i + 2)]
    return GraphProblem.build(
        TrainingModel("warmup", "ns", layers, edges),
        devices=2,
        memory_bytes=10 * memory,
        bandwidth_bytes_per_s=10**9,
        mini_batch=4,
        micro_batch_size=1,
    )


def tiny_split_problem(ops: int, search: str) -> SplitProblem:
    """Return a small problem of cutting a line of ops for two devices."""
    ones = np.ones(ops, dtype=np.int64)
    places = [LinePlace(v) for v in range(ops)]
    tensors = [LineTensor(v, [w], 1, 1) for v, w in pairwise(places)]
    costs = LineCosts(ones, 2 * ones, ones, ones, tensors)
    names = [str(v) for v in range(ops)]
    line = ModelLine("warmup", "graph", names, "ps", 1, costs, sizes_known=True)
    rules = SplitRules(loops=(2,), search=search)
    return SplitProblem.build(
        line, devices=2, micro_batches=2, bandwidth_bytes_per_s=1, memory_bytes=[10**6] * 2, rules=rules
    )


def tiny_nested_problem(memory: int) -> NestedProblem:
    """Return such a problem for two devices of two devices each."""
    device_tree = DeviceTree((Level(2, 10**9), Level(2, 10**8)))
    return NestedProblem.build(_tiny_model(), device_tree, memory_bytes=memory, micro_batches=4)


def _tiny_model() -> TrainingModel:
    return TrainingModel(
        "warmup",
        "ns",
        [
            Layer(i, str(i), {t: [Configuration(str(c), 4 + c, 1, 2 - c, 2) for c in range(2)] for t in (1, 2)})
            for i in range(4)
        ],
        [Edge(0, 1, 1), Edge(0, 2, 1), Edge(1, 3, 1), Edge(2, 3, 1)],
    )
