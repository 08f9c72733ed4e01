"""The search over downsets in which latency counts, run again from its proof's terms.

As :mod:`mtpp.solvers.recheck.unequal`. A label has the latency spent so far as well, in ticks, and makes another one
needless if it is no larger in that either. What is outside a downset takes at least the least work of its ops on any
device, and once the least time of each tensor that goes there: where that comes to more than the latency that the label
leaves, no partition within the limits has it. The rule *maximal* is not for these searches.

A proof may name prices, whole numbers of a unit of 1 / scale: r_c of a tick on each class of devices if the bottleneck
is limited, p_c of a byte where the memory is. Each op outside has one of the devices left, none of which takes longer
than the limit or holds more than its room. So Σ min_c ((scale + r_c) · work + p_c · bytes) over these ops, and scale
times the tensors that go there, is at most scale times the latency that is left, and Σ r_c · limit + p_c · room_c of
the devices that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.recheck.claim import DownsetClaim
from mtpp.solvers.recheck.compiled import Watcher
from mtpp.solvers.recheck.label_search import FoundLabels, Label, covers
from mtpp.solvers.recheck.unequal import DeviceSearch, UnequalClaim, as_bits

_HALF = 2**31
"""In a record a latency is two numbers, each below this."""


class Prices(NamedTuple):
    """Prices of a proof by class of devices, and the limit on the bottleneck."""

    scale: int
    per_byte: Sequence[int]
    per_tick: Sequence[int]
    limit: int


def search_latency_labels(
    claim: UnequalClaim,
    most_latency: int,
    most_labels: int,
    watcher: Watcher,
    memory_bytes: int,
    prices: Prices | None = None,
) -> FoundLabels:
    """Search all chains of downsets for a partition within the claim's limit, and of a latency within another one.

    Parameters
    ----------
    most_labels, memory_bytes
        As of :func:`~mtpp.solvers.recheck.unequal.search_labels`.
    """
    search = _LatencySearch(claim, most_latency, watcher, memory_bytes, prices)
    return search.run((*claim.first, 0), most_labels)


class _LatencySearch(DeviceSearch[Label]):
    """One search; fronts hold labels with the latency as their last number."""

    def __init__(
        self,
        claim: UnequalClaim,
        most_latency: int,
        watcher: Watcher,
        memory_bytes: int,
        prices: Prices | None,
    ) -> None:
        super().__init__(claim, watcher, memory_bytes)
        self._prices = prices
        self._priced: list[int] = []
        self._saved: list[int | None] = []
        if prices is not None:
            self._set_prices(prices)
        self._least_at_prices: dict[int, int] = {}
        self._saved_by: dict[Label, int] = {}
        self._most = most_latency
        self._floors: dict[int, int] = {}
        self._rooms: dict[Label, list[int | None]] = {}
        self._stage_ticks = [limits.ticks for limits in self._limits]
        of_class = claim.of_class
        self._work = [np.array(one.work, dtype=np.int64) for one in of_class]
        self._transfer = [np.array([edge.transfer for edge in one.edges], dtype=np.int64) for one in of_class]
        self._least_work: Int64Array = np.min(self._work, axis=0)
        self._least_transfer: Int64Array = np.min(self._transfer, axis=0)
        edges = of_class[0].edges
        self._ends = np.array([v for edge in edges for v in (edge.maker, *edge.readers)], dtype=np.int64)
        self._first_end = np.cumsum([0, *(1 + len(edge.readers) for edge in edges)])[:-1]
        self._end_count = np.array([1 + len(edge.readers) for edge in edges], dtype=np.int64)

    def _set_prices(self, prices: Prices) -> None:
        """Take the least work of each op at prices, and what each device has room for at them."""
        of_class = self._claim.of_class
        rows = [
            [(prices.scale + r) * work + p * size for work, size in zip(one.work, one.param_bytes, strict=True)]
            for one, p, r in zip(of_class, prices.per_byte, prices.per_tick, strict=True)
        ]
        self._priced = [min(ticks) for ticks in zip(*rows, strict=True)]
        room_of = []
        for one, p, r in zip(of_class, prices.per_byte, prices.per_tick, strict=True):
            room = (one.memory.limit_bytes or 0) - (one.memory.reserve or 0)
            room_of.append(r * prices.limit + p * max(0, room))
        self._saved = [room_of[c] for c in self._claim.class_of]

    def _labels_after(self, downset: int, front: Sequence[Label]) -> Iterator[tuple[int, Label]]:
        for c in range(len(self._claim.of_class)):
            steps = [(self._claim.next(old[:-1], c), old[-1]) for old in front]
            yield from self._after(downset, c, [(label, spent) for label, spent in steps if label is not None])

    def _covers(self, one: Label, other: Label) -> bool:
        return covers(one, other)

    def _numbers(self, label: Label) -> Label:
        return (*label[:-1], label[-1] // _HALF, label[-1] % _HALF)

    def _after(self, downset: int, c: int, labels: Sequence[tuple[Label, int]]) -> list[tuple[int, Label]]:
        """Return the labels within the limits that one more stage of a class leads to, with their downsets."""
        if not labels:
            return []
        left = self._most - min(spent for _, spent in labels)
        self._limits[c] = self._limits[c]._replace(ticks=min(self._stage_ticks[c], left))
        reached = sorted(self._stages_after(downset, c, [label for label, _ in labels]))
        if not reached:
            return []
        paid = self._costs(downset, reached, c)
        floors = [self._floor(one) for one in reached]
        found = []
        for one, ticks, floor in zip(reached, paid, floors, strict=True):
            for label, spent in labels:
                after = spent + ticks
                if after + floor <= self._most and self._has_room(one, label) and self._pays(one, label, after):
                    found.append((one, (*label, spent + ticks)))
        return found

    def _costs(self, downset: int, reached: Sequence[int], c: int) -> list[int]:
        """Return the ticks of the stages between a downset and others, on a device of a class."""
        claim, n = self._claim.of_class[c], self._claim.of_class[0].op_count
        stages = np.array([as_bits(one & ~downset, n) for one in reached])
        ticks = stages @ self._work[c]
        if len(self._ends):
            inside = np.add.reduceat(stages[:, self._ends], self._first_end, axis=1)
            ticks = ticks + ((inside > 0) & (inside < self._end_count)) @ self._transfer[c]
        costs: list[int] = ticks.tolist()
        if claim.memory.fast_bytes is None:
            return costs
        return [paid + _overflow(claim, one & ~downset) for paid, one in zip(costs, reached, strict=True)]

    def _floor(self, downset: int) -> int:
        """Return the least latency of all outside a downset."""
        known = self._floors.get(downset)
        if known is None:
            outside = as_bits(~downset, len(self._least_work))
            known = int(outside @ self._least_work)
            if len(self._makers):
                goes = (np.maximum.reduceat(outside[self._readers], self._begins) > 0) & (outside[self._makers] == 0)
                known += int(self._least_transfer[goes].sum())
            self._floors[downset] = known
        return known

    def _pays(self, downset: int, label: Label, spent: int) -> bool:
        """Tell whether the latency that is left suffices at prices for what is outside a downset."""
        if self._prices is None:
            return True
        due = self._least_at_prices.get(downset)
        if due is None:
            outside = as_bits(~downset, len(self._priced)).tolist()
            least = sum(work for work, out in zip(self._least_work.tolist(), outside, strict=True) if out)
            due = sum(work for work, out in zip(self._priced, outside, strict=True) if out)
            due += (self._floor(downset) - least) * self._prices.scale
            self._least_at_prices[downset] = due
        saved = self._saved_by.get(label)
        if saved is None:
            left = self._claim.left(label, self._saved)
            assert left is not None
            saved = self._saved_by[label] = left
        return due <= (self._most - spent) * self._prices.scale + saved

    def _has_room(self, downset: int, label: Label) -> bool:
        """Tell whether the devices that a label leaves can hold what is outside a downset."""
        rooms = self._rooms.get(label)
        if rooms is None:
            measures = [*self._work_rooms, self._claim.bytes_room]
            rooms = self._rooms[label] = [self._claim.left(label, room) for room in measures]
        return all(room is None or due <= room for due, room in zip(self._rest_of(downset), rooms, strict=True))


def _overflow(claim: DownsetClaim, stage: int) -> int:
    return claim.memory.overflow(claim.held_by(stage) + claim.memory.peak(stage))
