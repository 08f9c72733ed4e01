"""Cutting a topological order into stages on devices that differ, by the devices that suffice for each prefix.

As :mod:`mtpp.solvers.orders.kernels.slicing`, with the costs of segments kept in the ticks of each class of devices.
A prefix of the order has labels, the devices that suffice for it: :mod:`mtpp.solvers.orders.device_labels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.device_labels import CAPPED, UNREACHED, WHOLE
from mtpp.solvers.orders.kernels.device_labels import no_more, room_after, step
from mtpp.solvers.orders.kernels.slicing import add_weights
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES
from mtpp.solvers.stage_cost.kernels.stage_cost import memory_ticks, most_held
from mtpp.solvers.stage_cost.kernels.working_memory import PeakScratch, peak_scratch, window_peaks

if TYPE_CHECKING:
    from mtpp.solvers.arrays import SlicingArrays
    from mtpp.solvers.orders.device_labels import ClassRows, Fronts, LabelRules


@subroutine
def _extend(
    right: int,
    left: int,
    op: int,
    slicing: SlicingArrays,
    rows: ClassRows,
    first_pin: Int64Array,
    last_pin: Int64Array,
    pins_seen: Int64Array,
    change: Int64Array,
) -> None:
    """Note how the costs of the segments that start at *left* … *right* change as *op* joins, by class of devices."""
    for e in range(slicing.op_tensor_offsets[op], slicing.op_tensor_offsets[op + 1]):
        t = slicing.op_tensors[e]
        pins = slicing.pin_offsets[t + 1] - slicing.pin_offsets[t]
        if pins < 2:
            continue
        before = last_pin[t] if pins_seen[t] > 0 else -1
        if pins_seen[t] == 0:
            first_pin[t] = right
        last_pin[t] = right
        pins_seen[t] += 1
        whole = first_pin[t] if pins_seen[t] == pins else -1
        for c in range(len(rows.work_row)):
            paid = slicing.costs.transfer[rows.transfer_row[c] + t]
            change[c, right] += paid
            if before >= left:
                change[c, before] -= paid
            if whole >= left:
                change[c, whole] -= paid


@subroutine
def fill_peaks(
    order: Int32Array,
    left: int,
    right: int,
    most_bytes: int,
    slicing: SlicingArrays,
    scratch: PeakScratch | None,
    peaks: Int64Array,
) -> None:
    """Set the peaks in order of the segments that start at *left* … *right*; nothing without scratch for them."""
    if scratch is None:
        return
    window_peaks(order, left, right, most_bytes, slicing, slicing.ground, scratch)
    for begin in range(left, right + 1):
        peaks[begin] = scratch.peaks[begin]


@subroutine
def _add_label(label: int, paid: int, begin: int, at: int, c: int, end: int, guards: int, fronts: Fronts) -> bool:
    """Add a label to those of a prefix, none of which makes it needless; return False if there is no room for it."""
    kept = 0
    for i in range(fronts.labels[end]):
        if not no_more(label, fronts.label[end, i], guards):
            if kept != i:
                fronts.label[end, kept] = fronts.label[end, i]
                fronts.begin[end, kept] = fronts.begin[end, i]
                fronts.parent[end, kept] = fronts.parent[end, i]
                fronts.class_of[end, kept] = fronts.class_of[end, i]
                fronts.paid[end, kept] = fronts.paid[end, i]
            kept += 1
    fronts.labels[end] = kept
    if kept == fronts.label.shape[1]:
        return False
    fronts.label[end, kept] = label
    fronts.begin[end, kept] = begin
    fronts.parent[end, kept] = at
    fronts.class_of[end, kept] = c
    fronts.paid[end, kept] = paid
    fronts.labels[end] = kept + 1
    return True


@kernel
def label_prefixes(
    order: Int32Array, cutoff: int, slicing: SlicingArrays, rules: LabelRules, rows: ClassRows, fronts: Fronts
) -> int:
    """Find the devices that suffice for each prefix of *order* with every stage below *cutoff* ticks.

    Parameters
    ----------
    order
        Topological order, int32, shape (n,).
    cutoff
        Ticks, above 0.
    rules
        Of labels with this cutoff.
    rows
        Of each class.
    fronts
        Filled for the caller: the labels of the prefix of n ops, if any, lead back to the first one.

    Returns
    -------
    :data:`WHOLE` if the order can be cut so, else :data:`UNREACHED` or :data:`CAPPED`.

    Notes
    -----
    O(classes · (n·w + pins)) time, w being the longest run of ops whose work is below the cutoff, times the labels of a
    prefix: one in fixed order without a limit on the devices used. Where peaks in order matter, the pins of such a run
    times log n for each right end are added.
    """
    n, classes = len(order), len(rows.work_row)
    costs, memory, param_bytes = slicing.costs, slicing.costs.memory, slicing.costs.param_bytes
    m = len(slicing.pin_offsets) - 1
    scratch = peak_scratch(n, slicing.ground)
    peaks = np.zeros(n, dtype=np.int64)
    first_pin, last_pin = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    pins_seen = np.zeros(m, dtype=np.int64)
    change = np.zeros((classes, n), dtype=np.int64)
    cost = np.zeros((classes, n), dtype=np.int64)
    prefix_params = np.zeros(n + 1, dtype=np.int64)
    left = np.zeros(classes, dtype=np.int64)
    window_work = np.zeros(classes, dtype=np.int64)
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
    kind = np.zeros(n + 1, dtype=np.int64)  # equal for prefixes with equal labels
    last_reached = 0
    capped = False
    for right in range(n):
        op = order[right]
        rest_work -= rows.least_work[op]
        rest_bytes -= rows.share_bytes[op]
        prefix_params[right + 1] = prefix_params[right] + param_bytes[op]
        first = left.min()
        if len(param_bytes) > n:
            prefix_params[right + 1] += add_weights(op, first, slicing, last_pin, pins_seen, prefix_params)
        params = prefix_params[right + 1]
        for c in range(classes):
            window_work[c] += costs.work[rows.work_row[c] + op]
            reserve = memory.figures[c, RESERVE_BYTES]
            while left[c] <= right and (
                window_work[c] >= cutoff or params - prefix_params[left[c]] + reserve > heaviest[c]
            ):
                window_work[c] -= costs.work[rows.work_row[c] + order[left[c]]]
                left[c] += 1
        first = left.min()
        if first > last_reached:  # every segment that ends here starts where none does
            break
        _extend(right, first, op, slicing, rows, first_pin, last_pin, pins_seen, change)
        fill_peaks(order, first, right, most_bytes, slicing, scratch, peaks)
        end = right + 1
        for c in range(classes):
            added = costs.work[rows.work_row[c] + op]
            cost[c, right] = 0
            for begin in range(right, left[c] - 1, -1):
                added += change[c, begin]
                change[c, begin] = 0
                cost[c, begin] += added
            tried: int = np.int64(-1)  # type: ignore[assignment]  # 0 is another type to numba
            for begin in range(left[c], end):
                if cost[c, begin] >= cutoff or fronts.labels[begin] == 0 or kind[begin] == tried:
                    continue
                paid: int = np.int64(-1)  # type: ignore[assignment]  # as above
                for i in range(fronts.labels[begin]):
                    label = step(fronts.label[begin, i], c, rules)
                    if label < 0 or _needless(label, end, rules.guards, fronts):
                        continue
                    if rest_work > room_after(label, 0, rules) or rest_bytes > room_after(label, 1, rules):
                        continue
                    if paid < 0:
                        paid = cost[c, begin]
                        if memory.mode != NO_MEMORY:
                            peak = max(memory.figures[c, RESERVE_BYTES], peaks[begin])
                            paid += memory_ticks(params - prefix_params[begin], peak, c, memory)
                    if paid >= cutoff:
                        break
                    if not _add_label(label, paid, begin, i, c, end, rules.guards, fronts):
                        capped = True
                if paid < cutoff:  # all of its labels had their turn
                    tried = kind[begin]
        kind[end] = kind[right] if _same_labels(right, end, fronts) else end
        if fronts.labels[end] > 0:
            last_reached = end
    if fronts.labels[n] > 0:
        return WHOLE
    return CAPPED if capped else UNREACHED


@subroutine
def _needless(label: int, end: int, guards: int, fronts: Fronts) -> bool:
    """Return whether a label of the prefix needs no more devices than *label*."""
    i = 0
    while i < fronts.labels[end] and not no_more(fronts.label[end, i], label, guards):
        i += 1
    return bool(i < fronts.labels[end])


@subroutine
def _same_labels(one: int, other: int, fronts: Fronts) -> bool:
    """Return whether two prefixes have the same labels, in any order."""
    if fronts.labels[one] != fronts.labels[other]:
        return False
    for i in range(fronts.labels[one]):
        j = 0
        while j < fronts.labels[other] and fronts.label[one, i] != fronts.label[other, j]:
            j += 1
        if j == fronts.labels[other]:
            return False
    return True
