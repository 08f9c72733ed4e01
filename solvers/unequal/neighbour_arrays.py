"""Boundaries between neighbouring devices, and labels of a search with them, as the kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.downset_arrays import grown


class BoundaryArrays(NamedTuple):
    """What tensors cost at boundaries, and what downsets come to there.

    Attributes
    ----------
    ticks
        By link and tensor, those tensors that have readers, int64, shape (links, m).
    row_of
        Link between devices of two classes; −1: no two such devices. int64, shape (classes, classes).
    cross
        By downset and link the ticks of all tensors that are made in it and read after it, int64.
    """

    ticks: Int64Array
    row_of: Int64Array
    cross: Int64Array

    def grown(self, capacity: int) -> BoundaryArrays:
        """Return the same with room for more downsets."""
        return self._replace(cross=grown(self.cross, capacity))


class NeighbourPool(NamedTuple):
    """Labels of all downsets: chains, one for each downset.

    Attributes
    ----------
    label, following, parent, owner, class_of
        As in :class:`~mtpp.solvers.unequal.unequal_arrays.LabelPool`; class −1 of the empty downset.
    paid
        Ticks of the last stage without its right boundary, int64.
    barred
        Classes that may not follow, as the boundary would cost too much, int32.
    spent
        Where latency counts: ticks of all stages without the right boundary of the last, int64.
    """

    label: Int64Array
    following: Int32Array
    parent: Int32Array
    owner: Int32Array
    class_of: Int32Array
    paid: Int64Array
    barred: Int32Array
    spent: Int64Array


def boundary_arrays(instance: Instance, capacity: int) -> BoundaryArrays:
    """Return the boundaries of an instance, with room for *capacity* downsets whose first is the empty one."""
    boundary = instance.cost.boundary
    assert boundary is not None
    read = np.diff(instance.pin_offsets) > 1
    cross = np.zeros((capacity, len(boundary.ticks)), dtype=np.int64)
    return BoundaryArrays(boundary.ticks[:, read].copy(), boundary.row_of.copy(), cross)


def neighbour_pool(capacity: int) -> NeighbourPool:
    """Return a pool with room for *capacity* labels whose first is that of no devices, of downset 0."""
    minus = np.full(capacity, -1, dtype=np.int32)
    owner, barred = np.zeros(capacity, dtype=np.int32), np.zeros(capacity, dtype=np.int32)
    whole = np.zeros(capacity, dtype=np.int64)
    return NeighbourPool(whole, minus, minus.copy(), owner, minus.copy(), whole.copy(), barred, whole.copy())
