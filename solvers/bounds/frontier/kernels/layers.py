"""States of a scan, by the live tensors: a layer before each op, and arcs, one for each label of the op."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int32Array, Int64Array
from mtpp.solvers.jit import kernel

BEFORE, INSIDE, AFTER = 0, 1, 2
"""Labels of an op: in an earlier stage, in this one, in a later one. Along an edge they never fall."""

LABELS = 3

BITS = 3
"""Bits of a live tensor in a state."""

SLOTS = 20
"""Live tensors of a state at most."""

_MADE_BEFORE, _READ, _MADE_INSIDE, _SENT, _MADE_AFTER = 0, 1, 2, 3, 4
"""A live tensor: made before the stage, not read inside or read; inside, not read after or read; after."""

_VALUE = (1 << BITS) - 1

NO_STATE = -1
"""Stands for the end of an arc where there is none."""

UNREACHED = 2**62
"""Ticks where there is no way: more than any way costs."""


class Steps(NamedTuple):
    """Ops along an order, with the tensors that they read and make.

    Attributes
    ----------
    read_offsets, read_shift, read_ticks
        Where the tensors that each op reads stand in a state, and their ticks, CSR by position, int64.
    kept
        Bits of a state that stay after each op, int64, shape (n,).
    made_offsets, made_shift, made_ticks
        The same of the tensors that each op makes and others read.
    work
        Ticks of each op, int64, shape (n,), by position.
    """

    read_offsets: Int64Array
    read_shift: Int64Array
    read_ticks: Int64Array
    kept: Int64Array
    made_offsets: Int64Array
    made_shift: Int64Array
    made_ticks: Int64Array
    work: Int64Array


class Layers(NamedTuple):
    """States before each op and after the last, and their arcs.

    Attributes
    ----------
    offsets
        First state of each layer, int64, shape (n + 2,).
    target
        State that each label of the layer's op leads to from each state, or :data:`NO_STATE`, int32, shape (states, 3).
    cost
        Ticks that the stage pays on that arc, int64, shape (states, 3).
    """

    offsets: Int64Array
    target: Int32Array
    cost: Int64Array


@kernel
def build_layers(steps: Steps, allowed: Int64Array, lazy: bool, most: int) -> tuple[int, Layers]:
    """Return the number of states, or −1 − (position reached) where there are more than *most*, and the layers.

    Parameters
    ----------
    allowed
        Labels of each op, by position, as a sum of 1 << label, int64.
    lazy
        Whether an op is after the stage only where it reads from an op inside or after it.
    most
        States in all.

    Notes
    -----
    O(states · (pins of an op)) time.
    """
    n = len(steps.work)
    offsets = np.zeros(n + 2, dtype=np.int64)
    room = 1024
    target = np.empty((room, LABELS), dtype=np.int32)
    cost = np.empty((room, LABELS), dtype=np.int64)
    keys = np.zeros(1, dtype=np.int64)
    size = 64
    slot_key = np.empty(size, dtype=np.int64)
    slot_at = np.full(size, -1, dtype=np.int64)
    offsets[1] = 1
    for i in range(n):
        begin, count = offsets[i], len(keys)
        if begin + count > most:
            return -1 - i, Layers(offsets, target, cost)
        if begin + count > room:
            while begin + count > room:
                room *= 2
            more_target, more_cost = np.empty((room, LABELS), dtype=np.int32), np.empty((room, LABELS), dtype=np.int64)
            more_target[:begin], more_cost[:begin] = target[:begin], cost[:begin]
            target, cost = more_target, more_cost
        while size < 8 * count:
            size *= 2
        if len(slot_key) < size:
            slot_key, slot_at = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        slot_at[:] = -1
        size = len(slot_key)
        mask = size - 1
        found = np.empty(LABELS * count, dtype=np.int64)
        met = 0
        for q in range(count):
            state = keys[q]
            inside_cost, after_cost = steps.work[i], np.int64(0)
            inside_state, after_state = state, state
            least = BEFORE
            for e in range(steps.read_offsets[i], steps.read_offsets[i + 1]):
                shift = steps.read_shift[e]
                value = (state >> shift) & _VALUE
                if value == _MADE_BEFORE:
                    inside_cost += steps.read_ticks[e]
                    inside_state += (_READ - _MADE_BEFORE) << shift
                elif value == _MADE_AFTER:
                    least = AFTER
                elif value != _READ:
                    least = max(least, INSIDE)
                    if value == _MADE_INSIDE:
                        after_cost += steps.read_ticks[e]
                        after_state += (_SENT - _MADE_INSIDE) << shift
            for label in range(LABELS):
                target[begin + q, label] = NO_STATE
                cost[begin + q, label] = 0
                if label < least or not (allowed[i] >> label) & 1:
                    continue
                if lazy and label == AFTER and least == BEFORE:
                    continue
                if label == BEFORE:
                    key, paid = state, np.int64(0)
                elif label == INSIDE:
                    key, paid = inside_state, inside_cost
                else:
                    key, paid = after_state, after_cost
                key &= steps.kept[i]
                for e in range(steps.made_offsets[i], steps.made_offsets[i + 1]):
                    free = steps.made_ticks[e] == 0
                    if label == BEFORE:
                        made = _READ if free else _MADE_BEFORE
                    elif label == INSIDE:
                        made = _SENT if free else _MADE_INSIDE
                    else:
                        made = _MADE_AFTER
                    key |= np.int64(made) << steps.made_shift[e]
                at = ((key * np.int64(-7046029254386353131)) >> 20) & mask
                while slot_at[at] >= 0 and slot_key[at] != key:
                    at = (at + 1) & mask
                if slot_at[at] < 0:
                    slot_at[at], slot_key[at] = met, key
                    found[met] = key
                    met += 1
                target[begin + q, label] = begin + count + slot_at[at]
                cost[begin + q, label] = paid
        keys = found[:met].copy()
        offsets[i + 2] = offsets[i + 1] + met
    count = offsets[n + 1]
    if count > len(target):
        more_target, more_cost = np.empty((count, LABELS), dtype=np.int32), np.empty((count, LABELS), dtype=np.int64)
        more_target[: offsets[n]], more_cost[: offsets[n]] = target[: offsets[n]], cost[: offsets[n]]
        target, cost = more_target, more_cost
    target[offsets[n] : count], cost[offsets[n] : count] = NO_STATE, 0
    return count, Layers(offsets, target[:count].copy(), cost[:count].copy())


@kernel
def costs_ahead(layers: Layers, closed: bool) -> Int64Array:
    """Return the least ticks of a way from each state to the last layer, int64, shape (states,); O(states).

    Parameters
    ----------
    closed
        Whether ways count alone on which no op is in the stage any more.
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    least = np.full(count, UNREACHED, dtype=np.int64)
    for q in range(layers.offsets[n], count):
        least[q] = 0
    for q in range(layers.offsets[n] - 1, -1, -1):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0 and not (closed and label == INSIDE):
                least[q] = min(least[q], layers.cost[q, label] + least[to])
    return least


