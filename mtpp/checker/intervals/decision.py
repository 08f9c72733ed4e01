"""Decision whether there is a plan of intervals whose stages and latency stay within limits, in plain Python integers.

Without a limit on the latency: for each position the numbers of devices of each class that can have had the ops before
it, as bits of an integer; in fixed order the numbers of leading devices, and of those used. With one: the least latency
for each of these, as far as the rest can be within the limit at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from mtpp.checker.intervals.interval_costs import Costs


@dataclass(frozen=True)
class Line:
    """Devices of a machine.

    Attributes
    ----------
    class_of
        Class of each device, from 0.
    free
        Whether stages may stand on them in any order.
    most, least
        Devices that may and that have to be used.
    """

    class_of: Sequence[int]
    free: bool
    most: int
    least: int = 1

    @property
    def counted(self) -> bool:
        """Whether it is all the same which devices of a class are used."""
        return self.free or max(self.class_of) == 0

    @cached_property
    def counts(self) -> list[int]:
        """Devices of each class."""
        return [list(self.class_of).count(c) for c in range(max(self.class_of) + 1)]

    @property
    def ways(self) -> int:
        """Ways to have used some devices of each class."""
        return prod(count + 1 for count in self.counts) if self.counted else 1


@dataclass(frozen=True)
class Stages:
    """Stages that each class of devices may have.

    Attributes
    ----------
    ticks
        For each class the cost of every interval as each of its alternatives.
    latency
        The same for the latency; in most plans these are the same numbers.
    """

    op_count: int
    ticks: Sequence[Sequence[Costs]]
    latency: Sequence[Sequence[Costs]]

    def within(self, most: int | None) -> list[list[list[tuple[int, int]]]]:
        """Return end and least latency of all stages of a class by their begin, of at most so many ticks each."""
        found = []
        for own, slow in zip(self.ticks, self.latency, strict=True):
            rows: list[list[tuple[int, int]]] = []
            for begin in range(self.op_count):
                ends: dict[int, int] = {}
                for costs, times in zip(own, slow, strict=True):
                    for end in range(begin + 1, self.op_count + 1):
                        cost, time = costs[begin][end], times[begin][end]
                        if cost is not None and time is not None and (most is None or cost <= most):
                            ends[end] = min(time, ends.get(end, time))
                rows.append(sorted(ends.items()))
            found.append(rows)
        return found


def plan_exists(
    stages: Stages,
    line: Line,
    *,
    most: int | None = None,
    latency: int | None = None,
    prices: Sequence[int] = (),
    price_of_any: int = 0,
) -> bool:
    """Tell whether there is a plan with stages of at most *most* ticks, which together take at most *latency*.

    Parameters
    ----------
    prices, price_of_any
        That each device pays besides its latency, by class, in free order: any are sound. A plan's devices pay at most
        Σ price · count + price_of_any · devices that may be used.
    """
    ends = stages.within(most)
    if not _any_plan(ends, stages.op_count, line):
        return False
    if latency is None:
        return True
    if line.counted:
        own = list(prices) or [0] * len(line.counts)
        return _within_latency(ends, stages.op_count, line, latency, own, price_of_any)
    return _within_latency_in_order(ends, stages.op_count, line, latency)


def _any_plan(ends: Sequence[Sequence[Sequence[tuple[int, int]]]], op_count: int, line: Line) -> bool:
    """Decide by bits, whatever the latency."""
    width = line.most + 1
    if line.counted:
        counts, shifts, size = line.counts, [], 1
        for count in counts:
            shifts.append(size)
            size *= count + 1
        room = [0] * len(counts)
        end_bits = 0
        for cell, used in _cells(counts):
            bit = 1 << sum(a * b for a, b in zip(used, shifts, strict=True))
            if line.least <= cell <= line.most:
                end_bits |= bit
            for c, count in enumerate(counts):
                if used[c] < count and cell < line.most:
                    room[c] |= bit

        def following(bits: int, c: int) -> int:
            return (bits & room[c]) << shifts[c]

        def skipped(bits: int) -> int:
            return bits

    else:
        devices = len(line.class_of)
        places = [[i for i, own in enumerate(line.class_of) if own == c] for c in range(len(line.counts))]
        every = (1 << width) - 1
        end_bits = sum(1 << used for used in range(line.least, line.most + 1)) << (width * devices)

        def following(bits: int, c: int) -> int:
            after = 0
            for i in places[c]:
                used = bits >> (width * i) & every
                after |= (used << 1 & every) << (width * (i + 1))
            return after

        def skipped(bits: int) -> int:
            for i in range(devices):
                bits |= (bits >> (width * i) & every) << (width * (i + 1))
            return bits

    return _reached(ends, op_count, following, skipped) & end_bits != 0


def _reached(
    ends: Sequence[Sequence[Sequence[tuple[int, int]]]],
    op_count: int,
    following: Callable[[int, int], int],
    skipped: Callable[[int], int],
) -> int:
    """Return the bits of the end of the graph."""
    bits = [1] + [0] * op_count
    for begin in range(op_count):
        here = skipped(bits[begin])
        if not here:
            continue
        for c, rows in enumerate(ends):
            if not rows[begin]:
                continue
            after = following(here, c)
            for end, _ in rows[begin] if after else ():
                bits[end] |= after
    return skipped(bits[op_count])


def _cells(counts: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield all ways to have used some devices of each class, with their number."""
    used = [0] * len(counts)
    while True:
        yield sum(used), list(used)
        for c, count in enumerate(counts):
            if used[c] < count:
                used[c] += 1
                break
            used[c] = 0
        else:
            return


