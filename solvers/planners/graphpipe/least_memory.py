"""Memory that would do where no plan fits: a plan whose fullest device holds little, and a bound on all plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline
from mtpp.solvers.planners.graphpipe.exhaustive import MOST_LAYERS, ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.memory_bound import memory_bound
from mtpp.solvers.planners.graphpipe.search import StageGraphSearch
from mtpp.training.graph_plan import NoGraphPlan, TickBound
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import ScheduledStage

_ENOUGH = 2**61
_PARTS = 100
"""The memory that would do is found to a hundredth of what no plan can do without."""


def memory_that_would_do(problem: GraphProblem, limits: Limits) -> NoGraphPlan:
    """Return that no plan fits, with one that needs little more memory, and how much all plans need."""
    needed = _bound(problem, limits.ended)
    low = max(needed.value, problem.memory_bytes)
    stages = _fitting(problem, _ENOUGH, limits)
    if stages:
        stages, low = _fewer_bytes(problem, stages, low, limits)
    if stages and len(problem.model.layers) <= MOST_LAYERS:
        stages, needed = _least(problem, stages, needed, limits)
    return NoGraphPlan(problem, stages, needed, limits.stop or StopReason.FINISHED)


def nothing_found(problem: GraphProblem, stopped: StopReason) -> NoGraphPlan:
    """Return that there was no time to find a plan, or that it fits."""
    return NoGraphPlan(problem, [], _bound(problem, lambda: True), stopped)


def _bound(problem: GraphProblem, ended: Callable[[], bool]) -> TickBound:
    bound = memory_bound(problem, ended)
    if bound.method == "layer":
        return TickBound(bound.value, bound.method, Tier.EXACT)
    return TickBound(bound.value, bound.method, Tier.ENUMERATED, {"left_out": []})


def _fewer_bytes(
    problem: GraphProblem, stages: Sequence[ScheduledStage], low: int, limits: Limits
) -> tuple[Sequence[ScheduledStage], int]:
    """Search with less and less memory; return what fits into the least, and memory that nothing was found for."""
    while not limits.ended():
        most = _fullest(problem, stages)
        if most - low <= max(1, low // _PARTS):
            break
        middle = (low + most) // 2
        fewer = _fitting(problem, middle, limits)
        if fewer:
            stages = fewer
        else:
            low = middle
    return stages, low


def _least(
    problem: GraphProblem, stages: Sequence[ScheduledStage], needed: TickBound, limits: Limits
) -> tuple[Sequence[ScheduledStage], TickBound]:
    """Look at all plans of a small model, if they are few enough; return one with the least memory, and the bound."""
    low = needed.value
    while low < _fullest(problem, stages):
        middle = (low + _fullest(problem, stages) - 1) // 2
        search = ExhaustiveSearch(replace(problem, memory_bytes=middle), ended=limits.ended)
        found = search.first_that_fits()
        if found is not None:
            stages = _scheduled(problem, found)
        elif search.complete:
            low = middle + 1
        else:
            return stages, needed
    return stages, TickBound(low, "exhaustive", Tier.ENUMERATED)


def _fitting(problem: GraphProblem, memory_bytes: int, limits: Limits) -> Sequence[ScheduledStage]:
    """Return the stages of a plan with so much memory, with few micro-batches in flight; none if none is found."""
    rules = replace(problem.rules, in_flight="least")
    found = StageGraphSearch(replace(problem, memory_bytes=memory_bytes, rules=rules), limits).best()
    return [] if found is None else _scheduled(problem, found)


def _scheduled(problem: GraphProblem, found: GraphPipeline) -> Sequence[ScheduledStage]:
    return [one.scheduled(problem, count) for one, count in zip(found.stages, found.in_flight, strict=True)]


def _fullest(problem: GraphProblem, stages: Sequence[ScheduledStage]) -> int:
    return max(problem.costs.memory_bytes(stage) for stage in stages)
