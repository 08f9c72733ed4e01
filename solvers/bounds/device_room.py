"""The simple bound of devices that differ: the work that all of them together have room for within a time.

Let y(v) ≥ 0 be the work of op v on devices of one class, the measure. A device whose stage costs at most T holds at
most ⌊T · r⌋ of it, r being the largest y(v) / work(v) of any op on that device. With a limit on its memory it also
holds at most what the ops with most y for their parameters come to, the last one in part. Where the devices that may be
used come to less than Σ y together, the best ones, no partition has a bottleneck of T, in whatever order they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.names import SIMPLE
from mtpp.solvers.bounds.envelope import on_envelope
from mtpp.solvers.bounds.simple import simple_bound

_CLOSE = 1 - 1e-12
"""Of the largest ratio: what may be as large, for all that a float can tell."""

RULE = "device-room"


def first_bound(instance: Instance) -> LowerBound:
    """Return the simple bound, or where devices differ the better of the envelope's and of their room for work."""
    simple = on_envelope(simple_bound(instance.envelope), instance)
    return (
        simple
        if instance.uniform or instance.cost.counts_ops
        else max(simple, device_room_bound(instance), key=lambda one: one.value)
    )


def device_room_bound(instance: Instance) -> LowerBound:
    """Return the least ticks within which the devices have room for all work, by the best measure; tier ``exact``.

    Notes
    -----
    O(classes² · n·log n). Ops count as they were before any merge: the proof needs none.
    """
    base = instance if instance.ground is None else instance.ground.instance
    values = [_least_ticks(base, measure, instance.most_used) for measure in range(len(base.cost.work))]
    measure = max(range(len(values)), key=values.__getitem__)
    proof = {
        "rule": RULE,
        "order": instance.machine.order,
        "cutoff": values[measure],
        "k": instance.most_used,
        "measure": measure,
    }
    return LowerBound(values[measure], SIMPLE, Tier.EXACT, proof)


def _least_ticks(instance: Instance, measure: int, most: int) -> int:
    """Return the least T within which *most* devices have room for all ops, in ticks of one class."""
    cost = instance.cost
    measured = cost.work[measure]
    total = int(measured.sum())
    rates = [_largest_ratio(measured, row) for row in cost.work]
    rooms = [memory_room(instance, measured, c) for c in range(len(cost.work))]
    class_of = cost.class_of(instance.k).tolist()

    def holds(ticks: int) -> bool:
        held = [room if rate is None else min(room, int(ticks * rate)) for rate, room in zip(rates, rooms, strict=True)]
        return bool(sum(sorted((held[c] for c in class_of), reverse=True)[:most]) >= total)

    low, high = 0, max(1, instance.most_ticks)
    if not holds(high):  # the memories are too small for all ops: no time would do
        return 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _largest_ratio(measured: Int64Array, work: Int64Array) -> Fraction | None:
    """Return the largest y(v) / work(v) of any op with y; None: an op takes no time."""
    some = measured > 0
    if not some.any():
        return Fraction(0)
    if not work[some].all():
        return None
    ratio = measured[some] / work[some]
    close = np.flatnonzero(ratio >= ratio.max() * _CLOSE)
    pairs = set(zip(measured[some][close].tolist(), work[some][close].tolist(), strict=True))
    return max(Fraction(y, w) for y, w in pairs)


def memory_room(instance: Instance, measured: Int64Array, c: int) -> int:
    """Return the most y that a device of a class has memory for, its ops taken in part."""
    device, total = instance.machine.classes[c], int(measured.sum())
    if device.memory_bytes is None:
        return total
    left = device.memory_bytes - (device.activation_reserve_bytes if device.peak == "reserve" else 0)
    return _in_part(measured, instance.param_bytes, left)


def _in_part(measured: Int64Array, sizes: Int64Array, left: int) -> int:
    """Return the most y of ops that fit into *left* bytes, the last one in part, rounded down."""
    free = int(measured[sizes == 0].sum())
    sized = np.flatnonzero((sizes > 0) & (measured > 0))
    rows: Sequence[tuple[int, int]] = list(zip(measured[sized].tolist(), sizes[sized].tolist(), strict=True))
    for y, size in sorted(rows, key=lambda row: Fraction(-row[0], row[1])):
        if size > left:
            return free + y * left // size
        free += y
        left -= size
    return free
