"""The best plan of a chain on devices with times of stages for a goal in which latency counts, and its proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition, as_placed
from mtpp.names import DOWNSET
from mtpp.solvers.downsets.prover import DEFAULT_MEMORY_BYTES
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.unequal.chains.labels import Stage, TooManyLabels
from mtpp.solvers.unequal.chains.range_costs import NEVER, RangeCosts
from mtpp.solvers.unequal.chains.totals import LeastTotal, TotalSearch

_LABEL_BYTES = 600

_FIRST_GAP = 1_000
"""The first search is for plans within one part in so many of the sum that prices show."""

_GAP_GROWS = 8


class ChainGoalSearch:
    """The search: the least latency within a bottleneck, or the least bottleneck within a latency.

    Attributes
    ----------
    stages
        Of the best plan; None: none was found.
    bound
        On the objective, proven; None: nothing was.
    closed
        Whether the search came to its end.
    looked_at
        Limits decided.
    """

    def __init__(self, instance: Instance, goal: Goal, limits: SearchLimits) -> None:
        self._instance, self._goal, self._limits = instance, goal, limits
        costs = RangeCosts.of(instance)
        class_of = tuple(instance.cost.class_of(instance.k).tolist())
        memory = limits.memory_bytes or DEFAULT_MEMORY_BYTES
        self._values: Sequence[int] = costs.values.tolist()
        self._search = TotalSearch(
            costs, class_of, instance.most_used, instance.machine.free, memory // _LABEL_BYTES, limits.ended
        )
        self.stages: list[Stage] | None = None
        self.bound: LowerBound | None = None
        self.closed = False
        self.looked_at = 0

    def run(self) -> None:
        """Search until the best plan is found and proven, or the limits say so."""
        try:
            if self._goal.of_latency:
                self._least_latency()
            else:
                self._least_bottleneck()
            self.closed = True
        except TooManyLabels:
            return

    def partition(self) -> Partition:
        """Return the best plan as a partition, in free order on devices that it names."""
        instance, stages = self._instance, self.stages
        assert stages is not None
        class_of, free = self._search.class_of, instance.machine.free
        left = {c: [j for j, other in enumerate(class_of) if other == c] for c in set(class_of)}
        used = [left[one.index(1)].pop(0) if free else one[0] for _, _, one in stages]
        stage = np.empty(instance.op_count, dtype=np.int32)
        for number, (begin, end, _) in enumerate(stages):
            stage[instance.order[begin:end]] = number if free else used[number]
        if not free:
            return Partition.from_stages(instance, stage)
        return PlacedPartition.on(instance, stage, [*used, *(j for j in range(instance.k) if j not in set(used))])

    def _least_latency(self) -> None:
        most_stage = NEVER - 1 if self._goal.limit is None else self._goal.limit
        floor = self._search.floor(most_stage)
        gap = max(1, floor // _FIRST_GAP)
        highest = sum(self._values[-1:]) * self._instance.op_count
        while True:
            found = self._least(most_stage, min(floor + gap, highest))
            if found.stages is not None:
                self._take(found.stages)
                self._take_in(found.total, self._least(most_stage, found.total - 1))
                return
            if floor + gap >= highest:
                return
            gap *= _GAP_GROWS

    def _least_bottleneck(self) -> None:
        """Decide values of a stage, the middle one of those left each time."""
        most_total = NEVER - 1 if self._goal.limit is None else self._goal.limit
        low, high = 0, len(self._values)
        while low < high:
            middle = (low + high) // 2
            found = self._least(self._values[middle], most_total)
            if found.stages is None:
                low = middle + 1
                if low < len(self._values):
                    self._take_in(self._values[low], found)
            else:
                high = middle
                self._take(found.stages)
        least = 0 if self.stages is None else self._values[low]
        if least and (self.bound is None or self.bound.value < least):
            self._take_in(least, self._least(least - 1, most_total))

    def _least(self, most_stage: int, most_total: int) -> LeastTotal:
        if self.looked_at and self._limits.ended():
            raise TooManyLabels
        self.looked_at += 1
        self._limits.observer.evaluated(1)
        return self._search.least(most_stage, most_total)

    def _take(self, stages: list[Stage]) -> None:
        """Take a better plan, and tell of it."""
        self.stages = stages
        found = self.partition()
        value = self._goal.value(stage_costs(as_placed(self._instance, found), found))
        self._limits.observer.incumbent(value)
        self._limits.keeper.offer(value, DOWNSET, lambda: found)

    def _take_in(self, cutoff: int, found: LeastTotal) -> None:
        """Keep the proof that no plan's objective is below a cutoff, as a search has found."""
        instance = self._instance
        proof: dict[str, Any] = {
            "cutoff": cutoff,
            "k": instance.most_used,
            "order": instance.machine.order,
            "objective": self._goal.objective,
            "limit": self._goal.limit,
            "rule": "list" if found.prices is None else "totals",
        }
        if found.prices is not None:
            machine = instance.machine
            names = [machine.names[machine.class_of.index(c)] for c in range(len(found.prices.by_class))]
            proof["prices"] = dict(zip(names, found.prices.by_class, strict=True))
            proof["price_of_any"] = found.prices.of_any
        self.bound = LowerBound(cutoff, DOWNSET, Tier.ENUMERATED, proof)
        self._limits.observer.bound(cutoff)
        self._limits.keeper.prove(self.bound)


def chain_for_goal(
    instance: Instance, goal: Goal, limits: SearchLimits, lower: LowerBound | None = None
) -> SearchResult | None:
    """Search for the best plan of a chain for a goal; None where there is none, which is proven.

    Parameters
    ----------
    lower
        On the objective, known before.

    Raises
    ------
    TooManyLabels
        If none was found in the time and the memory.
    """
    search = ChainGoalSearch(instance, goal, limits)
    search.run()
    if search.stages is None:
        if search.closed:
            return None
        raise TooManyLabels
    found = search.partition()
    value = goal.value(stage_costs(as_placed(instance, found), found))
    bounds = [one for one in (search.bound, lower) if one is not None]
    stopped = StopReason.OPTIMAL if search.closed else limits.stop or StopReason.BUDGET
    best = max(bounds, key=lambda one: one.value, default=None)
    result = SearchResult(found, value, DOWNSET, search.looked_at, stopped, best)
    limits.tell(result)
    return result
