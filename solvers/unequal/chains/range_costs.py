"""Cost of every range of ops of a chain on a device of every class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.array_types import BoolArray, Int32Array, Int64Array
from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.inference.weights import Weights

NEVER = 2**62
"""Cost of a range that no device of the class may hold."""

_MOST_RANGES = 4_000_000


@dataclass(frozen=True, eq=False)
class RangeCosts:
    """f_c(S) of all ranges S of a chain.

    Attributes
    ----------
    instance
        Whose graph is one chain.
    ticks
        By class, position of the first op in the chain, and number of ops less one: int64, shape (classes, n, longest);
        :data:`NEVER` where the device may not hold the range, or there are not so many ops.
    """

    instance: Instance
    ticks: Int64Array

    @classmethod
    def of(cls, instance: Instance) -> RangeCosts:
        """Return the costs of an instance whose graph is one chain.

        Raises
        ------
        InputError
            If ops were merged, or there are too many ranges.

        Notes
        -----
        O(classes · n · longest) time and memory, apart from weights that several ops read.
        """
        if instance.members is not None or instance.ground is not None:
            raise InputError("stage_times are of single ops", parameter="together", remedy="leave it out")
        cost, n = instance.cost, instance.op_count
        lengths = [n if ticks is None else min(n, len(ticks) - 1) for ticks in cost.stage_ticks]
        longest = max(lengths)
        if longest * n * len(lengths) > _MOST_RANGES:
            raise InputError(
                f"a chain of {n:,} ops with stages of up to {longest:,} is too long for devices with stage_times",
                where="/device",
            )
        held = _held_bytes(instance, longest)
        ticks = np.full((len(lengths), n, longest), NEVER, dtype=np.int64)
        for c, length in enumerate(lengths):
            table = cost.stage_ticks[c]
            own = _modelled(instance, c, held, length) if table is None else np.tile(table[1 : length + 1], (n, 1))
            device = cost.machine.classes[c]
            if device.memory_bytes is not None:
                kept = held[:, :length] + cost.machine.classes[c].activation_reserve_bytes
                own[kept > device.memory_bytes] = NEVER
            for size in range(1, length + 1):
                ticks[c, : n - size + 1, size - 1] = own[: n - size + 1, size - 1]
        return cls(instance, ticks)

    @cached_property
    def vectors(self) -> tuple[Int64Array, Int64Array]:
        """Costs by class of ranges that differ in them, a row each, and the row of every range: shape (n, longest).

        Ranges that are impossible on devices of all classes have the row −1.
        """
        classes, n, longest = self.ticks.shape
        rows, of_range = np.unique(self.ticks.reshape(classes, -1).T, axis=0, return_inverse=True)
        of_range = of_range.reshape(n, longest).astype(np.int64)
        possible: BoolArray = np.any(rows < NEVER, axis=1)
        return rows, np.where(possible[of_range], of_range, -1)

    @property
    def values(self) -> Int64Array:
        """All costs that a stage may have, ascending."""
        found = np.unique(self.ticks)
        return found[found < NEVER]


def _held_bytes(instance: Instance, longest: int) -> Int64Array:
    """Return the parameters and states of each range, int64, shape (n, longest)."""
    order, cost = instance.order, instance.cost
    held = _sums(cost.own_bytes[order], longest)
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return held + _shared(cost.limited, position, longest)


def _sums(values: Int64Array, longest: int) -> Int64Array:
    """Return the sum of each range; those that go beyond the end are of no meaning."""
    n = len(values)
    total = np.concatenate([[0], np.cumsum(values)])
    ends = np.minimum(np.arange(n)[:, None] + np.arange(1, longest + 1), n)
    sums: Int64Array = total[ends] - total[:n, None]
    return sums


def _shared(weights: Weights, position: Int32Array, longest: int) -> Int64Array:
    """Return what each range holds of weights that several ops may read, each once."""
    n = len(position)
    held = np.zeros((n, longest), dtype=np.int64)
    begins = np.arange(n)
    for w, size in enumerate(weights.bytes.tolist()):
        readers = np.sort(position[weights.readers[weights.offsets[w] : weights.offsets[w + 1]]])
        following = np.searchsorted(readers, begins)
        nearest = np.append(readers, 2 * n)[following]
        held[begins[:, None] + np.arange(longest) >= nearest[:, None]] += size
    return held


def _modelled(instance: Instance, c: int, held: Int64Array, length: int) -> Int64Array:
    """Return the costs on a device whose stages pay for their ops and for the tensors that they cut."""
    cost, n, order = instance.cost, instance.op_count, instance.order
    device = cost.machine.classes[c]
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    crossing = np.zeros(n + 1, dtype=np.int64)
    read = np.flatnonzero(np.diff(instance.pin_offsets) > 1)
    np.add.at(crossing, position[instance.producer[read]] + 1, cost.transfer[cost.link_of[c], read])
    ticks = _sums(cost.work[c][order], length) + crossing[:n, None]
    ticks += crossing[np.minimum(np.arange(n)[:, None] + np.arange(1, length + 1), n)]
    if device.fast_memory_bytes is not None:
        streamed = _weights_held(instance, length) + device.activation_reserve_bytes - device.fast_memory_bytes
        ticks += np.array([[device.link.streaming_ps(max(0, size)) for size in row] for row in streamed.tolist()])
    return ticks


def _weights_held(instance: Instance, longest: int) -> Int64Array:
    """Return the parameters alone of each range, int64, shape (n, longest)."""
    order, cost = instance.order, instance.cost
    own = cost.own_bytes[order]
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return _sums(own, longest) + _shared(cost.weights, position, longest)
