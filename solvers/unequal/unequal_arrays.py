"""An instance on devices that differ, and the state of a search, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.downset_arrays import DownsetArrays, WordArray, downset_arrays, table_size
from mtpp.solvers.stage_cost.cost_arrays import LIMIT_BYTES, RESERVE_BYTES, UNLIMITED_BYTES
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER
from mtpp.solvers.unequal.kernels.label_layout import FIXED, FREE, INDEX_BITS


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
    """

    shared: DownsetArrays
    work: Int64Array
    most_cost: Int64Array
    transfer: Int64Array
    owed: Int64Array
    total: Int64Array
    figures: Int64Array


class LabelRules(NamedTuple):
    """Rules of labels within one limit; see :mod:`mtpp.solvers.unequal.kernels.labels`.

    Attributes
    ----------
    mode
        :data:`FIXED` or :data:`FREE`.
    most
        Devices that may be used.
    counted
        In fixed order: 1 if the devices used are counted, else 0.
    guards
        Guard bits of all fields.
    width, field
        In free order: bits of a field with its guard, and the mask of one without.
    counts
        Devices of each class, int64.
    following
        In fixed order: the first device of each class after so many leading ones, counted from 1; 0: none. int64,
        shape (classes, devices + 1).
    room
        Row c < classes: work, in ticks of class c, that a device of each class can hold at most; the last row: bytes of
        parameters. int64, shape (classes + 1, classes).
    leading_room
        The same of all devices after so many leading ones, int64, shape (classes + 1, devices + 1).
    """

    mode: int
    most: int
    counted: int
    guards: int
    width: int
    field: int
    counts: Int64Array
    following: Int64Array
    room: Int64Array
    leading_room: Int64Array


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
    """

    label: Int64Array
    following: Int32Array
    parent: Int32Array
    owner: Int32Array
    class_of: Int32Array


Rates = Sequence[Sequence[Fraction | None]]
"""By two classes: the most work, in ticks of the first, that comes with a tick of the second; None: no such limit."""


def class_arrays(instance: Instance) -> tuple[ClassArrays, Rates]:
    """Return the arrays of *instance* and its rates of work; O(classes² · n + pins·log pins)."""
    rows = [downset_arrays(instance, c) for c in range(len(instance.cost.work))]
    rates = [[_rate(row.work, other.work) for other in rows] for row in rows]
    owed = np.array([_owed(of_row, rows) for of_row in rates], dtype=np.int64).reshape(len(rows), -1)
    arrays = ClassArrays(
        rows[0],
        np.array([row.work for row in rows]),
        np.array([row.most_cost for row in rows]),
        np.array([row.transfer for row in rows]).reshape(len(rows), -1),
        owed,
        np.array([row.work.sum() for row in rows], dtype=np.int64),
        np.array([row.memory.figures for row in rows]),
    )
    return arrays, rates


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


def label_rules(instance: Instance, arrays: ClassArrays, rates: Rates, limit: int) -> LabelRules | None:
    """Return the rules of labels where stages cost at most *limit* ticks; None if labels do not fit into a word."""
    most = instance.most_used
    class_of = instance.cost.class_of(instance.k)
    classes, devices = len(arrays.work), len(class_of)
    counts = np.bincount(class_of, minlength=classes).astype(np.int64)
    room = _rooms(arrays, rates, limit, devices)
    following = np.zeros((classes, devices + 1), dtype=np.int64)
    leading = np.zeros((classes + 1, devices + 1), dtype=np.int64)
    for i in range(devices - 1, -1, -1):
        following[:, i] = following[:, i + 1]
        following[class_of[i], i] = i + 1
        leading[:, i] = leading[:, i + 1] + room[:, class_of[i]]
    if not instance.machine.free:
        if devices >= 1 << (INDEX_BITS - 1):
            return None
        guards = (1 << (INDEX_BITS - 1)) | (1 << (2 * INDEX_BITS - 1))
        counted = int(most < devices)
        return LabelRules(FIXED, most, counted, guards, 0, 0, counts, following, room, leading)
    width = int(counts.max()).bit_length() + 1
    if width * classes > 62:
        return None
    guards = sum(1 << (width * (c + 1) - 1) for c in range(classes))
    return LabelRules(FREE, most, 0, guards, width, (1 << (width - 1)) - 1, counts, following, room, leading)


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


def leading_devices(label: int) -> int:
    """Return the leading devices that a label of fixed order stands for."""
    return label & ((1 << INDEX_BITS) - 1)


def numbers_of(label: int, rules: LabelRules) -> list[int]:
    """Return the numbers that a label stands for."""
    if rules.mode == FIXED:
        return [leading_devices(label), *[label >> INDEX_BITS] * rules.counted]
    return [(label >> (rules.width * c)) & rules.field for c in range(len(rules.counts))]


def unequal_store(arrays: ClassArrays, capacity: int) -> UnequalStore:
    """Return a store with room for *capacity* downsets whose first row is the empty one."""
    classes, n = arrays.work.shape
    of_size = np.full(n + 1, -1, dtype=np.int32)
    of_size[0] = 0
    return UnequalStore(
        np.zeros((capacity, -(-n // 64)), dtype=np.uint64),
        np.zeros(capacity, dtype=np.uint64),
        np.full(table_size(capacity), -1, dtype=np.int32),
        np.zeros((capacity, classes), dtype=np.int64),
        np.zeros((capacity, classes), dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
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
    )
