"""Optimal cuts of one topological order on devices that differ, over the kernel in ``kernels/device_slicing.py``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from mtpp.inference.contraction import Contraction, merge
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.solvers.arrays import SlicingArrays, slicing_arrays
from mtpp.solvers.orders.device_labels import (
    LABEL_BITS,
    LEADING,
    WHOLE,
    ClassRows,
    Fronts,
    LabelRules,
    devices_of,
    label_rules,
)
from mtpp.solvers.orders.kernels.device_slicing import label_prefixes
from mtpp.solvers.stage_cost.cost_arrays import LIMIT_BYTES, NO_MEMORY, RESERVE_BYTES

LABELS = 64
"""Labels of a prefix in free order at most; what needs more is a search by chance."""

_MOST_CUTS = 4096
"""Places at which an order is cut at most; longer ones are cut where little crosses, then near the cuts found."""

_SAFE = 1 + 1e-9
"""Far more than a float loses."""


class DeviceCut(NamedTuple):
    """A partition into consecutive segments of an order, stage i on the i-th of the devices, and its bottleneck."""

    partition: Partition
    devices: tuple[int, ...]
    bottleneck: int


@dataclass(frozen=True, eq=False)
class DeviceSlicer:
    """Cuts topological orders of one instance on devices that differ; safe to use from several threads.

    Attributes
    ----------
    most
        Devices that may be used.
    free
        Whether devices may stand in any order; where too many differ for labels, they stay in the machine's.
    """

    instance: Instance
    most: int
    free: bool

    @classmethod
    def of(cls, instance: Instance, most: int | None = None, *, free: bool = False) -> Self:
        """Make an instance ready; O(classes · n + pins)."""
        used = instance.most_used if most is None else min(most, instance.k)
        return cls(instance, used, free and label_rules(instance, used, free=True) is not None)

    def best(self, order: Int32Array, cutoff: int | None = None, *, exact: bool = True) -> DeviceCut | None:
        """Cut one topological order with the least bottleneck.

        Parameters
        ----------
        order
            Permutation of the ops, int32, shape (n,); must be topological.
        cutoff
            Only partitions strictly below this many ticks are of interest.
        exact
            False: a bottleneck up to a thousandth above the least will do.

        Returns
        -------
        The best segmentation of *order*, or None if none beats *cutoff* and keeps to the memories. In free order it is
        the best where no prefix has more than 64 labels; orders of more than 4,096 ops are cut at as many places.

        Notes
        -----
        Bisection over integers; each step as :func:`~mtpp.solvers.orders.kernels.device_slicing.label_prefixes`.
        """
        if self.instance.op_count > _MOST_CUTS:
            return self._best_of_long(order, cutoff, exact=exact)
        low = self._lower
        found = self.below(order, cutoff) if cutoff is not None else None
        if cutoff is None:
            low, found = self._first(order, low)
        while found is not None and low < found.bottleneck:
            middle = (low + found.bottleneck) // 2
            if not exact and found.bottleneck - low <= found.bottleneck >> 10:
                break
            better = self.below(order, middle + 1)
            if better is None:
                low = middle + 1
            else:
                found = better
        return found

    def below(self, order: Int32Array, cutoff: int) -> DeviceCut | None:
        """Cut one topological order with every stage below *cutoff* ticks; None if that cannot be."""
        cutoff = min(cutoff, self.instance.most_ticks + 1)  # beyond that are the costs of what no memory holds
        if cutoff <= self._lower:
            return None
        n, labels = self.instance.op_count, self._labels
        fronts = Fronts(
            np.zeros(n + 1, dtype=np.int32),
            np.empty((n + 1, labels), dtype=np.int64),
            np.empty((n + 1, labels), dtype=np.int32),
            np.empty((n + 1, labels), dtype=np.int32),
            np.empty((n + 1, labels), dtype=np.int32),
            np.empty((n + 1, labels), dtype=np.int64),
        )
        order = order.copy()  # the graph's own order is read-only, which would compile every kernel again
        if label_prefixes(order, cutoff, self._slicing, self._rules(cutoff - 1), self._rows, fronts) != WHOLE:
            return None
        return self._cut(order, fronts)

    def _first(self, order: Int32Array, low: int) -> tuple[int, DeviceCut | None]:
        """Return a cut of *order*, and ticks that no cut of it is below, growing the gap to them twofold each time."""
        gap = max(1, low // 64)
        while low < self.instance.most_ticks:
            found = self.below(order, low + gap)
            if found is not None:
                return low, found
            low += gap
            gap *= 2
        return low, self.below(order, self.instance.most_ticks + 1)

    def _cut(self, order: Int32Array, fronts: Fronts) -> DeviceCut:
        """Return the cut that the first label of the whole order leads back to."""
        k = self.instance.k
        end, at = self.instance.op_count, 0
        stages: list[tuple[int, int, int]] = []
        worst = 0
        while end > 0:
            device = int(fronts.class_of[end, at] if self.free else fronts.label[end, at] & LEADING)
            stages.append((int(fronts.begin[end, at]), end, device))
            worst = max(worst, int(fronts.paid[end, at]))
            end, at = int(fronts.begin[end, at]), int(fronts.parent[end, at])
        stages.reverse()
        stage = np.empty(len(order), dtype=np.int32)
        for i, (begin, end, device) in enumerate(stages):
            stage[order[begin:end]] = i if self.free else device - 1
        devices = devices_of(self.instance, [c for _, _, c in stages]) if self.free else tuple(range(k))
        return DeviceCut(Partition.from_stages(self.instance, stage), devices, worst)

    def _best_of_long(self, order: Int32Array, cutoff: int | None, *, exact: bool) -> DeviceCut | None:
        """Cut an order where little crosses, then also near the cuts found."""
        places = cut_places(self.instance, order, _MOST_CUTS - 1)
        found = self._best_at(places, order, cutoff, exact=False)
        if found is None:
            return None
        position = np.flatnonzero(np.diff(found.partition.assignment[order])) + 1
        reach = np.arange(-(_MOST_CUTS // 4 // max(1, len(position))), _MOST_CUTS // 4 // max(1, len(position)))
        near = (position[:, np.newaxis] + reach).ravel()
        places = np.union1d(places[::2], np.union1d(near[(near > 0) & (near < len(order))], position))
        return self._best_at(places, order, found.bottleneck, exact=exact) or found

    def _best_at(self, places: Int64Array, order: Int32Array, cutoff: int | None, *, exact: bool) -> DeviceCut | None:
        """Cut an order at some of the places."""
        runs = runs_between(self.instance, order, places)
        slicer = type(self)(runs.instance, self.most, self.free)
        found = slicer.best(runs.instance.order, cutoff, exact=exact)
        return None if found is None else found._replace(partition=runs.lift(found.partition))

    @cached_property
    def _slicing(self) -> SlicingArrays:
        return slicing_arrays(self.instance)

    @cached_property
    def _class_of(self) -> Int64Array:
        return self.instance.cost.class_of(self.instance.k)

    @cached_property
    def _labels(self) -> int:
        if self.free:
            return LABELS
        return self.most if self.most < self.instance.k else 1

    @cached_property
    def _rates(self) -> list[float]:
        """Least work per tick of each class, at most, about."""
        work = self.instance.cost.work
        least = work.min(axis=0)
        some = least > 0
        return [float((least[some] / row[some]).max(initial=0.0)) for row in work]

    @cached_property
    def _lower(self) -> int:
        """Ticks that no partition is below."""
        rates = sorted((self._rates[c] for c in self._class_of.tolist()), reverse=True)[: self.most]
        work = self.instance.cost.work.min(axis=0)
        return max(int(work.max()), int(int(work.sum()) / max(sum(rates), 1e-9) / _SAFE) - 1, 0)

    def _rules(self, limit: int) -> LabelRules:
        """Return the rules of labels where stages cost at most *limit* ticks."""
        class_of, k = self._class_of, self.instance.k
        room = np.array([[min(limit, int(limit * rate * _SAFE) + 1) for rate in self._rates], self._byte_room])
        of_device = room[:, class_of]
        leading = np.zeros((2, k + 1), dtype=np.int64)
        for lead in range(k):
            leading[:, lead] = np.sort(of_device[:, lead:], axis=1)[:, ::-1][:, : self.most].sum(axis=1)
        return self._unlimited._replace(room=room, leading_room=leading)

    @cached_property
    def _unlimited(self) -> LabelRules:
        rules = label_rules(self.instance, self.most, free=self.free)
        assert rules is not None  # as :meth:`of` has seen to
        return rules

    @cached_property
    def _rows(self) -> ClassRows:
        cost = self.instance.cost
        return ClassRows(
            np.arange(len(cost.work), dtype=np.int64) * self.instance.op_count,
            cost.link_of * (len(self._slicing.pin_offsets) - 1),
            cost.work.min(axis=0),
            self._share_bytes,
        )

    @cached_property
    def _share_bytes(self) -> Int64Array:
        """Parameters of each op, and its share of others; zeros where they are no limit."""
        params = self.instance.param_bytes
        without = self._slicing.costs.mode == NO_MEMORY or int(params.sum()) * self.instance.k >= 2**LABEL_BITS
        return np.zeros_like(params) if without else params.copy()

    @cached_property
    def _byte_room(self) -> list[int]:
        """Bytes of parameters that a device of each class can hold at most."""
        total = int(self._share_bytes.sum())
        figures = self._slicing.costs.memory.figures
        return [min(total, limit) for limit in (figures[:, LIMIT_BYTES] - figures[:, RESERVE_BYTES]).tolist()]


def cut_places(instance: Instance, order: Int32Array, count: int) -> Int64Array:
    """Return places to cut an order at, ascending: of each of *count* pieces with like work, where least crosses."""
    n = instance.op_count
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    pins = position[instance.pins]
    change = np.zeros(n + 1, dtype=np.int64)
    if instance.tensor_count:
        begins = instance.pin_offsets[:-1]
        np.add.at(change, np.minimum.reduceat(pins, begins) + 1, instance.transfer)
        np.subtract.at(change, np.maximum.reduceat(pins, begins) + 1, instance.transfer)
    crossing = np.cumsum(change)[1:n]
    work = instance.work[order]
    share = np.cumsum(work / max(1, int(work.sum())) + 1 / n)[:-1] / 2
    piece = np.minimum((share * count).astype(np.int64), count - 1)
    by_crossing = np.lexsort((crossing, piece))
    first = by_crossing[np.diff(piece[by_crossing], prepend=-1) > 0]
    return np.sort(first) + 1


def runs_between(instance: Instance, order: Int32Array, places: Int64Array) -> Contraction:
    """Merge the ops of an order between places to cut it at."""
    group_of = np.empty(instance.op_count, dtype=np.int32)
    group_of[order] = np.searchsorted(places, np.arange(instance.op_count), side="right")
    return merge(instance, group_of, len(places) + 1)
