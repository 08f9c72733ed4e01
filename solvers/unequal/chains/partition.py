"""The best plan of a chain on devices with times of stages, and its proof: prices first, then labels within them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.names import DOWNSET
from mtpp.solvers.downsets.prover import DEFAULT_MEMORY_BYTES
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.device_labels import devices_of
from mtpp.solvers.unequal.chains.labels import FoundLabels, LabelSearch, Stage, TooManyLabels
from mtpp.solvers.unequal.chains.prices import Prices, Pricing
from mtpp.solvers.unequal.chains.range_costs import RangeCosts
from mtpp.solvers.unequal.chains.stage_choices import StageChoices

_LABEL_BYTES = 400


def partition_chain(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Search for the best plan of a chain, and prove it.

    Raises
    ------
    Infeasible
        Proven, if no plan has stages that the devices may hold; else because none was found in the time.
    """
    search = ChainSearch(instance, limits)
    search.run()
    if search.stages is None:
        if not search.closed:
            raise Infeasible("none found: the time or the memory did not suffice", source="‹machine›")
        raise Infeasible(
            f"proven infeasible: no plan on {instance.most_used} of the devices has stages of as few ops as they have "
            "stage_times for, each within the memory of its device",
            source="‹machine›",
            remedy="allow more devices or memory",
        )
    stopped = StopReason.OPTIMAL if search.closed else limits.stop or StopReason.MEMORY_LIMIT
    found = SearchResult(search.partition(), search.upper, DOWNSET, search.looked_at, stopped, search.bound)
    limits.tell(found)
    return found


class ChainSearch:
    """The search, one limit after another: the least cost below which no plan is.

    Attributes
    ----------
    stages
        Of the best plan; None: none was found.
    upper
        Its bottleneck in ticks.
    bound
        Proven; None: nothing was.
    looked_at
        Limits decided.
    """

    def __init__(self, instance: Instance, limits: SearchLimits) -> None:
        self._instance, self._limits = instance, limits
        self._costs = RangeCosts.of(instance)
        class_of = tuple(instance.cost.class_of(instance.k).tolist())
        self._counts = [class_of.count(c) for c in range(len(self._costs.ticks))]
        self._free = instance.machine.free
        memory = limits.memory_bytes or DEFAULT_MEMORY_BYTES
        most = memory // (_LABEL_BYTES + 16 * len(self._counts))
        self._search = LabelSearch(class_of, instance.most_used, most, limits.ended)
        self._pricing = Pricing(self._counts, instance.most_used)
        self.stages: list[Stage] | None = None
        self.upper = 0
        self.bound: LowerBound | None = None
        self.closed = False
        self.looked_at = 0

    def run(self) -> None:
        """Search until the best plan is found and proven, or the limits say so."""
        values = self._costs.values.tolist()
        low, high = 0, len(values)  # all below values[low] is refuted; values[high] has a plan
        if self._free:
            low = self._refuted_by_prices(values)
        probe = low
        while low < high and not (self.looked_at and self._limits.ended()):
            outcome = self._decide(values[probe])
            if outcome is None:
                return
            if outcome.stages is None:
                low = probe + 1
                following = values[low] if low < len(values) else values[-1] + 1
                self._prove(following, outcome)
            else:
                high, self.stages, self.upper = probe, outcome.stages, values[probe]
                self._limits.observer.incumbent(self.upper)
            probe = (low + high) // 2
        self.closed = low == high
        if self.closed and self.stages is not None and (self.bound is None or self.bound.value < self.upper):
            outcome = self._decide(self.upper - 1)
            if outcome is not None:
                self._prove(self.upper, outcome)

    def partition(self) -> Partition:
        """Return the best plan as a partition; in free order its stages stand on devices that it names."""
        instance, stages = self._instance, self.stages
        assert stages is not None
        classes = [devices.index(1) for _, _, devices in stages]
        places = list(range(len(stages)))
        if not self._free:
            places, lead = [], 0
            for c in classes:
                lead = self._search.class_of.index(c, lead) + 1
                places.append(lead - 1)
        stage = np.empty(instance.op_count, dtype=np.int32)
        for place, (begin, end, _) in zip(places, stages, strict=True):
            stage[instance.order[begin:end]] = place
        devices = devices_of(instance, classes) if self._free else range(instance.k)
        return PlacedPartition.on(instance, stage, devices)

    def _refuted_by_prices(self, values: list[int]) -> int:
        """Return the first of the values, ascending, that prices found do not refute, and keep the proof below it."""
        low, high = 0, len(values)
        best: Prices | None = None
        while low < high:
            middle = (low + high) // 2
            prices = self._pricing.price(StageChoices.within(self._costs, values[middle]))
            self.looked_at += 1
            if prices.refute:
                low, best = middle + 1, prices
            else:
                high = middle
        if best is not None and low < len(values):
            self._prove(values[low], FoundLabels(None, []), best)
        return low

    def _decide(self, limit: int) -> FoundLabels | None:
        """Return the outcome of a search for a plan within a limit; None if it came to no end."""
        self.looked_at += 1
        self._limits.observer.evaluated(1)
        choices = StageChoices.within(self._costs, limit)
        try:
            if not self._free:
                return self._search.in_fixed_order(choices)
            self._prices = self._pricing.price(choices)
            return self._search.in_any_order(choices, self._prices)
        except TooManyLabels:
            return None

    def _prove(self, cutoff: int, found: FoundLabels, prices: Prices | None = None) -> None:
        """Keep the proof that no plan stays below a cutoff."""
        proof: dict[str, Any] = {
            "cutoff": cutoff,
            "k": self._instance.most_used,
            "order": self._instance.machine.order,
            "labels": found.count,
            "digest": found.digest(),
        }
        if self._free:
            prices = prices or self._prices
            machine = self._instance.machine
            names = [machine.names[machine.class_of.index(c)] for c in range(len(self._counts))]
            proof["prices"] = dict(zip(names, prices.by_class, strict=True))
            proof["price_of_any"] = prices.of_any
        self.bound = LowerBound(cutoff, DOWNSET, Tier.ENUMERATED, proof)
        self._limits.observer.bound(cutoff)
