"""``graphpipe``: stages that form a graph, with the shortest iteration found, and a bound on that of all plans.

The problem is that of Jeon et al., "GraphPipe: Improving Performance and Scalability of DNN Training with Graph
Pipeline Parallelism", ASPLOS 2025. Two things are done otherwise: the simulated iteration is made least in place of the
time of the slowest stage, and stages may hold parts of several branches.
"""

from __future__ import annotations

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.bound import PipelineBound, iteration_bound
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline
from mtpp.solvers.planners.graphpipe.exhaustive import EXHAUSTIVE, FEW, MOST_LAYERS, ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.least_memory import least_memory_of_all, pipeline_in_least_memory
from mtpp.solvers.planners.graphpipe.search import StageGraphSearch
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import ScheduledStage


def plan(problem: GraphProblem, limits: Limits) -> GraphPlan | NoGraphPlan:
    """Return the plan with the shortest iteration found, and what is proven; or that there is none.

    Parameters
    ----------
    limits
        Threads, and when to end: the result depends on neither, unless the search was ended.

    Returns
    -------
    Of models of up to :data:`mtpp.solvers.planners.graphpipe.exhaustive.MOST_LAYERS` layers the optimal plan, unless
    there are too many plans; of others a good one. Where none was found, the memory that would do.

    Raises
    ------
    InconsistentBound
        If the bound is above the plan, which no correct program can produce.
    """
    small = len(problem.model.layers) <= MOST_LAYERS
    if small:
        limits.observer.phase("all stage graphs")
        few = ExhaustiveSearch(problem, limits.ended, FEW)
        found = few.best()
        if few.complete:
            return _all_seen(problem, found, limits)
    limits.observer.phase("stage graphs")
    found = StageGraphSearch(problem, limits).best()
    if found is not None:
        limits.observer.incumbent(found.iteration)
    if small and not limits.ended():
        limits.observer.phase("all stage graphs")
        search = ExhaustiveSearch(problem, limits.ended)
        found = search.best(found)
        if search.complete:
            return _all_seen(problem, found, limits)
    if found is None:
        limits.observer.phase("least memory")
        leanest = pipeline_in_least_memory(problem, limits)
        if isinstance(leanest, NoGraphPlan):
            return leanest
        found = leanest
        limits.observer.incumbent(found.iteration)
    limits.observer.phase("bound")
    lower = iteration_bound(problem, found.iteration, limits.ended, threads=limits.jobs)
    limits.observer.bound(lower.value)
    stopped = limits.stop or StopReason.FINISHED
    return _plan_of(problem, found, bound_of(problem, lower), stopped)


def bound_of(problem: GraphProblem, lower: PipelineBound) -> LowerBound:
    """Return a bound as a plan has it, with its proof."""
    if lower.method == "work":
        return LowerBound(lower.value, lower.method, Tier.EXACT)
    left_out = [problem.model.layers[layer].id for layer in lower.left_out]
    return LowerBound(lower.value, lower.method, Tier.ENUMERATED, {"left_out": left_out})


def _all_seen(problem: GraphProblem, found: GraphPipeline | None, limits: Limits) -> GraphPlan | NoGraphPlan:
    """Return the best of all plans, or the memory that would do where none of them fits."""
    if found is None:
        limits.observer.phase("least memory")
        return least_memory_of_all(problem, limits)
    limits.observer.incumbent(found.iteration)
    proven = LowerBound(found.iteration, EXHAUSTIVE, Tier.ENUMERATED)
    return _plan_of(problem, found, proven, StopReason.OPTIMAL)


def _plan_of(problem: GraphProblem, found: GraphPipeline, lower: LowerBound, stopped: StopReason) -> GraphPlan:
    stages = [one.scheduled(problem, count) for one, count in zip(found.stages, found.in_flight, strict=True)]
    if lower.value == found.iteration:
        stopped = StopReason.OPTIMAL
    return GraphPlan(problem, _in_file_order(problem, stages), found.iteration, lower, stopped)


def _in_file_order(problem: GraphProblem, stages: list[ScheduledStage]) -> list[ScheduledStage]:
    """Return stages by their depth, side by side as the model's file has their layers; a line stays as it is."""
    if problem.rules.sequential:
        return stages
    stage_of = {layer: s for s, stage in enumerate(stages) for layer in stage.configurations}
    before: list[set[int]] = [set() for _ in stages]
    for u, v in problem.model.ends:
        if stage_of[u] != stage_of[v]:
            before[stage_of[v]].add(stage_of[u])
    depth: list[int] = []
    for sources in before:
        depth.append(max((depth[s] + 1 for s in sources), default=0))
    order = sorted(range(len(stages)), key=lambda s: (depth[s], min(stages[s].configurations)))
    return [stages[s] for s in order]
