"""Aim of a search: an instance, and the goal of its plans; a first bound, the search itself, and a last look."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mtpp.errors import InconsistentResult
from mtpp.inference.certificate import LowerBound
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import StageCosts, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import as_placed
from mtpp.inference.replicas.costs import replica_costs
from mtpp.inference.replicas.partition import ReplicatedPartition, with_single_devices
from mtpp.names import AUTO, BOUNDS, DOWNSET, SIMPLE
from mtpp.solvers.bounds.device_room import first_bound
from mtpp.solvers.bounds.latency_floor import latency_floor
from mtpp.solvers.bounds.replica_room import replica_room_bound
from mtpp.solvers.last_look.partition import look_at_bounds, look_at_partition
from mtpp.solvers.last_look.replicas import look_at_replicas
from mtpp.solvers.latency.best import best_for
from mtpp.solvers.latency.infeasible import no_plan
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.registry import Partitioner
from mtpp.solvers.timed_search import search_in_time

GOAL_ALGORITHMS = (AUTO, DOWNSET)
"""Algorithms that search for every goal; others know of bottlenecks of stages on one device each."""


def bounds_of(goal: Goal, *, replicas: bool) -> tuple[str, ...]:
    """Return the lower bounds that hold for a goal; all that bound bottlenecks do so within any latency."""
    return (SIMPLE, DOWNSET) if replicas or goal.of_latency else BOUNDS


@dataclass(frozen=True)
class Aim:
    """An instance, whose stages may have replicas, and a goal."""

    instance: Instance
    goal: Goal = field(default=Goal())

    @property
    def plain(self) -> bool:
        """Whether it is the least bottleneck with a device for each stage, whatever the latency."""
        return self.goal.plain and not self.instance.replicas

    @property
    def searched_alone(self) -> bool:
        """Whether no bound but the search itself says more than the first one."""
        return self.instance.replicas or self.goal.of_latency

    @property
    def most_ticks(self) -> int:
        """No plan's objective is above this."""
        return self.instance.most_ticks * (self.instance.most_used if self.goal.of_latency else 1)

    def first_bound(self) -> LowerBound:
        """Return the simple bound on the objective."""
        if self.instance.replicas:
            return replica_room_bound(self.instance)
        return latency_floor(self.instance, self.goal) if self.goal.of_latency else first_bound(self.instance)

    def search(self, partitioner: Partitioner, limits: SearchLimits) -> SearchResult:
        """Search for the best plan in time; ``bottleneck`` of the result is its objective.

        Raises
        ------
        Infeasible
            Proven, or because none was found.
        """
        instance, goal = self.instance, self.goal
        if goal.plain:
            found = search_in_time(partitioner, instance, limits)
            if not instance.replicas:
                return found
            return replace(found, partition=with_single_devices(instance, found.partition))
        return search_in_time(
            lambda one, inside: best_for(one, goal, inside, partitioner),
            instance,
            limits,
            none=no_plan(instance, goal, proven=False),
        )

    def costs(self, partition: Partition) -> StageCosts:
        """Return the costs of the stages of a partition of the instance, on the devices that it names."""
        if isinstance(partition, ReplicatedPartition):
            return replica_costs(self.instance, partition)
        return stage_costs(as_placed(self.instance, partition), partition)

    def look(self, partition: Partition, reached: int, found_by: str, bounds: list[tuple[str, int]]) -> None:
        """Derive the objective and the figure that is limited once more, and hold all bounds against the objective.

        Raises
        ------
        InconsistentResult
            If the objective is another, or the limit or the memory is not kept.
        InconsistentBound
            If a bound is above it.
        """
        if isinstance(partition, ReplicatedPartition):
            look_at_replicas(self.instance, partition, reached, found_by, bounds=bounds)
            return
        costs = self.costs(partition)
        bottleneck = costs.bottleneck if self.goal.of_latency else reached
        look_at_partition(as_placed(self.instance, partition), partition, bottleneck, found_by, costs=costs)
        look_at_bounds(reached, bounds)
        if not self.goal.keeps(costs) or self.goal.value(costs) != reached:
            raise InconsistentResult(f"the partition found by {found_by} does not keep to what it was found for")
