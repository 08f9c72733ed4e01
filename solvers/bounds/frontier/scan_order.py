"""Topological orders along which few tensors are live at once, and the places of those in a state of the scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.frontier.kernels.layers import BITS, SLOTS, Steps
from mtpp.solvers.bounds.frontier.kernels.order_moves import Reads, exchange_runs

_ALL_BITS = (1 << BITS * SLOTS) - 1

_BRANCHING = 2.0
"""States for each live tensor, about: orders are compared by the sum of its powers."""


@dataclass(frozen=True, eq=False)
class ScanOrder:
    """An order, and the tensors live after each of its ops.

    Attributes
    ----------
    order
        Ops, int32, shape (n,); topological.
    forgotten
        Tensors that cost nothing in the scan, and whose ops it keeps in no order, ascending.
    """

    instance: Instance
    order: Int32Array
    forgotten: tuple[int, ...] = ()

    @cached_property
    def _live(self) -> _Live:
        return _Live.along(self.instance, self.order.tolist(), self.forgotten)

    @property
    def width(self) -> int:
        """Largest number of tensors live at once."""
        return max(self._live.counts, default=0)

    @property
    def weight(self) -> float:
        """Number of states that a scan may meet, as a rule of thumb that tells orders apart."""
        return sum(_BRANCHING**count for count in self._live.counts)

    def steps(self, work: Int64Array, transfer: Int64Array) -> Steps:
        """Return the ops along the order with ticks of ops and of tensors, int64, shapes (n,) and (m,).

        Raises
        ------
        ValueError
            If more than :data:`SLOTS` tensors are live at once.
        """
        if self.width > SLOTS:
            raise ValueError(f"{self.width} tensors are live at once, more than {SLOTS}")
        live = self._live
        free = list(range(SLOTS))[::-1]
        slot: dict[int, int] = {}
        reads: list[list[int]] = []
        makes: list[list[int]] = []
        kept = []
        for i, (read, made) in enumerate(zip(live.reads, live.makes, strict=True)):
            reads.append([BITS * slot[t] for t in read])
            bits = _ALL_BITS
            for t in read:
                if live.last[t] == i:
                    bits &= ~(((1 << BITS) - 1) << BITS * slot[t])
                    free.append(slot.pop(t))
            kept.append(bits)
            for t in made:
                slot[t] = free.pop()
            makes.append([BITS * slot[t] for t in made])
        return Steps(
            _offsets(reads),
            _flat(reads),
            transfer[_flat(live.reads)],
            np.array(kept, dtype=np.int64),
            _offsets(makes),
            _flat(makes),
            transfer[_flat(live.makes)],
            work[self.order],
        )


@dataclass(frozen=True, eq=False)
class _Live:
    """Tensors that each op of an order reads and makes, their last readers' positions, and how many live after each."""

    reads: list[list[int]]
    makes: list[list[int]]
    last: dict[int, int]
    counts: list[int]

    @classmethod
    def along(cls, instance: Instance, order: Sequence[int], forgotten: Sequence[int]) -> _Live:
        place = {v: i for i, v in enumerate(order)}
        reads: list[list[int]] = [[] for _ in order]
        makes: list[list[int]] = [[] for _ in order]
        last: dict[int, int] = {}
        left_out = set(forgotten)
        change = [0] * (len(order) + 1)
        pins, offsets = instance.pins.tolist(), instance.pin_offsets.tolist()
        for t in range(instance.tensor_count):
            maker, *readers = pins[offsets[t] : offsets[t + 1]]
            if not readers or t in left_out:
                continue
            made = place[maker]
            makes[made].append(t)
            for v in dict.fromkeys(readers):
                reads[place[v]].append(t)
            last[t] = max(place[v] for v in readers)
            change[made] += 1
            change[last[t]] -= 1
        counts, now = [], 0
        for difference in change[:-1]:
            now += difference
            counts.append(now)
        return cls(reads, makes, last, counts)


