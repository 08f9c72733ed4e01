"""Labels of prefixes of an order whose tensors pass from neighbour to neighbour, as the kernel takes them."""

from __future__ import annotations

from typing import NamedTuple

from mtpp.inference.graph import Int32Array, Int64Array


class OrderBoundaries(NamedTuple):
    """What tensors cost at each place of an order.

    Attributes
    ----------
    cross
        By link and prefix the ticks of all tensors that are made in it and read after it, int64, shape (links, n + 1).
    row_of
        Link between devices of two classes; −1: no two such devices. int64, shape (classes, classes).
    """

    cross: Int64Array
    row_of: Int64Array


class NeighbourFronts(NamedTuple):
    """Labels of each prefix of an order, shape (n + 1, labels).

    Attributes
    ----------
    labels, label, begin, parent, class_of
        As in :class:`~mtpp.solvers.orders.device_labels.Fronts`.
    paid
        Ticks of the last stage without its right boundary, int64.
    barred
        Classes that may not follow, as the boundary would cost too much, int32.
    """

    labels: Int32Array
    label: Int64Array
    begin: Int32Array
    parent: Int32Array
    class_of: Int32Array
    paid: Int64Array
    barred: Int32Array
