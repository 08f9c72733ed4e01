"""An instance on devices that differ, and the state of a search, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.downset_arrays import DownsetArrays, WordArray, downset_arrays, table_size
from mtpp.solvers.orders.device_labels import LabelRules, label_rules
from mtpp.solvers.stage_cost.cost_arrays import LIMIT_BYTES, RESERVE_BYTES, UNLIMITED_BYTES
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER

_ABOVE = 1 + 1e-12
"""Far more than floats lose."""


class ClassArrays(NamedTuple):
    """An instance whose ops are numbered along a topological order, with the ticks of each class of devices.

    Attributes
    ----------
    shared
        Of all classes; its ticks and memories are those of the first.
    work, most_cost, transfer, owed
        As those of :class:`~mtpp.solvers.downsets.downset_arrays.DownsetArrays`, int64, shape (classes, n or m).
        *owed* is what a later stage of any class loses at least for a tensor, in ticks of the row's class.
    total
        Work of all ops, int64, shape (classes,).
    figures
        Memories of each class, int64, shape (classes, 1, 6).
    least_work, least_transfer
        The least of any class, int64, shapes (n,) and (m,).
    priced
        Where latency counts: least work of each op at prices of time and memory, int64, shape (n,).
    stretch
        A stage on a device of the class pays at most so many times what it pays more than the least work of its ops,
        and that at prices; infinite if some op takes no more there. float64, shape (2, classes).
    """

    shared: DownsetArrays
    work: Int64Array
    most_cost: Int64Array
    transfer: Int64Array
    owed: Int64Array
    total: Int64Array
    figures: Int64Array
    least_work: Int64Array
    least_transfer: Int64Array
    priced: Int64Array
    stretch: NDArray[np.float64]


class UnequalStore(NamedTuple):
    """The downsets reached, those of equal size in a chain.

    Attributes
    ----------
    bits, keys, table
        As in :class:`~mtpp.solvers.downsets.downset_arrays.DownsetStore`.
    work, owed
        Ticks of the ops in it, and of the tensors that are made in it and read after it, by class, int64.
    params
        Bytes of the ops in it, int64.
    rest
        Least work of the ops after it; with the least transfers of tensors from it to them; and that work at prices.
        int64, three columns.
    front
        Its first label; −1: none. int32.
    following
        The next downset of its size; −1: none. int32.
    of_size
        The first downset of each size; −1: none. int32, shape (n + 1,).
    """

    bits: WordArray
    keys: WordArray
    table: Int32Array
    work: Int64Array
    owed: Int64Array
    params: Int64Array
    rest: Int64Array
    front: Int32Array
    following: Int32Array
    of_size: Int32Array


class LabelPool(NamedTuple):
    """Labels of all downsets: chains, one for each downset.

    Attributes
    ----------
    label
        int64.
    following
        The next label of the downset; −1: none. int32.
    parent
        The label that the last stage follows; −1: none. int32.
    owner
        The downset, int32.
    class_of
        Class of the device of the last stage, int32.
    spent
        Latency so far, in ticks, where it counts; else 0. int64.
    """

    label: Int64Array
    following: Int32Array
    parent: Int32Array
    owner: Int32Array
    class_of: Int32Array
    spent: Int64Array


Rates = Sequence[Sequence[Fraction | None]]
"""By two classes: the most work, in ticks of the first, that comes with a tick of the second; None: no such limit."""


def class_arrays(instance: Instance) -> tuple[ClassArrays, Rates]:
    """Return the arrays of *instance* and its rates of work; O(classes² · n + pins·log pins)."""
    rows = [downset_arrays(instance, c) for c in range(len(instance.cost.work))]
    rates = [[_rate(row.work, other.work) for other in rows] for row in rows]
    owed = np.array([_owed(of_row, rows) for of_row in rates], dtype=np.int64).reshape(len(rows), -1)
    least = np.min([row.work for row in rows], axis=0)
    arrays = ClassArrays(
        rows[0],
        np.array([row.work for row in rows]),
        np.array([row.most_cost for row in rows]),
        np.array([row.transfer for row in rows]).reshape(len(rows), -1),
        owed,
        np.array([row.work.sum() for row in rows], dtype=np.int64),
        np.array([row.memory.figures for row in rows]),
        least,
        np.min([row.transfer for row in rows], axis=0),
        least,
        np.array([[stretch_of(row.work, least) for row in rows]] * 2),
    )
    return arrays, rates


def stretch_of(work: Int64Array, least: NDArray[np.float64] | Int64Array) -> float:
    """Return b / (b − a), rounded up, for the largest a / b of the least work of an op and that on one class."""
    if (least[work == 0] > 0).any():
        return np.inf
    some = work > 0
    share = float((least[some] / work[some]).max(initial=0.0)) * _ABOVE
    return _ABOVE / (1 - share) if share < 1 else np.inf


def _owed(rates: Sequence[Fraction | None], rows: Sequence[DownsetArrays]) -> Int64Array:
    """Return what a later stage of any class loses at least for each tensor, in ticks of the class of *rates*."""
    least = np.full(len(rows[0].transfer), NEVER, dtype=np.int64)
    for rate, row in zip(rates, rows, strict=True):
        if rate is not None:
            least = np.minimum(least, _scaled(row.transfer, rate))
    return least


def _rate(work: Int64Array, other: Int64Array) -> Fraction | None:
    if (work[other == 0] > 0).any():
        return None
    some = other > 0
    pairs = {(a // g, b // g) for a, b, g in zip(*_with_divisors(work[some], other[some]), strict=True)}
    return max((Fraction(a, b) for a, b in pairs), default=Fraction(0))


def _with_divisors(one: Int64Array, other: Int64Array) -> tuple[list[int], list[int], list[int]]:
    return one.tolist(), other.tolist(), np.gcd(one, other).tolist()


def _scaled(ticks: Int64Array, rate: Fraction) -> Int64Array:
    """Return ⌊ticks · rate⌋, at most :data:`NEVER`."""
    return np.array([min(NEVER, int(value * rate)) for value in ticks.tolist()], dtype=np.int64)


def limited_rules(instance: Instance, arrays: ClassArrays, rates: Rates, limit: int) -> LabelRules | None:
    """Return the rules of labels where stages cost at most *limit* ticks; None if labels do not fit into a word.

    Rooms are measured in work by the ticks of each class, and last in bytes of parameters.
    """
    rules = label_rules(instance, instance.most_used, free=instance.machine.free)
    if rules is None:
        return None
    class_of, devices = instance.cost.class_of(instance.k), instance.k
    room = _rooms(arrays, rates, limit, devices)
    leading = np.zeros((len(room), devices + 1), dtype=np.int64)
    leading[:, :-1] = np.cumsum(room[:, class_of[::-1]], axis=1)[:, ::-1]
    return rules._replace(room=room, leading_room=leading)


def _rooms(arrays: ClassArrays, rates: Rates, limit: int, devices: int) -> Int64Array:
    classes = len(arrays.work)
    most = NEVER // max(1, devices)
    room = np.empty((classes + 1, classes), dtype=np.int64)
    for c in range(classes):
        for d in range(classes):
            rate = rates[c][d]
            room[c, d] = most if rate is None else min(most, int(limit * rate))
    for d in range(classes):
        held = int(arrays.figures[d, 0, LIMIT_BYTES])
        room[classes, d] = (
            most if held >= UNLIMITED_BYTES else min(most, held - int(arrays.figures[d, 0, RESERVE_BYTES]))
        )
    return room


def fits_first(arrays: ClassArrays, rules: LabelRules) -> bool:
    """Return whether all devices together can hold everything, as the rule *fit* measures it."""
    total = [*arrays.total.tolist(), int(arrays.shared.param_bytes.sum())]
    room = rules.leading_room[:, 0]  # after no device: in free order these are the same sums
    return all(due <= held for due, held in zip(total, room.tolist(), strict=True))


def unequal_store(arrays: ClassArrays, capacity: int) -> UnequalStore:
    """Return a store with room for *capacity* downsets whose first row is the empty one."""
    classes, n = arrays.work.shape
    of_size = np.full(n + 1, -1, dtype=np.int32)
    of_size[0] = 0
    rest = np.zeros((capacity, 3), dtype=np.int64)
    rest[0] = arrays.least_work.sum()
    rest[0, 2] = arrays.priced.sum()
    return UnequalStore(
        np.zeros((capacity, -(-n // 64)), dtype=np.uint64),
        np.zeros(capacity, dtype=np.uint64),
        np.full(table_size(capacity), -1, dtype=np.int32),
        np.zeros((capacity, classes), dtype=np.int64),
        np.zeros((capacity, classes), dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        rest,
        np.zeros(capacity, dtype=np.int32),
        np.full(capacity, -1, dtype=np.int32),
        of_size,
    )


def label_pool(capacity: int) -> LabelPool:
    """Return a pool with room for *capacity* labels whose first is that of no devices, of downset 0."""
    return LabelPool(
        np.zeros(capacity, dtype=np.int64),
        np.full(capacity, -1, dtype=np.int32),
        np.full(capacity, -1, dtype=np.int32),
        np.zeros(capacity, dtype=np.int32),
        np.full(capacity, -1, dtype=np.int32),
        np.zeros(capacity, dtype=np.int64),
    )
