"""Costs of a model cut at split points along an order: times of stages, hand-overs, memory of devices.

Ops stand in an order; a split is 0 = p_0 < p_1 < … < p_S = n, and stage s has the ops from p_s on, before p_(s+1).
Everything that crosses a position goes from the stage before it to the stage behind it, whether that stage uses it or
passes it on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.training.model import LinePlace
from mtpp.units import Exact, ceil_ratio

LARGEST_SUM = 2**61
"""All passes and hand-overs of an iteration, one after the other, stay below as many ticks."""


@dataclass(frozen=True, eq=False)
class LineTensor:
    """A tensor between ops of an order.

    Attributes
    ----------
    producer, consumers
        Places along the order.
    ticks
        Of a transfer over a link, without latency.
    size_bytes
        None where unknown.
    """

    producer: LinePlace
    consumers: Sequence[LinePlace]
    ticks: int
    size_bytes: int | None


@dataclass(frozen=True, eq=False)
class LineCosts:
    """Ops in an order with what they take of time and memory; all arrays are by position. Times are in ticks.

    Attributes
    ----------
    forward, backward
        Of each op and one micro-batch on a device of speed 1, int64, shape (n,).
    fixed_bytes
        Parameters, their gradients and the optimiser's state of each op, int64, shape (n,).
    kept_bytes
        Kept from the forward pass of each op to its backward pass, for each micro-batch, int64, shape (n,).
    tensors
        Between ops.
    latency
        Added to each hand-over that moves anything, in ticks.
    """

    forward: Int64Array
    backward: Int64Array
    fixed_bytes: Int64Array
    kept_bytes: Int64Array
    tensors: Sequence[LineTensor]
    latency: int = 0

    @property
    def ops(self) -> int:
        """N, how many there are."""
        return len(self.forward)

    def reordered(self, order: Sequence[LinePlace]) -> LineCosts:
        """Return the same of ops in another topological order, given by their places in this one."""
        at = np.asarray(order, dtype=np.int64)
        place = {old: LinePlace(new) for new, old in enumerate(order)}
        tensors = [
            LineTensor(place[one.producer], [place[v] for v in one.consumers], one.ticks, one.size_bytes)
            for one in self.tensors
        ]
        return LineCosts(
            self.forward[at], self.backward[at], self.fixed_bytes[at], self.kept_bytes[at], tensors, self.latency
        )

    @cached_property
    def handover(self) -> Int64Array:
        """Ticks that handing over all that crosses each position takes, int64, shape (n + 1,); 0 at both ends."""
        moved = self._crossing([one.ticks for one in self.tensors])
        count = self._crossing([1] * len(self.tensors))
        return np.where(count > 0, moved + self.latency, 0)

    @cached_property
    def crossing_bytes(self) -> Int64Array:
        """Bytes that cross each position, int64, shape (n + 1,)."""
        return self._crossing([one.size_bytes or 0 for one in self.tensors])

    def _crossing(self, amounts: Sequence[int]) -> Int64Array:
        steps = np.zeros(self.ops + 1, dtype=np.int64)
        for one, amount in zip(self.tensors, amounts, strict=True):
            if one.consumers:
                steps[one.producer + 1] += amount
                steps[max(one.consumers) + 1] -= amount
        return np.cumsum(steps)

    def straight_bytes(self, begin: int, end: int, split: Sequence[int] | Int64Array) -> int:
        """Return the bytes of a micro-batch that the stage from *begin* to *end* of a split receives straight.

        Tensors of other stages that it reads, and gradients of its own tensors from each other stage that reads them.
        """
        total = 0
        ends = [int(p) for p in split]
        for one in self.tensors:
            inside = begin <= one.producer < end
            readers = {bisect_right(ends, reader) for reader in one.consumers}
            here = bisect_right(ends, begin)
            times = len(readers - {here}) if inside else int(here in readers)
            total += times * (one.size_bytes or 0)
        return total

    def straight_handovers(self, split: Sequence[int] | Int64Array) -> Sequence[tuple[int, int, int]]:
        """Return source, target and ticks of what stages of a split hand straight to each other, ascending.

        A stage gets each tensor that it reads once; gradients take as long on their way back.
        """
        ends = [int(p) for p in split]
        ticks: dict[tuple[int, int], int] = {}
        for one in self.tensors:
            source = bisect_right(ends, one.producer) - 1
            for target in {bisect_right(ends, reader) - 1 for reader in one.consumers} - {source}:
                ticks[source, target] = ticks.get((source, target), self.latency) + one.ticks
        return [(*pair, total) for pair, total in sorted(ticks.items())]

    def prefix(self, ticks: Int64Array, speeds: Sequence[Exact]) -> Int64Array:
        """Return sums of the first ops' times on devices of some speeds, int64, shape (speeds, n + 1).

        Each op's time is divided by the speed and rounded up.
        """
        sums = np.zeros((len(speeds), self.ops + 1), dtype=np.int64)
        for row, speed in zip(sums, speeds, strict=True):
            scaled = ticks if speed == 1 else np.array([_divided(one, speed) for one in ticks.tolist()], dtype=np.int64)
            np.cumsum(scaled, out=row[1:])
        return sums


def _divided(ticks: int, speed: Exact) -> int:
    return ceil_ratio(ticks * speed.denominator, speed.numerator)


@dataclass(frozen=True, eq=False)
class SplitTimes:
    """Sums along the order from which the times of any split follow, as kernels take them.

    Attributes
    ----------
    forward, backward
        Ticks of the first ops, for each distinct speed, int64, shape (speeds, n + 1).
    handover
        Ticks at each position, int64, shape (n + 1,).
    speed_of
        Row of each device, int32, shape (D,).
    """

    forward: Int64Array
    backward: Int64Array
    handover: Int64Array
    speed_of: Int32Array

    @classmethod
    def of(cls, costs: LineCosts, speeds: Sequence[Exact]) -> SplitTimes:
        """Return those of devices of the given speeds."""
        distinct = list(dict.fromkeys(speeds))
        rows = np.array([distinct.index(speed) for speed in speeds], dtype=np.int32)
        return cls(costs.prefix(costs.forward, distinct), costs.prefix(costs.backward, distinct), costs.handover, rows)

    @property
    def ops(self) -> int:
        """N."""
        return int(self.forward.shape[1]) - 1

    @property
    def devices(self) -> int:
        """D."""
        return len(self.speed_of)

    def stage_times(self, split: Sequence[int] | Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return forward and backward ticks of each stage, and of each hand-over behind stages 0 … S − 2."""
        at = np.asarray(split, dtype=np.int64)
        row = self.speed_of[np.arange(len(at) - 1) % self.devices]
        forward = self.forward[row, at[1:]] - self.forward[row, at[:-1]]
        backward = self.backward[row, at[1:]] - self.backward[row, at[:-1]]
        return forward, backward, self.handover[at[1:-1]]
