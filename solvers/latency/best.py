"""The best partition for a goal: the least latency, or the least bottleneck within a latency."""

from __future__ import annotations

from dataclasses import replace

from mtpp.errors import Infeasible
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.bounds.latency_floor import latency_floor
from mtpp.solvers.latency.partition import partition_for
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.registry import Partitioner

_PLAIN_SHARE = 0.4
"""Of a limit, for the least bottleneck whatever the latency."""

_FRONTIER_SHARE = 0.6
"""Of the time, for the first point of a frontier: every other one is within what is left."""


def best_for(instance: Instance, goal: Goal, limits: SearchLimits, plain: Partitioner) -> SearchResult:
    """Search for the best partition for a goal; ``bottleneck`` of the result is its objective.

    Parameters
    ----------
    plain
        Searches for the least bottleneck whatever the latency, which may be within the goal's limit.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the limits; else because none was found.
    """
    if goal.of_latency:
        lower = latency_floor(instance, goal)
        limits.observer.bound(lower.value)
        limits.keeper.prove(lower)
        return partition_for(instance, goal, replace(limits, lower_bound=lower.value), lower)
    lower = first_bound(instance)
    limits.observer.bound(lower.value)
    limits.keeper.prove(lower)
    found = None
    try:
        found = plain(instance, plain_limits(limits, lower.value))
    except Infeasible as error:
        if "proven" in error.problem:
            raise
    if found is None:
        return partition_for(instance, goal, replace(limits, lower_bound=lower.value), lower)
    if found.lower is not None and found.lower.value > lower.value:
        lower = found.lower
    placed = instance if found.devices is None else instance.on(found.devices)
    if goal.keeps(stage_costs(placed, found.partition)):
        limits.tell(found)
        return replace(found, lower=lower)
    devices = tuple(range(instance.k)) if found.devices is None else found.devices
    start = PlacedPartition(found.partition.assignment, found.partition.k, devices)
    left = limits.evaluations if limits.evaluations >= UNLIMITED else max(1, limits.evaluations - found.evaluations)
    inside = replace(limits, evaluations=left, lower_bound=lower.value)
    return partition_for(instance, goal, inside, lower, [(start, found.found_by)])


def plain_limits(limits: SearchLimits, lower: int, *, frontier: bool = False) -> SearchLimits:
    """Return a share of the limits, for a search whose partitions may be none within the goal's limit.

    Parameters
    ----------
    frontier
        Whether its partition is the first point of a frontier: then it has all evaluations, and more of the time.
    """
    evaluations = limits.evaluations
    whole = frontier or evaluations >= UNLIMITED
    share = _FRONTIER_SHARE if frontier else _PLAIN_SHARE
    return SearchLimits(
        evaluations=evaluations if whole else max(1, int(_PLAIN_SHARE * evaluations)),
        lower_bound=lower,
        deadline=limits.deadline if limits.deadline.limit_s is None else limits.deadline.share(share),
        jobs=limits.jobs,
        interrupted=limits.interrupted,
        seed=limits.seed,
        memory_bytes=limits.memory_bytes,
        population=limits.population,
        generations=limits.generations,
    )
