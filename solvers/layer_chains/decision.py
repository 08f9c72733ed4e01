"""Decision whether a chain has a plan within a bottleneck, by sets of positions as bits.

For each position in the chain there is a set of *counts*: how many devices of each class suffice for the ops before it.
In fixed order: how many leading devices of the list, and how many of them are used where that matters. A set is one
integer with a bit for each of its counts; a further stage shifts the bits of its begin onto those of its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.tables import NEVER, ChainTables


@dataclass(frozen=True)
class _Moves:
    """Steps between counts as bits.

    Attributes
    ----------
    steps
        For each class the counts that one more device of it can be used after, and the shift that uses it.
    skips
        Shift that passes over a device in fixed order, with all counts; None in free order.
    accepted
        Counts that are allowed at the end.
    """

    steps: Sequence[tuple[int, int]]
    skips: tuple[int, int, int] | None
    accepted: int

    @classmethod
    def counted(cls, devices: ChainDevices, op_count: int) -> _Moves:
        """Return the steps where only the number of devices of each class matters."""
        counts = devices.counts(op_count)
        strides = [prod(count + 1 for count in counts[:c]) for c in range(len(counts))]
        masks, accepted = [0] * len(counts), 0
        for each in product(*(range(count + 1) for count in counts)):
            bit, used = 1 << sum(a * b for a, b in zip(each, strides, strict=True)), sum(each)
            accepted |= bit if devices.least_used <= used <= devices.most_used else 0
            for c, count in enumerate(counts):
                masks[c] |= bit if each[c] < count and used < devices.most_used else 0
        return cls(list(zip(masks, strides, strict=True)), None, accepted)

    @classmethod
    def leading(cls, devices: ChainDevices) -> _Moves:
        """Return the steps in fixed order: a bit for each number of leading devices, and of those that are used."""
        k = len(devices.class_of)
        width = devices.most_used + 1 if devices.limited else 1
        open_, shift = (1 << (width - 1)) - 1 if devices.limited else 1, width + (width > 1)
        masks = [0] * len(devices.classes)
        for i, c in enumerate(devices.class_of):
            masks[devices.classes.index(c)] |= open_ << (i * width)
        accepted = 1
        if devices.limited:
            accepted = sum(1 << used for used in range(devices.least_used, devices.most_used + 1))
        return cls([(mask, shift) for mask in masks], (width, k, (1 << width * (k + 1)) - 1), accepted << (k * width))

    def closed(self, counts: int) -> int:
        """Return counts with all that leaving out further devices leads to."""
        if self.skips is None:
            return counts
        width, times, every = self.skips
        done = 1
        while done <= times:
            counts |= counts << (width * done) & every
            done *= 2
        return counts


def is_feasible(tables: ChainTables, devices: ChainDevices, most: int | None = None) -> bool:
    """Tell whether there is a plan at all, or one whose stages take at most *most* ticks each.

    Notes
    -----
    O(n² · classes) operations on integers with a bit for each way to have used some devices of each class.
    """
    n = tables.op_count
    limit = NEVER - 1 if most is None else most
    moves = _Moves.counted(devices, n) if devices.counted else _Moves.leading(devices)
    stops = tables.by_class(devices.classes, limit)
    sets = [0] * (n + 1)
    sets[0] = 1
    for start in range(n):
        counts = moves.closed(sets[start])
        if not counts:
            continue
        for c, (mask, shift) in enumerate(moves.steps):
            after = (counts & mask) << shift
            if after:
                for stop in stops[c, start].nonzero()[0].tolist():
                    sets[stop] |= after
    return bool(moves.closed(sets[n]) & moves.accepted)


def least_bottleneck(tables: ChainTables, devices: ChainDevices) -> int | None:
    """Return the least bottleneck of any plan, in ticks; None if there is no plan.

    Decisions as of :func:`is_feasible`, about log2 of the number of costs.
    """
    if not is_feasible(tables, devices):
        return None
    low, high = 0, len(tables.levels) - 1
    while low < high:
        middle = (low + high) // 2
        if is_feasible(tables, devices, int(tables.levels[middle])):
            high = middle
        else:
            low = middle + 1
    return int(tables.levels[low])
