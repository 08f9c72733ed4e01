"""Cutting a topological order into stages on devices whose tensors pass from neighbour to neighbour.

As :mod:`mtpp.solvers.orders.kernels.device_slicing`. The cost of a boundary is one of the prefix before it and of the
classes of the two devices. So a label also has the class of the last stage's device, and what that stage has paid so
far: its work, its overflow and its left boundary. Of that, all that matters is which classes may follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.array_types import Int32Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.device_labels import CAPPED, UNREACHED, WHOLE
from mtpp.solvers.orders.kernels.device_labels import no_more, room_after, step
from mtpp.solvers.orders.kernels.device_slicing import fill_peaks
from mtpp.solvers.orders.kernels.slicing import add_weights
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES
from mtpp.solvers.stage_cost.kernels.stage_cost import memory_ticks, most_held
from mtpp.solvers.stage_cost.kernels.working_memory import peak_scratch

if TYPE_CHECKING:
    from mtpp.solvers.arrays import SlicingArrays
    from mtpp.solvers.orders.device_labels import ClassRows, LabelRules
    from mtpp.solvers.orders.neighbour_labels import NeighbourFronts, OrderBoundaries


@kernel
def neighbour_prefixes(
    order: Int32Array,
    cutoff: int,
    slicing: SlicingArrays,
    rules: LabelRules,
    rows: ClassRows,
    boundaries: OrderBoundaries,
    fronts: NeighbourFronts,
) -> int:
    """Find the devices that suffice for each prefix of *order* with every stage below *cutoff* ticks.

    Parameters
    ----------
    order, cutoff, rules, rows, fronts
        As of :func:`~mtpp.solvers.orders.kernels.device_slicing.label_prefixes`.

    Returns
    -------
    :data:`WHOLE` if the order can be cut so, else :data:`UNREACHED` or :data:`CAPPED`.

    Notes
    -----
    O(classes · n · w · labels²) time at worst, w being the longest run of ops whose work is below the cutoff.
    """
    n, classes = len(order), len(rows.work_row)
    costs, memory, param_bytes = slicing.costs, slicing.costs.memory, slicing.costs.param_bytes
    m = len(slicing.pin_offsets) - 1
    scratch = peak_scratch(n, slicing.ground)
    peaks = np.zeros(n, dtype=np.int64)
    last_pin, pins_seen = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    prefix_work = np.zeros((classes, n + 1), dtype=np.int64)
    prefix_params = np.zeros(n + 1, dtype=np.int64)
    left = np.zeros(classes, dtype=np.int64)
    heaviest = np.empty(classes, dtype=np.int64)
    for c in range(classes):
        heaviest[c] = most_held(cutoff, c, memory)
    most_bytes = heaviest.max()
    rest_work, rest_bytes = np.int64(0), np.int64(0)
    for v in range(n):
        rest_work += rows.least_work[v]
        rest_bytes += rows.share_bytes[v]
        fronts.labels[v + 1] = 0
    fronts.labels[0] = 1
    fronts.label[0, 0] = 0
    fronts.class_of[0, 0] = -1
    fronts.paid[0, 0] = 0
    last_reached = 0
    capped = False
    for right in range(n):
        op, end = order[right], right + 1
        rest_work -= rows.least_work[op]
        rest_bytes -= rows.share_bytes[op]
        prefix_params[end] = prefix_params[right] + param_bytes[op]
        first = left.min()
        if len(param_bytes) > n:
            prefix_params[end] += add_weights(op, first, slicing, last_pin, pins_seen, prefix_params)
            for e in range(slicing.op_tensor_offsets[op], slicing.op_tensor_offsets[op + 1]):
                last_pin[slicing.op_tensors[e]] = right
                pins_seen[slicing.op_tensors[e]] += 1
        params = prefix_params[end]
        for c in range(classes):
            prefix_work[c, end] = prefix_work[c, right] + costs.work[rows.work_row[c] + op]
            reserve = memory.figures[c, RESERVE_BYTES]
            while left[c] <= right and (
                prefix_work[c, end] - prefix_work[c, left[c]] >= cutoff
                or params - prefix_params[left[c]] + reserve > heaviest[c]
            ):
                left[c] += 1
        first = left.min()
        if first > last_reached:  # every segment that ends here starts where none does
            break
        fill_peaks(order, first, right, most_bytes, slicing, scratch, peaks)
        for c in range(classes):
            for begin in range(left[c], end):
                own: int = np.int64(-1)  # type: ignore[assignment]  # 0 is another type to numba
                for i in range(fronts.labels[begin]):
                    label = step(fronts.label[begin, i], c, rules)
                    if label < 0:
                        continue
                    if rest_work > room_after(label, 0, rules) or rest_bytes > room_after(label, 1, rules):
                        continue
                    paid: int = np.int64(0)  # type: ignore[assignment]  # as above
                    if fronts.class_of[begin, i] >= 0:
                        paid = boundaries.cross[boundaries.row_of[fronts.class_of[begin, i], c], begin]
                        if fronts.paid[begin, i] + paid >= cutoff:
                            continue
                    if own < 0:
                        own = prefix_work[c, end] - prefix_work[c, begin]
                        if memory.mode != NO_MEMORY:
                            peak = max(memory.figures[c, RESERVE_BYTES], peaks[begin])
                            own += memory_ticks(params - prefix_params[begin], peak, c, memory)
                    if own >= cutoff:
                        break
                    paid += own
                    if paid >= cutoff:
                        continue
                    barred = 0 if end == n else _barred(end, c, cutoff - paid, boundaries)
                    if barred < 0 or _needless(label, barred, c, end, rules.guards, fronts):
                        continue
                    if not _add_label(label, paid, barred, begin, i, c, end, rules.guards, fronts):
                        capped = True
        if fronts.labels[end] > 0:
            last_reached = end
    if fronts.labels[n] > 0:
        return WHOLE
    return CAPPED if capped else UNREACHED


@subroutine
def _barred(end: int, c: int, left: int, boundaries: OrderBoundaries) -> int:
    """Return the number of classes whose boundary with class *c* costs *left* or more at a prefix; −1: all do."""
    barred, free = 0, 0
    for other in range(len(boundaries.row_of)):
        row = boundaries.row_of[c, other]
        if row >= 0:
            if boundaries.cross[row, end] >= left:
                barred += 1
            else:
                free += 1
    return barred if free > 0 else -1


@subroutine
def _needless(label: int, barred: int, c: int, end: int, guards: int, fronts: NeighbourFronts) -> bool:
    """Return whether a label of the prefix with the same class needs no more devices and bars no more classes."""
    for i in range(fronts.labels[end]):
        if (
            fronts.class_of[end, i] == c
            and fronts.barred[end, i] <= barred
            and no_more(fronts.label[end, i], label, guards)
        ):
            return True
    return False


@subroutine
def _add_label(
    label: int, paid: int, barred: int, begin: int, at: int, c: int, end: int, guards: int, fronts: NeighbourFronts
) -> bool:
    """Add a label to those of a prefix, none of which makes it needless; return False if there is no room for it."""
    kept = 0
    for i in range(fronts.labels[end]):
        if (
            fronts.class_of[end, i] == c
            and barred <= fronts.barred[end, i]
            and no_more(label, fronts.label[end, i], guards)
        ):
            continue
        if kept != i:
            fronts.label[end, kept] = fronts.label[end, i]
            fronts.begin[end, kept] = fronts.begin[end, i]
            fronts.parent[end, kept] = fronts.parent[end, i]
            fronts.class_of[end, kept] = fronts.class_of[end, i]
            fronts.paid[end, kept] = fronts.paid[end, i]
            fronts.barred[end, kept] = fronts.barred[end, i]
        kept += 1
    fronts.labels[end] = kept
    if kept == fronts.label.shape[1]:
        return False
    fronts.label[end, kept] = label
    fronts.begin[end, kept] = begin
    fronts.parent[end, kept] = at
    fronts.class_of[end, kept] = c
    fronts.paid[end, kept] = paid
    fronts.barred[end, kept] = barred
    fronts.labels[end] = kept + 1
    return True
