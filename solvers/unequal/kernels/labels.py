"""Labels of downsets: the devices that suffice for one, packed into a word whose fields are compared at once.

In fixed order that is the number of leading devices, and of those among them that are used, where that is limited. In
free order it is the number of devices of each class. A field has a guard bit above it, which is 0 in a label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.solvers.jit import inlined, subroutine
from mtpp.solvers.unequal.kernels.label_layout import FIXED, INDEX_BITS

if TYPE_CHECKING:
    from mtpp.solvers.unequal.unequal_arrays import LabelRules


@inlined
def no_more(one: int, other: int, guards: int) -> bool:
    """Return whether no field of one label is larger than the same field of another."""
    return ((other | guards) - one) & guards == guards


@subroutine
def step(label: int, c: int, rules: LabelRules) -> int:
    """Return the label after one more stage on a device of class *c*; −1 if there is no such device."""
    if rules.mode == FIXED:
        device = rules.following[c, label & ((1 << INDEX_BITS) - 1)]
        used = label >> INDEX_BITS
        if device == 0 or used + rules.counted > rules.most:
            return -1
        return int(((used + rules.counted) << INDEX_BITS) | device)
    used = 0
    for d in range(len(rules.counts)):
        used += (label >> (rules.width * d)) & rules.field
    if used >= rules.most or (label >> (rules.width * c)) & rules.field >= rules.counts[c]:
        return -1
    return int(label + (1 << (rules.width * c)))


@subroutine
def room_after(label: int, by_class: int, rooms: int, rules: LabelRules) -> int:
    """Return how much the devices that a label leaves can hold: a sum over them, or what the sums come to in order.

    Parameters
    ----------
    by_class, rooms
        Row of ``rules.room`` and of ``rules.leading_room``.
    """
    if rules.mode == FIXED:
        return int(rules.leading_room[rooms, label & ((1 << INDEX_BITS) - 1)])
    room = 0
    for d in range(len(rules.counts)):
        left = rules.counts[d] - ((label >> (rules.width * d)) & rules.field)
        room += left * rules.room[by_class, d]
    return int(room)