def scan_orders(instance: Instance, starts: int = 4) -> list[ScanOrder]:
    """Return topological orders, few live tensors first: the instance's own, and depth-first ones from both ends.

    Parameters
    ----------
    starts
        Number of depth-first orders of each kind.

    Notes
    -----
    O(starts · (n + pins)).
    """
    found = {tuple(order): ScanOrder(instance, np.array(order, dtype=np.int32)) for order in _orders(instance, starts)}
    return sorted(found.values(), key=lambda one: (one.weight, one.width))


_TRIAL_PINS = 1_500_000_000
"""Pins that exchanges of an order would look at if all of them were possible: some tenths of a second."""

_TRIALS_PER_OP = 1000
"""Exchanges for each op at most."""


def narrow_order(instance: Instance, seed: int = 0) -> ScanOrder:
    """Return a topological order along which few tensors are live: the best depth-first one, runs of it exchanged.

    Notes
    -----
    Some tenths of a second, the same order each time.
    """
    order = scan_orders(instance)[0].order.copy()
    offsets, pins = instance.pin_offsets, instance.pins
    before, _ = neighbour_lists(instance)
    read = np.flatnonzero(np.diff(offsets) > 1)
    reads = Reads(
        _offsets(before),
        _flat(before).astype(np.int32),
        np.concatenate([[0], np.cumsum(np.diff(offsets)[read])]).astype(np.int64),
        np.concatenate([pins[offsets[t] : offsets[t + 1]] for t in read] or [pins[:0]]),
    )
    trials = min(_TRIALS_PER_OP * instance.op_count, _TRIAL_PINS // (len(reads.pins) + instance.op_count + 1))
    exchange_runs(order, reads, seed, trials)
    return ScanOrder(instance, order)


def _orders(instance: Instance, starts: int) -> Iterator[list[int]]:
    yield instance.order.tolist()
    before, after = neighbour_lists(instance)
    depth = _depths(before, instance.order.tolist())
    height = _depths(after, instance.order.tolist()[::-1])
    size = _ancestors(before, instance.order.tolist())
    keys = [
        [(-depth[v], v) for v in range(len(depth))],
        [(-size[v], v) for v in range(len(depth))],
        [(depth[v], v) for v in range(len(depth))],
        [(size[v], -v) for v in range(len(depth))],
        [(-height[v], v) for v in range(len(depth))],
        [(height[v], v) for v in range(len(depth))],
    ]
    for key in keys[: max(1, starts)]:
        yield _depth_first(before, after, key)
        yield _depth_first(after, before, key)[::-1]


def neighbour_lists(instance: Instance) -> tuple[list[list[int]], list[list[int]]]:
    """Return the ops that each op reads from, and that read from it, each once; O(n + pins)."""
    after = instance.successor_lists()
    before: list[list[int]] = [[] for _ in after]
    for u, readers in enumerate(after):
        for v in readers:
            before[v].append(u)
    return before, after


def _depths(before: list[list[int]], order: list[int]) -> list[int]:
    depth = [0] * len(order)
    for v in order:
        depth[v] = 1 + max((depth[u] for u in before[v]), default=0)
    return depth


def _ancestors(before: list[list[int]], order: list[int]) -> list[int]:
    reached = [0] * len(order)
    for v in order:
        reached[v] = 1 << v
        for u in before[v]:
            reached[v] |= reached[u]
    return [bits.bit_count() for bits in reached]


def _depth_first(before: list[list[int]], after: list[list[int]], key: list[tuple[int, int]]) -> list[int]:
    """Return the ops in the order in which a depth-first search from the results leaves them."""
    done = [False] * len(before)
    order = []
    for root in sorted((v for v in range(len(before)) if not after[v]), key=key.__getitem__):
        stack = [(root, iter(sorted(before[root], key=key.__getitem__)))]
        while stack:
            v, rest = stack[-1]
            if done[v]:
                stack.pop()
                continue
            for u in rest:
                if not done[u]:
                    stack.append((u, iter(sorted(before[u], key=key.__getitem__))))
                    break
            else:
                done[v] = True
                order.append(v)
                stack.pop()
    return order


def _offsets(rows: list[list[int]]) -> Int64Array:
    return np.cumsum([0, *map(len, rows)], dtype=np.int64)


def _flat(rows: list[list[int]]) -> Int64Array:
    return np.array([value for row in rows for value in row], dtype=np.int64)
