"""Labels: the devices that suffice for ops that come first, packed into a word whose fields are compared at once.

In fixed order a label is the number of leading devices, in free order the number of devices of each class; where the
devices used are limited, their number has a field too. A field has a guard bit above it, which is 0 in a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance

INDEX_BITS = 24
"""Of a label in fixed order: the number of leading devices with its guard; that of those used stands above it."""

LEADING = 2**23 - 1

LABEL_BITS = 62

UNREACHED, WHOLE, CAPPED = 0, 1, 2
"""The order cannot be cut; it can; it could not, but labels were left out, so that another cut may be there."""


class LabelRules(NamedTuple):
    """Fields of labels, what one more stage adds to them, and what the devices left can hold within a limit.

    See :mod:`mtpp.solvers.orders.kernels.device_labels`.

    Attributes
    ----------
    free
        1 if devices may stand in any order, else 0.
    most
        Devices that may be used.
    counted
        1 if the devices used are counted, else 0.
    guards
        Guard bits of all fields.
    width, field, used_shift
        In free order: bits of a class's field with its guard, the mask of one without, and the place of the sum.
    counts
        Devices of each class, int64.
    following
        In fixed order: the first device of each class after so many leading ones, counted from 1; 0: none. int64,
        shape (classes, devices + 1).
    room, leading_room
        By measure, such as work or bytes: what a device of each class, and all devices after so many leading ones, can
        hold at most. int64, shapes (measures, classes) and (measures, devices + 1).
    """

    free: int
    most: int
    counted: int
    guards: int
    width: int
    field: int
    used_shift: int
    counts: Int64Array
    following: Int64Array
    room: Int64Array
    leading_room: Int64Array

    def numbers(self, label: int) -> list[int]:
        """Return the numbers that a label stands for: in free order of each class, else as its fields."""
        if self.free:
            return [(label >> (self.width * c)) & self.field for c in range(len(self.counts))]
        return [label & LEADING, *[label >> INDEX_BITS] * self.counted]


class ClassRows(NamedTuple):
    """Rows of each class in the arrays of a cut, and what labels' rooms are measures of.

    Attributes
    ----------
    work_row, transfer_row
        Where the ticks of each class begin, int64, shape (classes,).
    least_work, share_bytes
        Of each op, as rows 0 and 1 of the rooms measure them, int64, shape (n,).
    """

    work_row: Int64Array
    transfer_row: Int64Array
    least_work: Int64Array
    share_bytes: Int64Array


class Fronts(NamedTuple):
    """Labels of each prefix of an order, shape (n + 1, labels).

    Attributes
    ----------
    labels
        Labels of each prefix, int32, shape (n + 1,).
    label
        int64.
    begin, parent, class_of
        The last stage: where it begins, the label of that prefix that it follows, and its class of devices; int32.
    paid
        Ticks of the last stage, int64.
    """

    labels: Int32Array
    label: Int64Array
    begin: Int32Array
    parent: Int32Array
    class_of: Int32Array
    paid: Int64Array


def label_rules(instance: Instance, most: int, *, free: bool) -> LabelRules | None:
    """Return the rules of labels of devices, at most *most* of them used, without rooms; None: no word holds them."""
    class_of, k = instance.cost.class_of(instance.k), instance.k
    classes = len(instance.cost.work)
    counts = np.bincount(class_of, minlength=classes).astype(np.int64)
    counted = most < k
    width = int(counts.max()).bit_length() + 1
    used_shift = classes * width
    if k > LEADING or (free and used_shift + counted * (most.bit_length() + 1) > LABEL_BITS):
        return None
    guards = sum(1 << (width * c + width - 1) for c in range(classes)) if free else 1 << (INDEX_BITS - 1)
    if counted:
        guards |= 1 << (used_shift + most.bit_length() if free else LABEL_BITS)
    following = np.zeros((classes, k + 1), dtype=np.int64)
    for lead in range(k - 1, -1, -1):
        following[:, lead] = following[:, lead + 1]
        following[class_of[lead], lead] = lead + 1
    field, nothing = (1 << (width - 1)) - 1, np.zeros((0, 0), dtype=np.int64)
    return LabelRules(
        int(free), most, int(counted), guards, width, field, used_shift, counts, following, nothing, nothing
    )


def devices_of(instance: Instance, classes: Sequence[int]) -> tuple[int, ...]:
    """Return a device of each of the classes, the first ones of the list that are left, then all others."""
    class_of = instance.cost.class_of(instance.k).tolist()
    left = {c: [i for i, other in enumerate(class_of) if other == c] for c in set(class_of)}
    used = [left[c].pop(0) for c in classes]
    return (*used, *(i for i in range(len(class_of)) if i not in set(used)))
