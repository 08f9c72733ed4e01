"""The least sum of the costs of a chain's stages, none of which costs more than a limit: the latency of its plans.

Where devices stand in the order of the list, or ranges cost the same wherever they begin, devices are looked at one
after the other: the least sum for the ops before each position, by the number of devices used, is all that the others
need to know. Else a *label* of a position is a number of devices of each class with the least sum on these. Prices
q_c ≥ 0 of a device of each class, and q of any, leave labels out: what follows position p on v_c devices of each class
costs at least the cheapest stages from p at f_c + q_c + q, less Σ q_c · v_c and q · Σ v_c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.unequal.chains.labels import Stage, TooManyLabels
from mtpp.solvers.unequal.chains.layer_sums import lengths_anywhere
from mtpp.solvers.unequal.chains.range_costs import NEVER, RangeCosts

_ROUNDS = 150
"""Of steps along subgradients, for prices."""

_BETWEEN_LOOKS = 200

Label = tuple[int, ...]


@dataclass(frozen=True)
class DevicePrices:
    """Prices in ticks of a device of each class, and of any device."""

    by_class: tuple[int, ...]
    of_any: int

    @property
    def each(self) -> Label:
        """What a device of each class costs in all."""
        return tuple(price + self.of_any for price in self.by_class)


@dataclass(frozen=True)
class LeastTotal:
    """The plan of the least sum within some limits; *stages* is None where there is none.

    Attributes
    ----------
    total
        Sum of the costs of the stages.
    prices
        That labels were left out by; None where devices were looked at one after the other.
    """

    stages: list[Stage] | None
    total: int
    prices: DevicePrices | None


@dataclass(frozen=True, eq=False)
class TotalSearch:
    """A chain and the devices of its stages, each on one.

    Attributes
    ----------
    class_of
        Class of each device, in the order of the list.
    most
        Devices that may be used.
    free
        Whether they may stand in any order.
    most_labels
        That a search may keep.
    ended
        Tells whether its time is over.
    known_prices
        Best bound, prices and price of the cheapest stages from each position, by limit on stages.
    """

    costs: RangeCosts
    class_of: tuple[int, ...]
    most: int
    free: bool
    most_labels: int
    ended: Callable[[], bool]
    known_prices: dict[int, tuple[int, DevicePrices, list[int]]] = field(default_factory=dict)

    @cached_property
    def in_list(self) -> bool:
        """Whether devices may be looked at one after the other, as the list has them."""
        return not self.free or lengths_anywhere(self.costs.ticks) is not None

    def least(self, most_stage: int, most_total: int) -> LeastTotal:
        """Return the plan with the least sum, of those with no stage and no sum above the limits.

        Raises
        ------
        TooManyLabels
            If the labels are more than may be kept, or the time is over.
        """
        ticks = self._ticks_within(most_stage)
        if self.in_list:
            return self._in_list(ticks, most_total)
        return self._in_any_order(ticks, most_total, *self._prices_within(most_stage)[1:])

    def floor(self, most_stage: int) -> int:
        """Return a sum that no plan within a limit on stages is below."""
        if self.in_list:
            return self._in_list(self._ticks_within(most_stage), NEVER).total
        return max(0, self._prices_within(most_stage)[0])

    def _ticks_within(self, most_stage: int) -> Int64Array:
        """Return the costs of ranges, those above a limit impossible."""
        return np.where(self.costs.ticks <= most_stage, self.costs.ticks, NEVER)

    def _in_list(self, ticks: Int64Array, most_total: int) -> LeastTotal:
        """Look at the devices one after the other; O(devices · most · n · longest)."""
        _, n, longest = ticks.shape
        limited = self.most < len(self.class_of)
        best = np.full((self.most + 1 if limited else 1, n + 1), NEVER, dtype=np.int64)
        best[0, 0] = 0
        sizes = []
        for c in self.class_of:
            if self.ended():
                raise TooManyLabels
            before, size_of = best.copy(), np.zeros(best.shape, dtype=np.int64)
            source, target = (before[:-1], best[1:]) if limited else (before, best)
            into = size_of[1:] if limited else size_of
            for size in range(1, min(longest, n) + 1):
                cost = ticks[c, : n - size + 1, size - 1]
                start = source[:, : n - size + 1]
                found = np.where((start < NEVER) & (cost < NEVER), start + np.minimum(cost, NEVER // 2), NEVER)
                better = found < target[:, size:]
                target[:, size:][better] = found[better]
                into[:, size:][better] = size
            sizes.append(size_of)
        used = int(best[:, n].argmin())
        total = int(best[used, n])
        if total > most_total or total >= NEVER:
            return LeastTotal(None, total, None)
        return LeastTotal(self._stages(sizes, used, n, limited=limited), total, None)

    def _stages(self, sizes: Sequence[Int64Array], used: int, end: int, *, limited: bool) -> list[Stage]:
        """Return the stages behind a sum, given the size of the last stage where each device made it less."""
        lengths = [0] * len(self.class_of)
        for j in range(len(self.class_of) - 1, -1, -1):
            lengths[j] = int(sizes[j][used, end])
            if lengths[j]:
                end, used = end - lengths[j], used - limited
        stages: list[Stage] = []
        begin = 0
        for j, length in enumerate(lengths):
            if length:
                stages.append((begin, begin + length, self._device(j)))
                begin += length
        return stages

    def _device(self, j: int) -> Label:
        """Return a device as stages name it: in free order by the class, in fixed order by its number."""
        return tuple(int(c == self.class_of[j]) for c in range(max(self.class_of) + 1)) if self.free else (j,)

    def _in_any_order(
        self, ticks: Int64Array, most_total: int, prices: DevicePrices, rest: Sequence[int]
    ) -> LeastTotal:
        """Keep the least sum for each position and number of devices of each class, as far as prices leave them."""
        classes, n, longest = ticks.shape
        counts = [self.class_of.count(c) for c in range(classes)]
        each = prices.each
        budget = sum(q * count for q, count in zip(prices.by_class, counts, strict=True)) + prices.of_any * self.most
        found: list[dict[Label, tuple[int, int, int]]] = [{} for _ in range(n + 1)]  # sum, size and class of the last
        found[0][(0,) * classes] = (0, 0, 0)
        made = 0
        for p in range(n):
            front = _least(found[p])
            found[p] = front
            for label, (total, _, _) in front.items():
                paid = total + sum(q * used for q, used in zip(each, label, strict=True)) - budget
                if sum(label) >= self.most:
                    continue
                for c in range(classes):
                    if label[c] == counts[c]:
                        continue
                    new = (*label[:c], label[c] + 1, *label[c + 1 :])
                    for size in range(1, min(longest, n - p) + 1):
                        cost = int(ticks[c, p, size - 1])
                        after = rest[p + size]
                        if cost >= NEVER or after >= NEVER:
                            continue
                        if total + cost > most_total or paid + cost + each[c] + after > most_total:
                            continue
                        known = found[p + size].get(new)
                        if known is None or total + cost < known[0]:
                            made += known is None
                            found[p + size][new] = (total + cost, size, c)
                if made > self.most_labels or (made % _BETWEEN_LOOKS == 0 and self.ended()):
                    raise TooManyLabels
        if not found[n]:
            return LeastTotal(None, NEVER, prices)
        label = min(found[n], key=lambda one: found[n][one][0])
        total = found[n][label][0]
        stages: list[Stage] = []
        p = n
        while p:
            _, size, c = found[p][label]
            stages.append((p - size, p, tuple(int(c == d) for d in range(classes))))
            p, label = p - size, (*label[:c], label[c] - 1, *label[c + 1 :])
        return LeastTotal(stages[::-1], total, prices)

    def _prices_within(self, most_stage: int) -> tuple[int, DevicePrices, list[int]]:
        """Return good prices for stages within a limit, as :meth:`_priced` does, the last ones again at once."""
        if most_stage not in self.known_prices:
            self.known_prices.clear()
            self.known_prices[most_stage] = self._priced(self._ticks_within(most_stage))
        return self.known_prices[most_stage]

    def _priced(self, ticks: Int64Array) -> tuple[int, DevicePrices, list[int]]:
        """Return the best bound found, its prices, and the price of the cheapest stages from each position."""
        classes, _, _ = ticks.shape
        counts = np.array([self.class_of.count(c) for c in range(classes)], dtype=np.float64)
        most = float(self.most)
        q, of_any = np.zeros(classes), 0.0
        best: tuple[int, DevicePrices, list[int]] | None = None
        step, stale = 0.5, 0
        scale = float(max(1, ticks[ticks < NEVER].max(initial=1)))
        for _ in range(_ROUNDS):
            prices = DevicePrices(tuple(int(one) for one in q), int(of_any))
            rest, used = _cheapest(ticks, prices.each)
            if rest[0] >= NEVER:
                return 0, prices, rest
            budget = sum(int(a) * int(b) for a, b in zip(prices.by_class, counts, strict=True))
            value = rest[0] - budget - prices.of_any * self.most
            if best is None or value > best[0]:
                best, stale = (value, prices, rest), 0
            else:
                stale += 1
                if stale >= 8:
                    step, stale = step / 2, 0
            over = np.array(used) - counts
            spare = float(sum(used)) - most
            length = float(np.sqrt(np.square(over).sum() + spare * spare)) or 1.0
            if self.ended() or (not over.clip(min=0).any() and spare <= 0 and not q.any() and not of_any):
                break
            q = np.maximum(0, q + step * scale * over / length)
            of_any = max(0.0, of_any + step * scale * spare / length)
        assert best is not None
        return best


def _cheapest(ticks: Int64Array, each: Label) -> tuple[list[int], list[int]]:
    """Return the price of the cheapest stages from each position to the end, and the devices of each class in them."""
    classes, n, longest = ticks.shape
    priced = np.where(ticks < NEVER, ticks + np.array(each, dtype=np.int64)[:, None, None], NEVER)
    by_class = priced.argmin(axis=0)
    least = priced.min(axis=0)
    rest = np.full(n + 1, NEVER, dtype=np.int64)
    rest[n] = 0
    sizes = np.zeros(n, dtype=np.int64)
    for p in range(n - 1, -1, -1):
        most = min(longest, n - p)
        after = rest[p + 1 : p + 1 + most]
        possible = (after < NEVER) & (least[p, :most] < NEVER)
        found = np.where(possible, after + np.minimum(least[p, :most], NEVER // 2), NEVER)
        at = int(found.argmin())
        rest[p], sizes[p] = found[at], at + 1
    used = [0] * classes
    p = 0
    while p < n and rest[0] < NEVER:
        used[int(by_class[p, sizes[p] - 1])] += 1
        p += int(sizes[p])
    return rest.tolist(), used


def _least(labels: dict[Label, tuple[int, int, int]]) -> dict[Label, tuple[int, int, int]]:
    """Return the labels that no other one makes needless, with as few devices of each class and no larger a sum."""
    kept: dict[Label, tuple[int, int, int]] = {}
    for label in sorted(labels, key=lambda one: (sum(one), labels[one][0])):
        total = labels[label][0]
        if not any(
            other[0] <= total and all(a <= b for a, b in zip(one, label, strict=True)) for one, other in kept.items()
        ):
            kept[label] = labels[label]
    return kept
