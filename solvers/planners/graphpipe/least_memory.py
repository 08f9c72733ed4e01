"""Pipelines with little memory, where none was found to fit: one that fits after all, or the memory that would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.branches import equal_branches
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.chain_search import LARGEST, ChainSearch
from mtpp.solvers.planners.graphpipe.exhaustive import EXHAUSTIVE, MOST_LAYERS, ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.kernels.chain_arrays import NONE
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.graphpipe.search import NeighbouringPipelines, StageGraphSearch
from mtpp.solvers.planners.graphpipe.stage_options import StageOptions
from mtpp.training.graph_plan import NoGraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import ScheduledStage

_MOST_STEPS = 150_000
"""Of one search."""

_ALL_STEPS = 1_500_000
"""Of all searches, about."""

_PRECISION = 2_000
"""Parts of the bound to which it is found."""

_ENOUGH = 2**61
"""Bytes: more than any plan needs (:data:`mtpp.training.graph_problem.LARGEST`)."""

_PARTS = 100
"""The memory that would do is found to a hundredth of what no plan can do without."""


class MemoryBound(NamedTuple):
    """Lower bound of the bytes that the fullest device of any plan needs.

    Attributes
    ----------
    value
        Bytes: no plan needs less. More than the problem's ``most_bytes``: there is none, whatever memory there is.
    method
        ``layer``: some layer takes them in any stage; ``chains``: there is no chain of downsets, of whatever time, that
        needs *value* − 1 bytes.
    """

    value: int
    method: str


def memory_bound(problem: GraphProblem, stopped: Callable[[], bool] = lambda: False) -> MemoryBound:
    """Return bytes that the fullest device of no plan is below, whatever memory the problem has.

    Parameters
    ----------
    stopped
        Whether to end early, with a bound that is lower.

    Notes
    -----
    Bisection of the memory, one size of micro-batches after the other, each up to what another is known to do with. No
    layers are left out. Steps are limited; a search that takes too many counts as one that finds a chain.
    """
    costs = LeastCosts(problem)
    layer = costs.layer_bytes()
    whole = min(costs.whole_bytes(options) for options in costs.options)
    value = max(layer, min(whole, problem.most_bytes + 1))
    if value * (len(problem.model.layers) + problem.devices + 3) >= LARGEST:
        return MemoryBound(layer, "layer")
    groups = equal_branches(problem.model, costs.kinds)
    searches = [ChainSearch(costs, groups, options, problem.devices, None, value) for options in costs.options]
    steps_left = _ALL_STEPS
    for search in sorted(searches, key=lambda one: one.least_bytes):
        low, high = max(layer, search.least_bytes), value
        asked = high - 1  # first: whether this size does with less than those before
        while high - low > high // _PRECISION and steps_left > 0 and not stopped():
            ticks, steps = search.least(0, asked, min(_MOST_STEPS, steps_left))
            steps_left -= steps
            low, high = (asked + 1, high) if ticks == NONE else (low, asked)
            asked = (low + high) // 2
        value = min(value, low)
    return MemoryBound(value, "chains" if value > layer else "layer")


def pipeline_in_least_memory(problem: GraphProblem, limits: Limits) -> GraphPipeline | NoGraphPlan:
    """Return a pipeline that fits, or that none was found, with one that needs little more memory and a bound.

    Notes
    -----
    Bisection of the memory. The memory that is asked about does not depend on that of *problem*, so that whatever is
    said to do does: the same search finds the same pipeline again.
    """
    needed = _bound(problem, limits.ended)
    found = _fitting(problem, _ENOUGH, limits)
    if found is not None:
        found = _leaner(problem, found, needed.value, limits)
    if len(problem.model.layers) <= MOST_LAYERS and (found is None or not _fits(problem, found)):
        found, needed = _least_of_all(problem, found, needed, limits)
    if found is not None and _fits(problem, found):
        return _within(problem, found, limits.ended)
    return _none(problem, found, needed, limits)


def least_memory_of_all(problem: GraphProblem, limits: Limits) -> NoGraphPlan:
    """Return the memory that would do for a small model, none of whose plans fits."""
    found, needed = _least_of_all(problem, None, _bound(problem, limits.ended), limits)
    return _none(problem, found, needed, limits)


def _none(problem: GraphProblem, found: GraphPipeline | None, needed: LowerBound, limits: Limits) -> NoGraphPlan:
    stages = [] if found is None else _scheduled(problem, found)
    return NoGraphPlan(problem, stages, needed, limits.stop or StopReason.FINISHED)


def nothing_found(problem: GraphProblem, stopped: StopReason) -> NoGraphPlan:
    """Return that there was no time to find a plan, or that it fits."""
    return NoGraphPlan(problem, [], _bound(problem, lambda: True), stopped)


def _bound(problem: GraphProblem, ended: Callable[[], bool]) -> LowerBound:
    bound = memory_bound(problem, ended)
    if bound.method == "layer":
        return LowerBound(bound.value, bound.method, Tier.EXACT)
    value = bound.value if bound.value <= problem.most_bytes else _too_much(problem)
    return LowerBound(value, bound.method, Tier.ENUMERATED, {"left_out": []})


def _too_much(problem: GraphProblem) -> int:
    """Return more bytes than any plan needs, and than devices have: a bound where there is no plan at all."""
    return max(problem.most_bytes, problem.memory_bytes) + 1


def _leaner(problem: GraphProblem, found: GraphPipeline, low: int, limits: Limits) -> GraphPipeline:
    """Search with less and less memory, down to *low*, until a pipeline fits; return the one that needs the least."""
    while not (_fits(problem, found) or limits.ended()):
        most = _fullest(problem, found)
        if most - low <= max(1, low // _PARTS):
            break
        middle = (low + most) // 2
        fewer = _fitting(problem, middle, limits)
        if fewer is None:
            low = middle
        else:
            found = fewer
    return found


def _least_of_all(
    problem: GraphProblem, found: GraphPipeline | None, needed: LowerBound, limits: Limits
) -> tuple[GraphPipeline | None, LowerBound]:
    """Look at all plans of a small model, if they are few enough; return one with the least memory, and the bound."""
    low = needed.value
    while found is None or low < _fullest(problem, found):
        most = _ENOUGH if found is None else (low + _fullest(problem, found) - 1) // 2
        search = ExhaustiveSearch(replace(problem, machine=problem.machine.with_memory(most)), ended=limits.ended)
        fewer = search.first_that_fits()
        if fewer is not None:
            found = fewer
        elif not search.complete:
            return found, needed
        elif found is None:
            return None, LowerBound(_too_much(problem), EXHAUSTIVE, Tier.ENUMERATED)
        else:
            low = most + 1
    return found, LowerBound(low, EXHAUSTIVE, Tier.ENUMERATED)


def _fitting(problem: GraphProblem, memory_bytes: int, limits: Limits) -> GraphPipeline | None:
    """Return a pipeline with so much memory and few micro-batches in flight, None if none is found."""
    rules = replace(problem.rules, in_flight="least")
    roomy = replace(problem, machine=problem.machine.with_memory(memory_bytes), rules=rules)
    return StageGraphSearch(roomy, limits).like_asked()


def _fits(problem: GraphProblem, found: GraphPipeline) -> bool:
    return _fullest(problem, found) <= problem.memory_bytes


def _within(problem: GraphProblem, found: GraphPipeline, ended: Callable[[], bool]) -> GraphPipeline:
    """Return a pipeline that fits, improved as the problem's memory and rules allow."""
    options = StageOptions(problem)
    made = [
        options.chosen(one.layers, one.micro_batch, one.data_parallel, one.mix.chosen, one.interval)
        for one in found.stages
    ]
    best = PipelineCandidate(problem, [one for one in made if one is not None]).best_in_flight(ended=ended)
    assert best is not None  # those that it has already are allowed
    return NeighbouringPipelines(problem, options, ended).improved(best)


def _scheduled(problem: GraphProblem, found: GraphPipeline) -> Sequence[ScheduledStage]:
    return [one.scheduled(problem, count) for one, count in zip(found.stages, found.in_flight, strict=True)]


def _fullest(problem: GraphProblem, found: GraphPipeline) -> int:
    return max(problem.costs.memory_bytes(stage) for stage in _scheduled(problem, found))
