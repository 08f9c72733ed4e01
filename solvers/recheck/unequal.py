"""The search over downsets on devices that differ, run again from its proof's terms.

A *label* of a downset says which devices suffice to run it with no stage above the limit. In fixed order it is the
number of leading devices, with the number of those used where that is limited; in free order the number of devices of
each class. Labels that another one of the same downset makes needless, being no smaller in any number, are dropped. A
downset holds with each op all that it reads from. So every downset inside another one is smaller, and the labels of one
are complete once all smaller ones have been gone on from.

Two rules leave labels out that no partition within the limit needs:

*fit*: measure work by the ticks of one class. A device holds at most so much of it as fits into the limit at the best
rate that any op has there; where a stage reads a tensor from outside, it loses that tensor's time at the same rate. So
what is outside the downset, and at least once the least loss for each tensor that goes there, is at most what the
devices that the label leaves can hold. That has to hold in the ticks of every class, and likewise for parameters.

*maximal*: as in :mod:`mtpp.solvers.recheck.plain`, for ops that are givers on devices of every class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int64Array
from mtpp.solvers.recheck.arrays import ClaimArrays, claim_arrays, stage_limits, work_around
from mtpp.solvers.recheck.claim import DownsetClaim
from mtpp.solvers.recheck.compiled import Watcher
from mtpp.solvers.recheck.label_search import FoundLabels, L, Label, LabelSearch, covers


@dataclass(frozen=True)
class UnequalClaim:
    """The claim that no partition on devices that differ has all of its stages cost at most the limit.

    Attributes
    ----------
    of_class
        The claim as it would be on devices of each class alone; all have the same ops, edges and limit.
    class_of
        Class of each device, in the machine's order.
    most
        Devices that may be used.
    free
        Whether devices may stand in any order.
    """

    of_class: tuple[DownsetClaim, ...]
    class_of: tuple[int, ...]
    most: int
    free: bool

    @cached_property
    def rates(self) -> list[list[Fraction | None]]:
        """By two classes: the most work, by the first, in a tick of the second; None: no limit."""
        return [[_rate(one.work, other.work) for other in self.of_class] for one in self.of_class]

    @cached_property
    def owed(self) -> list[list[int]]:
        """By class: what a stage on any device loses at least of its work, by that class, for each tensor it reads."""
        return [
            [min(_losses(rates, t, self.of_class)) for t in range(len(self.of_class[0].edges))] for rates in self.rates
        ]

    def work_room(self, c: int) -> list[int | None]:
        """Return the most work, by class *c*, that each device holds within the limit; None: any."""
        limit = self.of_class[c].limit
        by_class = [None if rate is None else limit * rate.numerator // rate.denominator for rate in self.rates[c]]
        return [by_class[d] for d in self.class_of]

    @cached_property
    def bytes_room(self) -> list[int | None]:
        """The most parameters that each device holds; None: any."""
        by_class = [
            None
            if claim.memory.limit_bytes is None or not self.memory_matters
            else claim.memory.limit_bytes - (claim.memory.reserve or 0)
            for claim in self.of_class
        ]
        return [by_class[d] for d in self.class_of]

    @cached_property
    def memory_matters(self) -> bool:
        """Whether a device has a memory that not everything at once fits into."""
        return any(claim.memory_matters for claim in self.of_class)

    @property
    def first(self) -> Label:
        """The label of the empty downset."""
        if self.free:
            return (0,) * len(self.of_class)
        return (0, 0) if self.most < len(self.class_of) else (0,)

    def next(self, label: Label, c: int) -> Label | None:
        """Return the label with one more stage on a device of class *c*; None if there is no such device."""
        if self.free:
            if sum(label) == self.most or label[c] == self.class_of.count(c):
                return None
            return (*label[:c], label[c] + 1, *label[c + 1 :])
        if len(label) > 1 and label[1] == self.most:
            return None
        if c not in self.class_of[label[0] :]:
            return None
        return (self.class_of.index(c, label[0]) + 1, *(used + 1 for used in label[1:]))

    def left(self, label: Label, room: Sequence[int | None]) -> int | None:
        """Return the sum of the rooms of the devices that a label leaves; None: no limit."""
        if not self.free:
            rooms = list(room[label[0] :])
        else:
            rooms = []
            for c, used in enumerate(label):
                rooms += [size for size, d in zip(room, self.class_of, strict=True) if d == c][used:]
        known = [size for size in rooms if size is not None]
        return sum(known) if len(known) == len(rooms) else None


def _rate(work: Sequence[int], other: Sequence[int]) -> Fraction | None:
    if any(a > 0 and b == 0 for a, b in zip(work, other, strict=True)):
        return None
    return max((Fraction(a, b) for a, b in zip(work, other, strict=True) if b > 0), default=Fraction(0))


def _losses(rates: Iterable[Fraction | None], t: int, claims: Sequence[DownsetClaim]) -> list[int]:
    ticks = [claim.edges[t].transfer for claim in claims]
    return [int(time * rate) for time, rate in zip(ticks, rates, strict=True) if rate is not None]


def search_labels(claim: UnequalClaim, most_labels: int, watcher: Watcher, memory_bytes: int) -> FoundLabels:
    """Search all chains of downsets for a partition within the claim's limit.

    Parameters
    ----------
    most_labels
        The search ends early, without a digest, once more cannot be dropped: those of downsets gone on from.
    memory_bytes
        That the downsets and their labels may take.

    Notes
    -----
    The claim's sums must fit into 64 bits (:func:`~mtpp.solvers.recheck.arrays.fits_arrays`).
    """
    return _PlainSearch(claim, watcher, memory_bytes).run(claim.first, most_labels)


class DeviceSearch(LabelSearch[L]):
    """A search whose stages stand on one device each."""

    def __init__(self, claim: UnequalClaim, watcher: Watcher, memory_bytes: int) -> None:
        self._claim = claim
        first = claim.of_class[0]
        givers = -1
        for one in claim.of_class:
            givers &= one.givers if one.maximal else 0
        giver = np.array([givers >> v & 1 for v in range(first.op_count)], dtype=np.uint8)
        self._arrays: list[ClaimArrays] = []
        for one, owed in zip(claim.of_class, claim.owed, strict=True):
            arrays = claim_arrays(one, work_around(one)[1], [])
            self._arrays.append(
                arrays._replace(
                    giver=giver,
                    owed=np.array(owed, dtype=np.int64),
                    rest_ticks=np.zeros(1, dtype=np.int64),
                    rest_bytes=np.zeros(1, dtype=np.int64),
                    both_ticks=np.zeros(1, dtype=np.int64),
                )
            )
        matters = claim.memory_matters
        super().__init__(first, self._arrays[0], watcher, memory_bytes, matters=matters)
        self._limits = [stage_limits(one, matters) for one in claim.of_class]
        self._work_rooms = [claim.work_room(c) for c in range(len(claim.of_class))]
        self._rest: dict[int, list[int]] = {}
        work = np.array([one.work for one in claim.of_class], dtype=np.int64)
        params = np.array([first.param_bytes], dtype=np.int64)
        self._measures = np.concatenate([work, params])
        self._makers = np.array([edge.maker for edge in first.edges], dtype=np.int64)
        self._readers = np.array([v for edge in first.edges for v in edge.readers], dtype=np.int64)
        self._begins = np.cumsum([0, *(len(edge.readers) for edge in first.edges)])[:-1]
        self._owed = np.array(claim.owed, dtype=np.int64).reshape(len(claim.of_class), -1)
        self._totals = [sum(one.work) + sum(owed) for one, owed in zip(claim.of_class, claim.owed, strict=True)]

    def _stages_after(self, downset: int, c: int, labels: Sequence[Label], limit: int | None = None) -> set[int]:
        """Return the downsets that one more stage on a device of a class leads to, where one of the labels fits.

        Parameters
        ----------
        limit
            Of the stage, in ticks; None: the claim's.
        """
        arrays, claim, limits = self._arrays[c], self._claim, self._limits[c]
        if limit is not None:
            limits = limits._replace(ticks=limit)
        rest = self._rest_of(downset)
        rooms = [claim.left(label, self._work_rooms[c]) for label in labels]
        held = [claim.left(label, claim.bytes_room) for label in labels]
        total = self._totals[c]
        arrays.rest_ticks[0] = max(total if room is None else min(room, total) for room in rooms)
        arrays.both_ticks[0] = arrays.rest_ticks[0] + self._limits[c].ticks
        params = rest[-1]
        arrays.rest_bytes[0] = max(params if room is None else min(room, params) for room in held)
        raw = self._rows_after(downset, arrays, limits).astype("<u8").tobytes()
        length = 8 * self._words
        return {int.from_bytes(raw[at:end], "little") for at, end in pairwise(range(0, len(raw) + 1, length))}

    def _rest_of(self, downset: int) -> list[int]:
        """Return what is outside a downset: work and least losses by each class, and parameters."""
        known = self._rest.get(downset)
        if known is not None:
            return known
        outside = as_bits(~downset, self._measures.shape[1])
        sums = self._measures @ outside
        if len(self._makers):
            sums[:-1] += self._owed[:, self._crossing_edges(outside)].sum(axis=1)
        self._rest[downset] = rest = [int(value) for value in sums]
        return rest

    def _crossing_edges(self, outside: Int64Array) -> NDArray[np.bool_]:
        """Tell of each tensor whether it is made in a downset and read outside of it."""
        if not len(self._makers):
            return np.zeros(0, dtype=np.bool_)
        read = np.maximum.reduceat(outside[self._readers], self._begins)
        crossing: NDArray[np.bool_] = (read > 0) & (outside[self._makers] == 0)
        return crossing

    def _fits(self, downset: int, label: Label) -> bool:
        """Tell whether the devices that a label leaves can hold what is outside a downset."""
        claim = self._claim
        *work, params = self._rest_of(downset)
        rooms = [(due, self._work_rooms[c]) for c, due in enumerate(work)] + [(params, claim.bytes_room)]
        return all((left := claim.left(label, room)) is None or due <= left for due, room in rooms)


class _PlainSearch(DeviceSearch[Label]):
    """The search for a partition whose stages stay within the limit."""

    def _labels_after(self, downset: int, front: Sequence[Label]) -> Iterator[tuple[int, Label]]:
        for c in range(len(self._claim.of_class)):
            labels = [label for old in front if (label := self._claim.next(old, c)) is not None]
            if labels:
                for reached in self._stages_after(downset, c, labels):
                    for label in labels:
                        if self._fits(reached, label):
                            yield reached, label

    def _covers(self, one: Label, other: Label) -> bool:
        return covers(one, other)

    def _numbers(self, label: Label) -> Label:
        return label


def as_bits(downset: int, count: int) -> Int64Array:
    """Return a number for each op: 1 inside, 0 outside."""
    length = (count + 7) // 8
    raw = (downset & ((1 << count) - 1)).to_bytes(length, "little")
    return np.unpackbits(np.frombuffer(raw, dtype=np.uint8), bitorder="little")[:count].astype(np.int64)
