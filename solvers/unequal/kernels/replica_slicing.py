"""Cutting a topological order into stages of several devices each, by the devices that suffice for each prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.orders.kernels.device_labels import no_more, room_after
from mtpp.solvers.stage_cost.cost_arrays import NO_MEMORY, RESERVE_BYTES, MemoryArrays
from mtpp.solvers.stage_cost.kernels.stage_cost import EQUAL, NEVER, stage_ticks
from mtpp.solvers.unequal.kernels.device_sets import (
    all_suffice,
    joined,
    next_sets_in_order,
    smallest_sets,
    whole_label,
)

if TYPE_CHECKING:
    from mtpp.array_types import Int32Array, Int64Array
    from mtpp.solvers.downsets.downset_arrays import DownsetArrays
    from mtpp.solvers.orders.device_labels import LabelRules
    from mtpp.solvers.unequal.replica_arrays import DeviceTicks, PrefixLabels, SetScratch


@kernel
def label_shared_prefixes(
    order: Int32Array,
    limit: int,
    measure: DownsetArrays,
    devices: DeviceTicks,
    rules: LabelRules,
    sets: SetScratch,
    prefixes: PrefixLabels,
) -> bool:
    """Find the devices that suffice for each prefix of an order with every stage at most *limit* ticks.

    Parameters
    ----------
    order
        Topological order of the ops as *measure* numbers them, int32, shape (n,).
    prefixes
        Filled for the caller: the labels of the prefix of n ops, if any, lead back to the first one.

    Returns
    -------
    Whether the order can be cut so; False also where a prefix has too many labels.

    Notes
    -----
    O(n² · classes · labels of a prefix) time. Stages hold their ops' shares of what several ops read.
    """
    n, m = len(order), len(measure.transfer)
    whole = whole_label(rules)
    position = np.empty(n, dtype=np.int64)
    for i in range(n):
        position[order[i]] = i
    rest = np.zeros(n + 1, dtype=np.int64)
    rest_bytes = np.zeros(n + 1, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        rest[i] = rest[i + 1] + measure.work[order[i]]
        rest_bytes[i] = rest_bytes[i + 1] + measure.param_bytes[order[i]]
    unread = np.zeros(m, dtype=np.int64)
    seen = np.full(m, -1, dtype=np.int64)
    paid = np.zeros(len(devices.prices), dtype=np.int64)
    prefixes.counts[:] = 0
    prefixes.counts[0] = 1
    prefixes.label[0, 0] = 0
    for begin in range(n):
        most = -1
        for i in range(prefixes.counts[begin]):
            most = max(most, room_after(prefixes.label[begin, i], 0, rules))
        if most < 0:
            continue
        paid[:] = 0
        params = np.int64(0)
        for end in range(begin + 1, n + 1):
            v = order[end - 1]
            if rest[begin] - rest[end] > most:
                break
            _join(v, begin, measure, devices, position, unread, seen, paid)
            params += measure.param_bytes[v]
            if not _price(params, paid, devices, sets):
                break
            if all_suffice(limit, rules, sets):
                _label_prefix(begin, end, limit, whole, rest[end], rest_bytes[end], devices, rules, sets, prefixes)
    return bool(prefixes.counts[n] > 0)


@subroutine
def _join(
    v: int,
    begin: int,
    measure: DownsetArrays,
    devices: DeviceTicks,
    position: Int64Array,
    unread: Int64Array,
    seen: Int64Array,
    paid: Int64Array,
) -> None:
    """Add the ticks of an op, and of the tensors that the segment from *begin* on now cuts or no longer does."""
    for c in range(len(paid)):
        paid[c] += devices.work[c, v]
    for e in range(measure.read_offsets[v], measure.read_offsets[v + 1]):
        t = measure.read[e]
        sign = 0
        if position[measure.producer[t]] < begin:
            sign = 1 if seen[t] != begin else 0
            seen[t] = begin
        else:
            unread[t] -= 1
            sign = -1 if unread[t] == 0 else 0
        if sign != 0:
            for c in range(len(paid)):
                paid[c] += sign * devices.transfer[c, t]
    for e in range(measure.made_offsets[v], measure.made_offsets[v + 1]):
        t = measure.made[e]
        unread[t] = measure.consumer_offsets[t + 1] - measure.consumer_offsets[t]
        for c in range(len(paid)):
            paid[c] += devices.transfer[c, t]


@subroutine
def _price(params: int, paid: Int64Array, devices: DeviceTicks, sets: SetScratch) -> bool:
    """Set the ticks of a segment on each class of devices; return whether the memory of any holds it."""
    held = False
    for c in range(len(paid)):
        ticks = paid[c]
        if devices.mode != NO_MEMORY:
            memory = MemoryArrays(devices.mode, devices.figures[c])
            ticks = min(stage_ticks(ticks, params, memory.figures[EQUAL, RESERVE_BYTES], EQUAL, memory), NEVER)
        sets.ticks[c] = ticks
        held = held or ticks < NEVER
    return held


@subroutine
def _label_prefix(
    begin: int,
    end: int,
    limit: int,
    whole: int,
    rest: int,
    rest_bytes: int,
    devices: DeviceTicks,
    rules: LabelRules,
    sets: SetScratch,
    prefixes: PrefixLabels,
) -> None:
    """Give the prefix that a segment ends labels, where the rest fits into the devices that they leave."""
    count = 0
    if rules.free:
        count = smallest_sets(limit, rules, sets)
    for i in range(prefixes.counts[begin]):
        label = prefixes.label[begin, i]
        if not rules.free:
            count = next_sets_in_order(label, limit, devices, rules, sets)
        for j in range(count):
            new = joined(label, sets.sets[j], whole, rules) if rules.free else sets.sets[j]
            if new >= 0 and rest <= room_after(new, 0, rules) and rest_bytes <= room_after(new, 1, rules):
                _add(new, begin, i, end, rules.guards, prefixes)


@subroutine
def _add(label: int, begin: int, parent: int, end: int, guards: int, prefixes: PrefixLabels) -> None:
    """Add a label to those of a prefix, unless one of them makes it needless or there is no room."""
    for i in range(prefixes.counts[end]):
        if no_more(prefixes.label[end, i], label, guards):
            return
    kept = 0
    for i in range(prefixes.counts[end]):
        if not no_more(label, prefixes.label[end, i], guards):
            prefixes.label[end, kept] = prefixes.label[end, i]
            prefixes.begin[end, kept] = prefixes.begin[end, i]
            prefixes.parent[end, kept] = prefixes.parent[end, i]
            kept += 1
    if kept < prefixes.label.shape[1]:
        prefixes.label[end, kept] = label
        prefixes.begin[end, kept] = begin
        prefixes.parent[end, kept] = parent
        kept += 1
    prefixes.counts[end] = kept
