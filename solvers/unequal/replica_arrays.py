"""An instance whose stages may have several devices each, as the kernels take it: a measure of work, and ticks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.instance import LARGEST_TOTAL, Instance
from mtpp.solvers.downsets.downset_arrays import DownsetArrays, downset_arrays
from mtpp.solvers.orders.device_labels import LabelRules, label_rules
from mtpp.solvers.stage_cost.cost_arrays import (
    CHUNK,
    DENOMINATOR,
    FAST_BYTES,
    LIMIT_BYTES,
    NUMERATOR,
    RESERVE_BYTES,
    UNLIMITED_BYTES,
    MemoryArrays,
    memory_arrays,
)
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER
from mtpp.solvers.unequal.unequal_arrays import ClassArrays

MOST_SETS = 4096
"""Sets of devices for one stage at most; with more the search gives up."""

_FINEST_PRICE = 4096
_PREFIX_LABELS = 128
_CLOSE = 1e-7


class DeviceTicks(NamedTuple):
    """Ticks of ops and tensors on devices of each class, ops numbered along the instance's order.

    Attributes
    ----------
    work, transfer
        int64, shapes (classes, n) and (classes, m).
    mode, figures
        Of :class:`~mtpp.solvers.stage_cost.cost_arrays.MemoryArrays`; figures by class, int64, shape (classes, 1, 8).
    class_of
        Class of each device in the machine's order, int64, shape (k,).
    prices
        Of each class; see :func:`measured_arrays`. int64, shape (classes,).
    """

    work: Int64Array
    transfer: Int64Array
    mode: int
    figures: Int64Array
    class_of: Int64Array
    prices: Int64Array


class SetScratch(NamedTuple):
    """Arrays that sets of devices of one stage are found in.

    Attributes
    ----------
    ticks
        f_c(S) of each class; :data:`~mtpp.solvers.stage_cost.kernels.stage_cost.NEVER` above its memory. int64.
    chosen, available
        Devices of each class, int64.
    ranked
        Classes, those of the least ticks first; the most numerous one last where sets of classes are listed. int64.
    sets
        Smallest sets, packed as labels in free order are, int64.
    """

    ticks: Int64Array
    chosen: Int64Array
    available: Int64Array
    ranked: Int64Array
    sets: Int64Array


class PrefixLabels(NamedTuple):
    """Labels of each prefix of an order.

    Attributes
    ----------
    counts
        Of each prefix, int64, shape (n + 1,).
    label, begin, parent
        Labels; where the last stage begins, and the label of that prefix that it follows. int64, shape (n + 1, labels).
    """

    counts: Int64Array
    label: Int64Array
    begin: Int64Array
    parent: Int64Array


def prefix_labels(op_count: int) -> PrefixLabels:
    """Return room for the labels of the prefixes of an order."""
    shape = (op_count + 1, _PREFIX_LABELS)
    empty = [np.zeros(shape, dtype=np.int64) for _ in range(3)]
    return PrefixLabels(np.zeros(op_count + 1, dtype=np.int64), *empty)


def device_prices(instance: Instance) -> list[int]:
    """Return a whole number for each class of devices, about in proportion to its speed.

    Where classes differ by speed alone, and ticks are rounded little, prices in proportion make capacity bounds tight.
    """
    totals = [max(1, sum(row)) for row in instance.cost.work.tolist()]
    slowest = max(totals)
    scales = [Fraction(slowest, total) for total in totals]
    room = (LARGEST_TOTAL // 2) // max(1, instance.k * instance.most_ticks)
    finest = min(_FINEST_PRICE, room // max(1, int(max(scales)) + 1))
    best: tuple[float, list[int]] = (2.0, [1] * len(scales))
    for scale in range(1, finest + 1):
        prices = [max(1, round(scale * one)) for one in scales]
        off = max(abs(float(price / (scale * one)) - 1) for price, one in zip(prices, scales, strict=True))
        if off < best[0] - _CLOSE:
            best = off, prices
        if off < _CLOSE:
            break
    common = gcd(*best[1])
    return [price // common for price in best[1]]


def device_ticks(instance: Instance, prices: Sequence[int]) -> DeviceTicks:
    """Return the ticks of an instance on each class of devices; O(classes · (n + m))."""
    cost = instance.cost
    reads = np.diff(instance.pin_offsets) - 1
    memory = memory_arrays(instance)
    return DeviceTicks(
        np.ascontiguousarray(cost.work[:, instance.order]),
        np.ascontiguousarray(cost.transfer[cost.link_of][:, reads > 0]),
        memory.mode,
        memory.figures[:, np.newaxis, :].copy(),
        cost.class_of(instance.k),
        np.array(prices, dtype=np.int64),
    )


def measured_arrays(instance: Instance, ticks: DeviceTicks) -> ClassArrays:
    """Return the arrays of the measure that stages are listed by, as those of a single class.

    With a price q_c for each class, let y(v) be the least q_c · work_c(v), and z(t) the least q_c · transfer_c(t). The
    measure of a stage S with all that it cuts is at most q_c · f_c(S) for every c. So a set R of devices that brings it
    within T ticks has T · Σ q_c of them ≥ y(S) + z(S).
    """
    plain = downset_arrays(instance, 0)
    prices = ticks.prices[:, np.newaxis]
    work, transfer = (ticks.work * prices).min(axis=0), (ticks.transfer * prices).min(axis=0)
    most_cost = np.zeros_like(work)  # of use to the rule maximal alone, which does not hold here
    figures = _roomiest(ticks.figures[:, 0])
    shared = plain._replace(
        work=work,
        transfer=transfer,
        owed=transfer,
        giver=np.zeros_like(plain.giver),
        most_cost=most_cost,
        memory=MemoryArrays(plain.memory.mode, figures),
    )
    return class_of_measure(shared)


def class_of_measure(shared: DownsetArrays) -> ClassArrays:
    """Return arrays of one class."""
    return ClassArrays(
        shared,
        shared.work[np.newaxis],
        shared.most_cost[np.newaxis],
        shared.transfer[np.newaxis],
        shared.owed[np.newaxis],
        np.array([shared.work.sum()], dtype=np.int64),
        shared.memory.figures[np.newaxis],
        shared.work,
        shared.transfer,
        shared.work,
        np.full((2, 1), np.inf),
    )


def _roomiest(figures: Int64Array) -> Int64Array:
    """Return the memory of a device that holds whatever any of the classes does, and streams nothing."""
    best = figures[:1].copy()
    best[0, LIMIT_BYTES] = figures[:, LIMIT_BYTES].max()
    best[0, RESERVE_BYTES] = figures[:, RESERVE_BYTES].min()
    best[0, [FAST_BYTES, NUMERATOR, DENOMINATOR, CHUNK]] = UNLIMITED_BYTES, 1, 1, 1
    return best


def replica_rules(instance: Instance, ticks: DeviceTicks, limit: int) -> LabelRules | None:
    """Return the rules of labels where stages cost at most *limit* ticks; None if labels do not fit into a word.

    Rooms are of the measure, and of bytes of parameters: each device of a stage holds them all, so that one device for
    each stage has room for them together.
    """
    rules = label_rules(instance, instance.most_used, free=instance.machine.free)
    if rules is None:
        return None
    devices = instance.k
    most = NEVER // max(1, devices)
    held = [
        most if int(row[LIMIT_BYTES]) >= UNLIMITED_BYTES else min(most, int(row[LIMIT_BYTES] - row[RESERVE_BYTES]))
        for row in ticks.figures[:, 0]
    ]
    room = np.array([[min(most, limit * price) for price in ticks.prices.tolist()], held], dtype=np.int64)
    leading = np.zeros((2, devices + 1), dtype=np.int64)
    leading[:, :-1] = np.cumsum(room[:, ticks.class_of[::-1]], axis=1)[:, ::-1]
    return rules._replace(room=room, leading_room=leading)


def set_scratch(ticks: DeviceTicks, rules: LabelRules) -> SetScratch:
    """Return scratch for the sets of devices of one stage."""
    classes = len(ticks.prices)
    nothing = np.zeros(classes, dtype=np.int64)
    last = int(np.argmax(rules.counts))
    ranked = np.array([*(c for c in range(classes) if c != last), last], dtype=np.int64)
    return SetScratch(nothing.copy(), nothing.copy(), nothing.copy(), ranked, np.zeros(MOST_SETS, dtype=np.int64))