def _least_rest(
    ends: Sequence[Sequence[Sequence[tuple[int, int]]]], op_count: int, prices: Sequence[int]
) -> list[int | None]:
    """Return the least latency with prices from each position to the end, whatever devices are left; None: no way."""
    rest: list[int | None] = [None] * op_count + [0]
    for begin in reversed(range(op_count)):
        found = [
            time + price + after
            for rows, price in zip(ends, prices, strict=True)
            for end, time in rows[begin]
            if (after := rest[end]) is not None
        ]
        rest[begin] = min(found, default=None)
    return rest


def _within_latency(
    ends: Sequence[Sequence[Sequence[tuple[int, int]]]],
    op_count: int,
    line: Line,
    latency: int,
    prices: Sequence[int],
    price_of_any: int,
) -> bool:
    """Decide by the least latency of each way to have used devices in free order."""
    each = [price + price_of_any for price in prices]
    budget = latency + price_of_any * line.most
    budget += sum(price * count for price, count in zip(prices, line.counts, strict=True))
    rest = _least_rest(ends, op_count, each)
    nothing = (0,) * len(each)
    labels: list[dict[tuple[int, ...], int]] = [{nothing: 0}, *({} for _ in range(op_count))]
    for begin in range(op_count):
        for used, spent in labels[begin].items():
            paid = spent + sum(price * count for price, count in zip(each, used, strict=True))
            if sum(used) == line.most:
                continue
            for c, rows in enumerate(ends):
                if used[c] == line.counts[c]:
                    continue
                after = (*used[:c], used[c] + 1, *used[c + 1 :])
                for end, time in rows[begin]:
                    left = rest[end]
                    if left is None or paid + each[c] + time + left > budget:
                        continue
                    known = labels[end].get(after)
                    if known is None or spent + time < known:
                        labels[end][after] = spent + time
    return any(line.least <= sum(used) and spent <= latency for used, spent in labels[op_count].items())


def _within_latency_in_order(
    ends: Sequence[Sequence[Sequence[tuple[int, int]]]], op_count: int, line: Line, latency: int
) -> bool:
    """Decide by the least latency of leading devices, and of how many of them are used."""
    rest = _least_rest(ends, op_count, [0] * len(ends))
    matters = line.most < len(line.class_of) or line.least > 1
    labels: dict[tuple[int, int], int] = {(0, 0): 0}  # position and devices used
    for c in line.class_of:
        after = dict(labels)
        for (begin, used), spent in labels.items():
            if begin == op_count or used == line.most:
                continue
            number = used + 1 if matters else 0
            for end, time in ends[c][begin]:
                left = rest[end]
                if left is None or spent + time + left > latency:
                    continue
                key = (end, number)
                if spent + time < after.get(key, spent + time + 1):
                    after[key] = spent + time
        labels = after
    least = line.least if matters else 0
    return any(end == op_count and used >= least and spent <= latency for (end, used), spent in labels.items())
