"""The search over downsets whose stages stand on several devices, run again from its proof's terms.

A stage S on a set R of devices stays within a limit T where Σ T/f_j(S) ≥ 1 over R: in whole numbers, where T · Σ Π f_i
of all other devices i is at least Π f_j. Some f_j(S) of 0 will do, too. A device whose memory S exceeds is of no use.

Labels are those of :mod:`mtpp.solvers.recheck.unequal`. One more stage of a label takes in free order any smallest set
of the devices left that suffices; in fixed order all devices that hold it, up to the first with which they suffice, or
where devices used are limited, for each last device as few as suffice of those before it.

One rule leaves labels out, *fit*, by one measure: y(v) of an op is the least q_c · work_c(v) over all classes, for
prices q_c that the proof names, and z(t) of a tensor the least q_c · transfer_c(t). A set R has room for T · Σ q_j of
y(S) and z of all that S cuts: q_j · f_j(S) is no less for any j, and Σ T/f_j(S) ≥ 1. So what is outside a downset, and
z once of each tensor that goes there, is at most T · Σ q_j over the devices that the label leaves. One device of each
stage has room for its parameters, so those of all devices left hold what is outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.recheck.arrays import claim_arrays, fits_arrays, stage_limits, work_around
from mtpp.solvers.recheck.claim import DownsetClaim, Edge, SearchTooLarge, StageMemory
from mtpp.solvers.recheck.compiled import Watcher
from mtpp.solvers.recheck.label_search import FoundLabels, Label, LabelSearch, covers, digest_of_labels

_MOST_SETS = 1_000_000


@dataclass(frozen=True)
class ReplicaClaim:
    """The claim that no partition on one or more devices a stage has all of its stages cost at most the limit.

    Attributes
    ----------
    of_class, class_of, most, free
        As of :class:`~mtpp.solvers.recheck.unequal.UnequalClaim`.
    prices
        Of each class.
    """

    of_class: tuple[DownsetClaim, ...]
    class_of: tuple[int, ...]
    most: int
    free: bool
    prices: tuple[int, ...]

    @property
    def limit(self) -> int:
        """Ticks that no stage may exceed."""
        return self.of_class[0].limit

    @cached_property
    def measure(self) -> DownsetClaim:
        """The claim in terms of the measure, on a device with the roomiest memory."""
        first = self.of_class[0]
        work = zip(*(one.work for one in self.of_class), strict=True)
        edges = zip(*(one.edges for one in self.of_class), strict=True)
        limits = [one.memory.limit_bytes for one in self.of_class]
        reserves = [one.memory.reserve for one in self.of_class]
        known = [size for size in limits if size is not None]
        memory = replace(
            first.memory,
            fast_bytes=None,
            limit_bytes=None if len(known) < len(limits) else max(known),
            reserve=None if None in reserves else min(size or 0 for size in reserves),
        )
        return replace(
            first,
            work=tuple(self._least(row) for row in work),
            edges=tuple(Edge(self._least([e.transfer for e in row]), row[0].maker, row[0].readers) for row in edges),
            memory=memory,
            maximal=False,
        )

    def _least(self, ticks: Sequence[int]) -> int:
        return min(q * t for q, t in zip(self.prices, ticks, strict=True))

    @cached_property
    def memory_matters(self) -> bool:
        """Whether a device has a memory that not everything at once fits into."""
        return any(claim.memory_matters for claim in self.of_class)

    @cached_property
    def bytes_room(self) -> list[int | None]:
        """The most parameters that each device holds; None: any."""
        sizes = [
            None
            if claim.memory.limit_bytes is None or not self.memory_matters
            else claim.memory.limit_bytes - (claim.memory.reserve or 0)
            for claim in self.of_class
        ]
        return [sizes[c] for c in self.class_of]

    @property
    def first(self) -> Label:
        """The label of the empty downset."""
        if self.free:
            return (0,) * len(self.of_class)
        return (0, 0) if self.most < len(self.class_of) else (0,)

    def devices_left(self, label: Label) -> list[int]:
        """Return the devices that a label leaves."""
        if not self.free:
            return list(range(label[0], len(self.class_of)))
        seen = [0] * len(self.of_class)
        left = []
        for j, c in enumerate(self.class_of):
            if seen[c] >= label[c]:
                left.append(j)
            seen[c] += 1
        return left

    def rooms(self, label: Label) -> tuple[int, int | None]:
        """Return the measure and the parameters that the devices left have room for."""
        left = self.devices_left(label)
        sizes = [self.bytes_room[j] for j in left]
        known = [size for size in sizes if size is not None]
        measure = self.limit * sum(self.prices[self.class_of[j]] for j in left)
        return measure, sum(known) if len(known) == len(sizes) else None

    def suffice(self, chosen: Sequence[int], ticks: Sequence[int | None]) -> bool:
        """Tell whether so many devices of each class bring a stage of these ticks within the limit."""
        terms = [(x, f) for x, f in zip(chosen, ticks, strict=True) if x]
        if any(f == 0 for _, f in terms):
            return True
        each = [f for _, f in terms if f is not None]
        if len(each) < len(terms):
            raise ValueError("a device does not hold the stage")
        whole = prod(each)
        return self.limit * sum(x * (whole // f) for x, f in zip((x for x, _ in terms), each, strict=True)) >= whole

    def smallest_sets(self, ticks: Sequence[int | None]) -> list[tuple[int, ...]]:
        """Return the smallest sets of devices, by class, that bring a stage of these ticks within the limit."""
        counts = [0 if f is None else self.class_of.count(c) for c, f in enumerate(ticks)]
        if prod(count + 1 for count in counts[:-1]) > _MOST_SETS:
            raise SearchTooLarge("there are too many sets of devices")
        found = []
        for head in product(*(range(count + 1) for count in counts[:-1])):
            last = self._fewest(head, counts[-1], ticks)
            if last is None:
                continue
            chosen = (*head, last)
            one_less = [
                (*chosen[:c], x - 1, *chosen[c + 1 :]) for c, x in enumerate(chosen) if x and c < len(chosen) - 1
            ]
            if not any(self.suffice(less, ticks) for less in one_less):
                found.append(chosen)
        return found

    def _fewest(self, head: Sequence[int], most: int, ticks: Sequence[int | None]) -> int | None:
        """Return the fewest devices of the last class that suffice with those of the others; None: not even all."""
        low, high = 0, most + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.suffice((*head, middle), ticks) else (middle + 1, high)
            if low > most:
                return None
        return low

    def labels_after(
        self, label: Label, ticks: Sequence[int | None], sets: Sequence[tuple[int, ...]]
    ) -> Iterator[Label]:
        """Yield the labels after one more stage of these ticks, whose smallest sets are given in free order."""
        if self.free:
            for chosen in sets:
                new = tuple(a + b for a, b in zip(label, chosen, strict=True))
                enough = all(x <= self.class_of.count(c) for c, x in enumerate(new))
                if enough and sum(new) <= self.most:
                    yield new
            return
        if len(ticks) == 1 and len(label) == 1:
            needed = self._equal_devices(ticks[0])
            if needed is not None and label[0] + needed <= len(self.class_of):
                yield (label[0] + needed,)
            return
        able: list[int] = []
        fewest = len(self.class_of) + 1
        for j in range(label[0], len(self.class_of)):
            if ticks[self.class_of[j]] is None:
                continue
            able.append(j)
            if len(label) == 1:
                if self._enough(able, ticks):
                    yield (j + 1,)
                    return
                continue
            fastest = sorted(able, key=lambda i: ticks[self.class_of[i]] or 0)
            taken = next((u for u in range(1, min(fewest, len(able) + 1)) if self._enough(fastest[:u], ticks)), None)
            if taken is not None and label[1] + taken <= self.most:
                yield j + 1, label[1] + taken
                fewest = taken

    def _equal_devices(self, ticks: int | None) -> int | None:
        """Return the fewest of equal devices that bring a stage of these ticks within the limit; None: none do."""
        if ticks is None or (ticks > 0 and self.limit <= 0):
            return None
        return max(1, -(-ticks // self.limit)) if ticks else 1

    def _enough(self, devices: Sequence[int], ticks: Sequence[int | None]) -> bool:
        classes = [self.class_of[j] for j in devices]
        return self.suffice([classes.count(c) for c in range(len(ticks))], ticks)


class _Stages(NamedTuple):
    """Stages that may follow a downset: where each leads to, its ticks by class, and what is after it.

    Attributes
    ----------
    reached
        Downsets, as numbers with a bit for each op.
    ticks
        By stage and class; −1 where its memory is too small. int64.
    rest, rest_bytes
        The measure and parameters of what is outside, int64.
    """

    reached: list[int]
    ticks: Int64Array
    rest: Int64Array
    rest_bytes: Int64Array


def search_replicas(claim: ReplicaClaim, most_labels: int, watcher: Watcher, memory_bytes: int) -> FoundLabels | None:
    """Search all chains of downsets for a partition within the claim's limit; None: its numbers are beyond 64 bits.

    Parameters
    ----------
    most_labels, memory_bytes
        As of :func:`~mtpp.solvers.recheck.unequal.search_labels`.
    """
    if not fits_arrays(claim.measure) or not all(map(fits_arrays, claim.of_class)):
        return None
    search = _ReplicaSearch(claim, watcher, memory_bytes)
    if not search.fits_first:
        return FoundLabels(1, 1, digest_of_labels({0: [claim.first]}, claim.measure.op_count), complete=False)
    return search.run(claim.first, most_labels)


class _ReplicaSearch(LabelSearch[Label]):
    """One search, downset by downset from the smallest on."""

    def __init__(self, claim: ReplicaClaim, watcher: Watcher, memory_bytes: int) -> None:
        self._claim = claim
        measure, matters = claim.measure, claim.memory_matters
        one = np.zeros(1, dtype=np.int64)
        self._arrays = claim_arrays(measure, work_around(measure)[1], [])._replace(
            rest_ticks=one.copy(), rest_bytes=one.copy(), both_ticks=one.copy()
        )
        super().__init__(measure, self._arrays, watcher, memory_bytes, matters=matters)
        self._total = sum(measure.work) + 2 * sum(edge.transfer for edge in measure.edges)
        self._limits = stage_limits(measure, matters)
        self._figures = _Figures(claim)
        self._sets: dict[tuple[int | None, ...], list[tuple[int, ...]]] = {}
        self._room: dict[Label, tuple[int, int | None]] = {}

    @property
    def fits_first(self) -> bool:
        """Whether all devices together have room for everything."""
        measure, (room, held) = self._claim.measure, self._rooms(self._claim.first)
        params = sum(measure.param_bytes)
        return sum(measure.work) <= room and params <= (held or params)

    def _labels_after(self, downset: int, front: Sequence[Label]) -> Iterator[tuple[int, Label]]:
        stages = self._stages_after(downset, front)
        for i, reached in enumerate(stages.reached):
            for label in self._labels(front, stages, i):
                yield reached, label

    def _covers(self, one: Label, other: Label) -> bool:
        return covers(one, other)

    def _numbers(self, label: Label) -> Label:
        return label

    def _labels(self, front: Sequence[Label], stages: _Stages, i: int) -> Iterator[Label]:
        """Yield the labels of the downset that a stage leads to, where what is outside fits."""
        claim = self._claim
        ticks = tuple(None if one < 0 else one for one in stages.ticks[i].tolist())
        sets: Sequence[tuple[int, ...]] = ()
        if claim.free:
            known = self._sets.get(ticks)
            sets = self._sets[ticks] = claim.smallest_sets(ticks) if known is None else known
        rest, rest_bytes = int(stages.rest[i]), int(stages.rest_bytes[i])
        for label in front:
            for new in claim.labels_after(label, ticks, sets):
                room, held = self._rooms(new)
                if rest <= room and (held is None or rest_bytes <= held):
                    yield new

    def _rooms(self, label: Label) -> tuple[int, int | None]:
        known = self._room.get(label)
        if known is None:
            known = self._room[label] = self._claim.rooms(label)
        return known

    def _stages_after(self, downset: int, labels: Sequence[Label]) -> _Stages:
        """Return the stages that may follow a downset, each of the measure that the devices left have room for."""
        arrays = self._arrays
        room = min(max(self._rooms(label)[0] for label in labels), self._total)
        arrays.rest_ticks[0] = arrays.both_ticks[0] = room
        arrays.rest_bytes[0] = sum(self._claim.measure.param_bytes)
        return self._figures.of(downset, self._rows_after(downset, arrays, self._limits._replace(ticks=room)))


class _Figures:
    """Figures of many stages after one downset at once, from the definitions."""

    def __init__(self, claim: ReplicaClaim) -> None:
        self._claim, measure = claim, claim.measure
        self._n = measure.op_count
        self._work = np.array([one.work for one in claim.of_class], dtype=np.int64)
        self._transfer = np.array([[e.transfer for e in one.edges] for one in claim.of_class], dtype=np.int64)
        self._measured = np.array(measure.work, dtype=np.int64)
        self._measured_transfer = np.array([e.transfer for e in measure.edges], dtype=np.int64)
        self._params = np.array(measure.param_bytes, dtype=np.int64)
        self._makers = np.array([e.maker for e in measure.edges], dtype=np.int64)
        self._readers = np.array([v for e in measure.edges for v in e.readers], dtype=np.int64)
        self._begins = np.cumsum([0, *(len(e.readers) for e in measure.edges)])[:-1]

    @cached_property
    def _plain_limits(self) -> bool:
        """Whether the memory of a stage is the sum of its parameters and a reserve, and none is streamed."""
        return all(
            one.memory.fast_bytes is None and one.memory.reserve is not None and not one.shared
            for one in self._claim.of_class
        )

    def of(self, downset: int, rows: np.ndarray[Any, Any]) -> _Stages:
        """Return the figures of the stages that lead to the downsets of the rows."""
        after = np.unpackbits(rows.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, : self._n]
        raw = np.frombuffer(downset.to_bytes((self._n + 7) // 8, "little"), dtype=np.uint8)
        before = np.unpackbits(raw, bitorder="little")[: self._n]
        inside, outside = after - before, 1 - after
        whole = inside.astype(np.int64)
        ticks = whole @ self._work.T
        rest = self._measured.sum() - after.astype(np.int64) @ self._measured
        if len(self._makers):
            reads = np.maximum.reduceat(inside[:, self._readers], self._begins, axis=1)
            later = np.maximum.reduceat(outside[:, self._readers], self._begins, axis=1)
            made = inside[:, self._makers]
            cut = ((1 - made) & reads) | (made & later)
            ticks = ticks + cut.astype(np.int64) @ self._transfer.T
            goes = (1 - outside[:, self._makers]) & later
            rest = rest + goes.astype(np.int64) @ self._measured_transfer
        reached = [int.from_bytes(row.tobytes(), "little") for row in np.packbits(after, axis=1, bitorder="little")]
        if self._claim.memory_matters and self._plain_limits:
            held = whole @ self._params
            for c, one in enumerate(self._claim.of_class):
                room = one.memory.limit_bytes
                ticks[:, c] = np.where(room is None or held + (one.memory.reserve or 0) <= room, ticks[:, c], -1)
        elif self._claim.memory_matters:
            ticks = self._with_memory(downset, reached, ticks)
        return _Stages(reached, ticks, rest, outside.astype(np.int64) @ self._params)

    def _with_memory(self, downset: int, reached: Sequence[int], ticks: Int64Array) -> Int64Array:
        """Add what stages pay for memory on devices of each class; −1 where they exceed it."""
        found = ticks.copy()
        claims = self._claim.of_class
        for i, end in enumerate(reached):
            stage = end & ~downset
            held, kept = claims[0].held_by(stage), claims[0].kept(stage)
            peak: int | None = None
            for c, one in enumerate(claims):
                if peak is None or one.memory.reserve is not None:
                    peak = one.memory.peak(stage)
                memory: StageMemory = one.memory
                allowed = memory.allows(held + peak + kept)
                found[i, c] = found[i, c] + memory.overflow(held + peak) if allowed else -1
        return found
