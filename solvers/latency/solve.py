"""From a graph and a goal in which latency counts to a plan, and to the frontier of all goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from mtpp.errors import InconsistentResult, Infeasible
from mtpp.host.ending import EndedEarly, run_in_time
from mtpp.host.memory_limit import spare_memory
from mtpp.host.stop_reason import StopReason
from mtpp.inference.contraction import Contraction
from mtpp.inference.goal import Goal
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.inference.plan import FrontierPoint, Plan
from mtpp.solvers import registry
from mtpp.solvers.aim import Aim
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.feasibility import refuse_infeasible
from mtpp.solvers.last_look.partition import look_at_bounds, look_at_partition
from mtpp.solvers.latency.best import plain_limits
from mtpp.solvers.latency.frontier import FrontierWalk, Point
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.memory_growth import PROVEN
from mtpp.solvers.registry import Partitioner
from mtpp.solvers.solve import lifted
from mtpp.solvers.timed_search import search_in_time

_MEMORY_EVALUATIONS = 300
"""Of a search for any partition that keeps to the limits on memory."""


def solve_for_goal(
    instance: Instance,
    graph: CostGraph,
    limits: SearchLimits,
    goal: Goal,
    *,
    frontier: bool,
    algorithm: str,
    together: Sequence[Sequence[str]],
    contraction: Contraction | None,
) -> Plan:
    """Search for the best partition of *graph* for a goal, as :func:`mtpp.solvers.solve.solve` does.

    Parameters
    ----------
    frontier
        Whether all partitions are looked for that no other one beats in both figures; the plan is the first of them.
    contraction
        Of *instance* by the groups; None if there are none.
    """
    plain = registry.partitioner(algorithm).load()
    inner = contraction.instance if contraction else instance
    refuse_infeasible(inner)
    points: list[Point] = []
    if frontier:
        lower = first_bound(inner)
        found = search_in_time(plain, inner, plain_limits(limits, lower.value, frontier=True))
        found = replace(found, lower=max([lower, *([found.lower] if found.lower else [])], key=lambda one: one.value))
        points, stopped = _walk(inner, found, limits)
        first = points[0]
        found = replace(
            found, partition=first.partition, bottleneck=first.bottleneck, found_by=first.found_by, stopped=stopped
        )
    else:
        try:
            found = Aim(inner, goal).search(plain, limits)
        except Infeasible:
            _refuse_memory(inner, plain, limits)
            raise
    placed, partition, devices = _placed(instance, contraction, found.partition, found.found_by)
    assert found.lower is not None  # as the search has told of it at the beginning
    plan = Plan(
        graph=graph,
        instance=placed,
        partition=partition,
        lower=found.lower,
        algorithm=algorithm,
        found_by=found.found_by,
        seed=limits.seed,
        evaluations=found.evaluations,
        stopped=found.stopped,
        together=together,
        devices=devices,
        goal=goal,
        frontier=tuple(_point(instance, contraction, one, together) for one in points),
    )
    look_at_partition(placed, partition, plan.bottleneck, found.found_by, together=together, costs=plan.costs)
    look_at_bounds(goal.value(plan.costs), [(found.lower.method, found.lower.value)])
    if not goal.keeps(plan.costs) or goal.value(plan.costs) != found.bottleneck:
        raise InconsistentResult(f"the partition found by {found.found_by} does not keep to what it was found for")
    return plan


def _refuse_memory(instance: Instance, plain: Partitioner, limits: SearchLimits) -> None:
    """Raise Infeasible if the limits on memory alone are too small, whatever the limit of the goal."""
    if instance.device.memory_bytes is None or limits.stop is not None:
        return
    inside = replace(plain_limits(limits, instance.most_ticks), evaluations=_MEMORY_EVALUATIONS)
    try:
        search_in_time(plain, instance, inside)
    except Infeasible as error:
        if error.problem.startswith(PROVEN):
            raise error from None


def _walk(instance: Instance, first: SearchResult, limits: SearchLimits) -> tuple[list[Point], StopReason]:
    """Return the frontier, as far as it is found in the time, and the reason that the walk ended."""
    given_up = Event()
    inside = replace(limits, interrupted=lambda: given_up.is_set() or limits.interrupted())
    walk = FrontierWalk(instance, first, inside)
    try:
        run_in_time(walk.run, limits.deadline, lambda: limits.stop)
        stopped = limits.stop
    except EndedEarly as end:
        given_up.set()
        stopped = end.stopped
    spare_memory()
    points = walk.frontier()
    proven = first.lower is not None and first.lower.value == points[0].bottleneck
    return points, StopReason.OPTIMAL if proven else stopped or StopReason.BUDGET


def _placed(
    instance: Instance, contraction: Contraction | None, found: Partition, found_by: str
) -> tuple[Instance, Partition, tuple[int, ...] | None]:
    """Return a partition of the instance, on its devices; and these, None if stages stand in their order."""
    partition = lifted(contraction, found, found_by)
    devices = partition.devices if instance.machine.free and isinstance(partition, PlacedPartition) else None
    placed = instance if devices is None else instance.on(devices)
    return placed, Partition(partition.assignment, partition.k), devices


def _point(
    instance: Instance, contraction: Contraction | None, point: Point, together: Sequence[Sequence[str]]
) -> FrontierPoint:
    """Return a point of the frontier as a plan has it, after a last look."""
    placed, partition, devices = _placed(instance, contraction, point.partition, point.found_by)
    costs = stage_costs(placed, partition)
    look_at_partition(placed, partition, point.bottleneck, point.found_by, together=together, costs=costs)
    look_at_bounds(point.latency, [(point.lower.method, point.lower.value)])
    if costs.latency != point.latency:
        raise InconsistentResult(f"a latency of {point.latency} ticks was found, and the stages take {costs.latency}")
    return FrontierPoint(point.bottleneck, point.latency, point.lower, partition, devices)
