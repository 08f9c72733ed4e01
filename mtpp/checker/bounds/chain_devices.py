"""A chain of ops and the devices that may run its ranges below a cutoff, one at a time or several in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import Any

from mtpp.checker.claim import BoundClaim
from mtpp.checker.graph import TICKS_PER_S, TickGraph
from mtpp.checker.machine import STAGE_TIMES

Ticks = tuple[int | None, ...]
"""Cost of a range on a device of each class; None: it may not hold it."""


@dataclass(frozen=True)
class ChainDevices:
    """A chain, and devices on which its stages may cost less than so many ticks.

    Attributes
    ----------
    names
        Of the first device of each class.
    cost
        By class of devices: f(begin, end) of the ops between two positions of the chain; None: impossible.
    class_of
        Class of each device of the list.
    most
        Devices that may be used.
    sharing
        Whether a stage may stand on several devices.
    """

    ops: int
    longest: int
    names: Sequence[str]
    cost: Sequence[Callable[[int, int], int | None]]
    class_of: Sequence[int]
    most: int
    cutoff: int
    sharing: bool

    @classmethod
    def of(cls, claim: BoundClaim, *, sharing: bool) -> ChainDevices:
        """Return the devices of a claim, whose graph is one chain."""
        assert claim.by_class is not None
        ops = claim.graph.op_count
        costs = [_range_cost(graph, system) for graph, system in claim.by_class]
        longest = max(min(ops, len(system.get(STAGE_TIMES, range(ops)))) for _, system in claim.by_class)
        names = [system["name"] for _, system in claim.by_class]
        return cls(ops, longest, names, costs, list(claim.class_of), claim.k, claim.value, sharing)

    @cached_property
    def counts(self) -> list[int]:
        """Devices of each class."""
        return [list(self.class_of).count(c) for c in range(len(self.cost))]

    @cached_property
    def ending(self) -> list[list[tuple[int, Ticks]]]:
        """By position: where ranges that end there may begin, with their costs."""
        found: list[list[tuple[int, Ticks]]] = [[] for _ in range(self.ops + 1)]
        for end in range(1, self.ops + 1):
            for begin in range(max(0, end - self.longest), end):
                ticks = tuple(cost(begin, end) for cost in self.cost)
                if any(one is not None for one in ticks):
                    found[end].append((begin, ticks))
        return found

    def lengths_anywhere(self) -> list[list[int]] | None:
        """Return by class how many ops a device runs below the cutoff; None where that depends on their place."""
        lengths: list[list[int]] = []
        for cost in self.cost:
            lengths.append([])
            for length in range(1, self.longest + 1):
                ticks = {cost(begin, begin + length) for begin in range(self.ops - length + 1)}
                if len(ticks) > 1:
                    return None
                one = ticks.pop()
                if one is not None and one < self.cutoff:
                    lengths[-1].append(length)
        return lengths

    def depends_on_place(self) -> bool:
        """Tell whether so many ops cost another time where they begin elsewhere."""
        return any(
            len({cost(begin, begin + length) for begin in range(self.ops - length + 1)}) > 1
            for cost in self.cost
            for length in range(1, self.longest + 1)
        )

    def cheapest(self, prices: Sequence[int]) -> list[int | None]:
        """Return the price of the cheapest stages from each position to the end; None where there are none."""
        rest: list[int | None] = [None] * self.ops + [0]
        least: dict[Ticks, int | None] = {}
        for end in range(self.ops, 0, -1):
            after = rest[end]
            if after is None:
                continue
            for begin, ticks in self.ending[end]:
                if ticks not in least:
                    least[ticks] = self.cheapest_set(ticks, prices)
                price, known = least[ticks], rest[begin]
                if price is not None:
                    rest[begin] = after + price if known is None else min(known, after + price)
        return rest

    def cheapest_set(self, ticks: Ticks, prices: Sequence[int]) -> int | None:
        """Return the price of the cheapest devices that suffice for a range; None if none do."""
        best: list[int] = []
        for _, price in self._sufficient(ticks, prices, best):
            best[:] = [min(price, *best)] if best else [price]
        return best[0] if best else None

    def sets(self, ticks: Ticks, prices: Sequence[int], most: int) -> list[tuple[int, ...]]:
        """Return the numbers of devices that suffice for a range, with none too many, and cost at most so much."""
        share = [self._share(one) for one in ticks]
        found = []
        for numbers, price in self._sufficient(ticks, prices, [most]):
            done = sum(part * number for part, number in zip(share, numbers, strict=True))
            needed = all(done - part < 1 for part, number in zip(share, numbers, strict=True) if number)
            if needed and price <= most:
                found.append(numbers)
        return found

    def fewest(self, ticks: Ticks, classes: Iterable[int]) -> int | None:
        """Return the fewest of some devices, by class, that suffice for a range; None if all do not."""
        missing = Fraction(1)
        shares = sorted((self._share(ticks[c]) for c in classes), reverse=True)
        for number, share in enumerate(shares, 1):
            missing -= share
            if missing <= 0:
                return number
        return None

    def _share(self, ticks: int | None) -> Fraction:
        """Return the share of requests that a device serves of a stage that costs so much there."""
        if ticks is None:
            return Fraction(0)
        if ticks < self.cutoff:
            return Fraction(1)
        return Fraction(self.cutoff - 1, ticks) if self.sharing else Fraction(0)

    def _sufficient(
        self, ticks: Ticks, prices: Sequence[int], most: Sequence[int]
    ) -> Iterable[tuple[tuple[int, ...], int]]:
        """Yield numbers of devices of each class that suffice, with their price: all up to the price in *most*."""
        able = [(c, self._share(one)) for c, one in enumerate(ticks) if self._share(one) > 0]
        able.sort(key=lambda one: Fraction(prices[one[0]]) / one[1])
        stack: list[tuple[int, Fraction, int, tuple[int, ...]]] = [(0, Fraction(1), 0, ())]
        while stack:
            at, missing, paid, chosen = stack.pop()
            if missing <= 0:
                numbers = [0] * len(ticks)
                for (c, _), number in zip(able, chosen, strict=False):
                    numbers[c] = number
                yield tuple(numbers), paid
                continue
            if at == len(able):
                continue
            c, share = able[at]
            if most and paid + missing * prices[c] / share > most[0]:  # later classes cost no less a share
                continue
            for number in range(min(self.counts[c], -(-missing // share)) + 1):
                stack.append((at + 1, missing - number * share, paid + number * prices[c], (*chosen, number)))


def _range_cost(graph: TickGraph, system: Mapping[str, Any]) -> Callable[[int, int], int | None]:
    """Return f(begin, end) of the ops between two positions of a chain on a device."""
    at = {v: i for i, v in enumerate(graph.order)}
    own = [0, *accumulate(graph.own_bytes[v] for v in graph.order)]
    work = [0, *accumulate(graph.work[v] for v in graph.order)]
    passing = [0] * (graph.op_count + 1)
    for t, maker in enumerate(graph.producer):
        if graph.consumers[t]:
            passing[at[maker] + 1] += graph.transfer[t]
    weights = [(size, [at[v] for v in readers]) for _, size, readers in graph.weights]
    states = [(size * system.get("sequences", 1), [at[v] for v in readers]) for _, size, readers in graph.states]
    times, limit = system.get(STAGE_TIMES), system["stage_memory_bytes"]
    reserve, fast = system["activation_reserve_bytes"], system["fast_memory_bytes"]
    rate = Fraction(system["bandwidth_bytes_per_s"])  # of a class of devices, its link's speed included

    def read(shared: Iterable[tuple[int, list[int]]], begin: int, end: int) -> int:
        return sum(size for size, readers in shared if any(begin <= i < end for i in readers))

    def cost(begin: int, end: int) -> int | None:
        if times is not None and end - begin > len(times):
            return None
        held = 0 if limit is None and fast is None else own[end] - own[begin] + read(weights, begin, end) + reserve
        if limit is not None and held + read(states, begin, end) > limit:
            return None
        if times is not None:
            ticks: int = times[end - begin - 1]
            return ticks
        over = 0 if fast is None else ceil(Fraction(max(0, held - fast) * TICKS_PER_S) / rate)
        return work[end] - work[begin] + passing[begin] + (passing[end] if end < len(at) else 0) + over

    return cost
