"""All plans that no other one beats in both bottleneck and latency, from the least latency to the least bottleneck."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.inference.certificate import LowerBound
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition, as_placed
from mtpp.names import LATENCY_OBJECTIVE
from mtpp.solvers.bounds.latency_floor import latency_floor
from mtpp.solvers.latency.partition import partition_for
from mtpp.solvers.limits import SearchLimits, SearchResult

_SHARE = 0.3
"""Of the time that is left, for one point."""

_POINTS = 30
"""Points whose evaluations may come to the limit; most take few."""


@dataclass(frozen=True)
class Point:
    """A partition that no other one found beats in both figures.

    Attributes
    ----------
    bottleneck, latency
        In ticks.
    lower
        On the latency of all partitions whose bottleneck is below that of the next point, None if that is unknown.
    partition, found_by
        The partition, and the algorithm that found it.
    """

    bottleneck: int
    latency: int
    lower: LowerBound
    partition: Partition
    found_by: str


class FrontierWalk:
    """Points from the last one on: each time the least latency with a bottleneck below the last one's.

    Parameters
    ----------
    first
        A partition with a small bottleneck, whose lower bound ends the walk.

    Attributes
    ----------
    points
        Found so far, the least latency first.
    spent
        Evaluations made.
    """

    def __init__(self, instance: Instance, first: SearchResult, limits: SearchLimits) -> None:
        self._instance, self._first, self._limits = instance, first, limits
        self._least = 0 if first.lower is None else first.lower.value
        self._next: int | None = None
        self.points: list[Point] = []
        self.spent = 0

    def run(self) -> None:
        """Walk to the end, or until the limits say so."""
        limits = self._limits
        while self._next is None or self._next >= self._least:
            if limits.stop is not None or self.spent >= _POINTS * limits.evaluations:
                return
            goal = Goal(LATENCY_OBJECTIVE, self._next)
            lower = latency_floor(self._instance, goal)
            if self.points and self.points[-1].lower.value > lower.value:
                lower = self.points[-1].lower
            share = limits.deadline.share(_SHARE) if limits.deadline.limit_s is not None else Deadline()
            inside = replace(limits, lower_bound=lower.value, deadline=share)
            try:
                found = partition_for(
                    self._instance, goal, inside, lower, [(_placed(self._first, self._instance), self._first.found_by)]
                )
            except Infeasible:
                return
            self.spent += found.evaluations
            self._take(found, lower)

    def frontier(self) -> list[Point]:
        """Return the points in increasing bottleneck; the first partition is one if nothing beats it."""
        instance, first = self._instance, self._first
        costs = stage_costs(as_placed(instance, first.partition), first.partition)
        points = self.points[::-1]
        if points and points[0].latency <= costs.latency and points[0].bottleneck <= costs.bottleneck:
            return points
        lower = points[0].lower if points else latency_floor(instance, Goal(LATENCY_OBJECTIVE))
        own = Point(costs.bottleneck, costs.latency, lower, first.partition, first.found_by)
        return [own, *(one for one in points if one.latency < costs.latency)]

    def _take(self, found: SearchResult, lower: LowerBound) -> None:
        costs = stage_costs(as_placed(self._instance, found.partition), found.partition)
        bound = lower if found.lower is None else found.lower
        while self.points and self.points[-1].latency >= costs.latency:
            bound = self.points.pop().lower
        self.points.append(Point(costs.bottleneck, costs.latency, bound, found.partition, found.found_by))
        self._next = costs.bottleneck - 1


def _placed(found: SearchResult, instance: Instance) -> PlacedPartition:
    partition = found.partition
    if isinstance(partition, PlacedPartition):
        return partition
    return PlacedPartition(partition.assignment, partition.k, tuple(range(instance.k)))
