"""The best plan of a chain on devices with times of stages, and its proof: prices first, then labels within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import inf
from typing import Any

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.names import DOWNSET
from mtpp.solvers.downsets.prover import DEFAULT_MEMORY_BYTES
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.unequal.chains.device_sets import TooManySets
from mtpp.solvers.unequal.chains.labels import FoundLabels, LabelSearch, Stage, TooManyLabels
from mtpp.solvers.unequal.chains.layer_sums import layers_of_devices, lengths_anywhere
from mtpp.solvers.unequal.chains.prices import Prices, Pricing
from mtpp.solvers.unequal.chains.range_costs import RangeCosts
from mtpp.solvers.unequal.chains.stage_choices import SharingDevices, SingleDevices, StageChoices

_LABEL_BYTES = 400

_FEW_LOOKS = 300
"""Labels that a search goes on from before plans of larger bottlenecks are looked for."""

_FEW_SETS = 6
"""Sets of devices that such a search tries for a stage."""

_MOST_LOOKS = 5_000
"""The same of a search at most, where there is no limit on time."""

_STEP_GROWS = 8
"""Limits grow by so many times as many ticks above those that prices refute, until there is a plan."""


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
    stopped = StopReason.OPTIMAL if search.closed else limits.stop or StopReason.BUDGET
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
        alone = self._free and not instance.replicas
        self._anywhere = lengths_anywhere(self._costs.ticks) if alone else None
        memory = limits.memory_bytes or DEFAULT_MEMORY_BYTES
        most = memory // (_LABEL_BYTES + 16 * len(self._counts))
        self._search = LabelSearch(class_of, instance.most_used, most, limits.ended)
        self._most_looks = _MOST_LOOKS if limits.deadline.limit_s is None and instance.replicas else inf
        self._pricing = Pricing(self._counts, instance.most_used)
        self.stages: list[Stage] | None = None
        self.upper = 0
        self.bound: LowerBound | None = None
        self.closed = False
        self.looked_at = 0

    def run(self) -> None:
        """Search until the best plan is found and proven, or the limits say so."""
        values: Sequence[int] = self._costs.values.tolist()
        if self._instance.replicas and values:
            values = range(values[-1] + 1)  # with more devices stages may cost any number of ticks
        low, high = 0, len(values)  # all below values[low] is refuted; values[high] has a plan
        if self._instance.replicas:
            high = self._without_replicas(high)
        if self._free and self._anywhere is None:
            low = self._refuted_by_prices(values, high)
        probe, step, improved = low, 1, False
        while low < high and not (self.looked_at and self._limits.ended()):
            outcome = self._decide(values[probe], self._most_looks if improved else _FEW_LOOKS)
            if outcome is None and improved:
                return
            if outcome is None:
                high, improved = self._improved(values, low, high), True
                continue
            if outcome.stages is None:
                low = probe + 1
                following = values[low] if low < len(values) else values[-1] + 1
                self._prove(following, outcome)
            else:
                high, self.stages, self.upper = probe, outcome.stages, values[probe]
                self._tell()
            step *= _STEP_GROWS
            probe = min(low + step, (low + high) // 2)
        self.closed = low == high
        if (
            self.closed
            and self.stages is not None
            and self.upper > 0
            and (self.bound is None or self.bound.value < self.upper)
        ):
            outcome = self._decide(self.upper - 1)
            if outcome is not None:
                self._prove(self.upper, outcome)

    def partition(self) -> Partition:
        """Return the best plan as a partition on devices that it names."""
        instance, stages = self._instance, self.stages
        assert stages is not None
        sets = [devices for _, _, devices in stages]
        if self._free:
            left = {c: [j for j, other in enumerate(self._search.class_of) if other == c] for c in range(len(sets[0]))}
            sets = [tuple(left[c].pop(0) for c, count in enumerate(one) for _ in range(count)) for one in sets]
        stage = np.empty(instance.op_count, dtype=np.int32)
        for number, (begin, end, _) in enumerate(stages):
            stage[instance.order[begin:end]] = number
        if instance.replicas:
            return ReplicatedPartition.on(instance, stage, sets)
        used = [devices[0] for devices in sets]
        if not self._free:
            return PlacedPartition.on(instance, np.array(used, dtype=np.int32)[stage], range(instance.k))
        return PlacedPartition.on(instance, stage, [*used, *(j for j in range(instance.k) if j not in set(used))])

    def _tell(self) -> None:
        """Tell of the best plan so far."""
        self._limits.observer.incumbent(self.upper)
        found = self.partition()
        self._limits.keeper.offer(self.upper, DOWNSET, lambda: found)

    def _without_replicas(self, high: int) -> int:
        """Take the best plan with a device for each stage, if one is found; return its bottleneck, else *high*."""
        quiet = replace(self._limits, keeper=SearchLimits(UNLIMITED).keeper)
        inner = ChainSearch(replace(self._instance, replicas=False), quiet)
        inner.run()
        self.looked_at += inner.looked_at
        if inner.stages is None:
            return high
        self.stages, self.upper = inner.stages, inner.upper
        self._tell()
        return inner.upper

    def _refuted_by_prices(self, values: Sequence[int], high: int) -> int:
        """Return the first of some values that prices found do not refute, and keep the proof below it.

        Parameters
        ----------
        values
            Ascending.
        high
            Number of the first one that has a plan, or of all.
        """
        low = 0
        best: Prices | None = None
        while low < high and not (self.looked_at and self._limits.ended()):
            middle = (low + high) // 2
            prices = self._pricing.price(self._within(values[middle]))
            self.looked_at += 1
            if prices.refute:
                low, best = middle + 1, prices
            else:
                high = middle
        if best is not None and low < len(values):
            self._prove(values[low], FoundLabels(None, []), best)
        return low

    def _improved(self, values: Sequence[int], low: int, high: int) -> int:
        """Look for better plans by short searches; return the number of the least value with a plan."""
        while low < high and not self._limits.ended():
            middle = (low + high) // 2
            outcome = self._decide(values[middle], _FEW_LOOKS, _FEW_SETS)
            if outcome is None or outcome.stages is None:
                low = middle + 1
            else:
                high, self.stages, self.upper = middle, outcome.stages, values[middle]
                self._tell()
        return high

    def _decide(self, limit: int, most_looks: float = inf, few_sets: int | None = None) -> FoundLabels | None:
        """Return the outcome of a search for a plan within a limit; None if it came to no end."""
        self.looked_at += 1
        self._limits.observer.evaluated(1)
        if self._anywhere is not None:
            return FoundLabels(self._stages_of_sums(limit), [])
        choices, search = self._within(limit), replace(self._search, most_looks=most_looks, few_sets=few_sets)
        try:
            if not self._free:
                return search.in_fixed_order(choices)
            self._prices = self._pricing.price(choices)
            return search.in_any_order(choices, self._prices)
        except (TooManyLabels, TooManySets):
            return None

    def _stages_of_sums(self, limit: int) -> list[Stage] | None:
        """Return stages within a limit where ranges cost the same wherever they begin; None: there are none."""
        assert self._anywhere is not None
        class_of, layers = self._search.class_of, self._instance.op_count
        lengths = [(np.flatnonzero(row <= limit) + 1).tolist() for row in self._anywhere]
        sizes = layers_of_devices(lengths, class_of, layers, self._instance.most_used)
        units = [tuple(int(c == d) for d in range(len(lengths))) for c in range(len(lengths))]
        ranges = zip(pairwise(accumulate(sizes, initial=0)), class_of, strict=False)
        return [(begin, end, units[c]) for (begin, end), c in ranges if begin < end] or None

    def _within(self, limit: int) -> StageChoices:
        """Return the choices for stages of at most *limit* ticks."""
        if self._instance.replicas:
            return SharingDevices(self._costs, limit, self._counts)
        return SingleDevices(self._costs, limit)

    def _prove(self, cutoff: int, found: FoundLabels, prices: Prices | None = None) -> None:
        """Keep the proof that no plan stays below a cutoff."""
        proof: dict[str, Any] = {
            "cutoff": cutoff,
            "k": self._instance.most_used,
            "order": self._instance.machine.order,
            **({"replicated": True} if self._instance.replicas else {}),
            "labels": found.count,
            "digest": found.digest(),
        }
        if self._anywhere is not None:
            proof = {key: proof[key] for key in ("cutoff", "k", "order")} | {"rule": "sums"}
        elif self._free:
            prices = prices or self._prices
            machine = self._instance.machine
            names = [machine.names[machine.class_of.index(c)] for c in range(len(self._counts))]
            proof["prices"] = dict(zip(names, prices.by_class, strict=True))
            proof["price_of_any"] = prices.of_any
        self.bound = LowerBound(cutoff, DOWNSET, Tier.ENUMERATED, proof)
        self._limits.observer.bound(cutoff)
        self._limits.keeper.prove(self.bound)