@kernel
def costs_behind(layers: Layers) -> Int64Array:
    """Return the least ticks of a way from the first layer to each state, int64, shape (states,); O(states)."""
    count, n = len(layers.target), len(layers.offsets) - 2
    least = np.full(count, UNREACHED, dtype=np.int64)
    if count:
        least[0] = 0
    for q in range(layers.offsets[n]):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0:
                least[to] = min(least[to], least[q] + layers.cost[q, label])
    return least


@kernel
def most_cost(layers: Layers) -> int:
    """Return as many ticks as any way through all layers costs, or more; O(states)."""
    total = np.int64(0)
    for i in range(len(layers.offsets) - 2):
        most = np.int64(0)
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            for label in range(LABELS):
                most = max(most, layers.cost[q, label])
        total += most
    return int(total)


@kernel
def within_cost(layers: Layers, limit: int) -> BoolArray:
    """Mark the arcs on ways through all layers that cost at most *limit* ticks, bool, shape (states, 3); O(states)."""
    ahead, behind = costs_ahead(layers, False), costs_behind(layers)
    keep = np.zeros((len(ahead), LABELS), dtype=np.bool_)
    for q in range(len(ahead)):
        for label in range(LABELS):
            to = layers.target[q, label]
            if to >= 0 and behind[q] < UNREACHED:
                keep[q, label] = behind[q] + layers.cost[q, label] + ahead[to] <= limit
    return keep


@kernel
def trimmed(layers: Layers, keep: BoolArray) -> Layers:
    """Return the layers with some arcs alone, and the states that these lead through from first layer to last.

    Returns
    -------
    Layers without any state where no way is left.
    """
    count, n = len(layers.target), len(layers.offsets) - 2
    reached = np.zeros(count, dtype=np.bool_)
    useful = np.zeros(count, dtype=np.bool_)
    reached[0] = count > 0
    for q in range(layers.offsets[n]):
        for label in range(LABELS):
            if reached[q] and keep[q, label] and layers.target[q, label] >= 0:
                reached[layers.target[q, label]] = True
    for q in range(count - 1, -1, -1):
        useful[q] = reached[q] and q >= layers.offsets[n]
        for label in range(LABELS):
            if reached[q] and keep[q, label] and layers.target[q, label] >= 0:
                useful[q] |= useful[layers.target[q, label]]
    number = np.full(count, NO_STATE, dtype=np.int32)
    offsets = np.zeros_like(layers.offsets)
    left = 0
    for i in range(n + 1):
        for q in range(layers.offsets[i], layers.offsets[i + 1]):
            if useful[q]:
                number[q] = left
                left += 1
        offsets[i + 1] = left
    target = np.full((left, LABELS), NO_STATE, dtype=np.int32)
    cost = np.zeros((left, LABELS), dtype=np.int64)
    for q in range(count):
        if useful[q]:
            for label in range(LABELS):
                to = layers.target[q, label]
                if keep[q, label] and to >= 0 and useful[to]:
                    target[number[q], label] = number[to]
                    cost[number[q], label] = layers.cost[q, label]
    return Layers(offsets, target, cost)
