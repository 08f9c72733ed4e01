"""Labels of the prefixes of an order: the devices that suffice for one, as kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from mtpp.inference.graph import Int32Array, Int64Array

INDEX_BITS = 24
"""Of a label in fixed order: the number of leading devices with its guard; that of those used stands above it."""

LEADING = 2**23 - 1

UNREACHED, WHOLE, CAPPED = 0, 1, 2
"""The order cannot be cut; it can; it could not, but labels were left out, so that another cut may be there."""


class DeviceRules(NamedTuple):
    """Rules of labels within one cutoff; see :mod:`mtpp.solvers.orders.kernels.device_slicing`.

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
        Work (row 0) and bytes (row 1) that a device of each class, and all devices after so many leading ones, can
        hold at most. int64, shapes (2, classes) and (2, devices + 1).
    work_row, transfer_row
        Where the ticks of each class begin, int64, shape (classes,).
    least_work, share_bytes
        Of each op, as *room* measures them, int64, shape (n,).
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
