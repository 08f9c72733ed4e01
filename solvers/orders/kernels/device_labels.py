"""Labels of devices in kernels: one more stage, the room of the devices that are left, comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import inlined, subroutine
from mtpp.solvers.orders.device_labels import INDEX_BITS, LEADING

if TYPE_CHECKING:
    from mtpp.solvers.orders.device_labels import LabelRules


@inlined
def no_more(one: int, other: int, guards: int) -> bool:
    """Return whether no field of one label is larger than the same field of another."""
    return ((other | guards) - one) & guards == guards


@subroutine
def step(label: int, c: int, rules: LabelRules) -> int:
    """Return the label after one more stage on a device of class *c*; −1 if there is no such device."""
    if rules.free:
        if rules.counted and label >> rules.used_shift >= rules.most:
            return -1
        if (label >> (rules.width * c)) & rules.field >= rules.counts[c]:
            return -1
        return int(label + (1 << (rules.width * c)) + (rules.counted << rules.used_shift))
    device = rules.following[c, label & LEADING]
    used = label >> INDEX_BITS
    if device == 0 or used + rules.counted > rules.most:
        return -1
    return int(((used + rules.counted) << INDEX_BITS) | device)


@subroutine
def room_after(label: int, row: int, rules: LabelRules) -> int:
    """Return how much the devices that a label leaves can hold, as a row of the rules' rooms measures it."""
    if not rules.free:
        return int(rules.leading_room[row, label & LEADING])
    room: int = np.int64(0)  # type: ignore[assignment]  # 0 is another type to numba
    for d in range(len(rules.counts)):
        room += (rules.counts[d] - ((label >> (rules.width * d)) & rules.field)) * rules.room[row, d]
    return int(room)
