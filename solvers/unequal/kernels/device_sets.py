"""Sets of devices that share a stage: the smallest ones that bring it within a limit.

A set with x_c devices of class c brings a stage of f_c ticks there to ⌈1 / Σ x_c/f_c⌉ ticks. That is at most T, a whole
number, where Σ x_c · T/f_c ≥ 1. Floats decide where the sum is far enough from 1 for them to be sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import inlined, subroutine
from mtpp.solvers.orders.device_labels import INDEX_BITS, LEADING
from mtpp.solvers.orders.kernels.device_labels import no_more
from mtpp.solvers.stage_cost.kernels.stage_cost import NEVER

if TYPE_CHECKING:
    from mtpp.array_types import Int64Array
    from mtpp.solvers.orders.device_labels import LabelRules
    from mtpp.solvers.unequal.replica_arrays import DeviceTicks, SetScratch

_SURE = 1e-9
"""Far more than a float loses in a sum of thousands."""

_DIGITS = 62
"""Binary digits of a difference of fractions from 1 that is not 0, for each fraction."""


@subroutine
def suffices(chosen: Int64Array, ticks: Int64Array, limit: int) -> bool:
    """Return whether devices, so many of each class, bring a stage of these ticks within a limit; exact."""
    total = 0.0
    for c in range(len(ticks)):
        if chosen[c] > 0:
            if ticks[c] == 0:
                return True
            total += float(chosen[c]) * float(limit) / float(ticks[c])
    if total > 1.0 + _SURE:
        return True
    if total < 1.0 - _SURE:
        return False
    return _suffices_exactly(chosen, ticks, limit)


@subroutine
def _suffices_exactly(chosen: Int64Array, ticks: Int64Array, limit: int) -> bool:
    """Return the same by long division in base 2 of all fractions at once; chosen · limit has to stay below 2^62."""
    classes = len(ticks)
    rest = np.zeros(classes, dtype=np.int64)
    missing = np.int64(1)
    terms = 0
    for c in range(classes):
        if chosen[c] > 0:
            missing -= chosen[c] * limit // ticks[c]
            rest[c] = chosen[c] * limit % ticks[c]
            terms += 1
    for _ in range(_DIGITS * (terms + 1)):
        if missing <= 0:
            return True
        if missing >= terms:  # the fractions left come to less than one each
            return False
        missing *= 2
        for c in range(classes):
            if rest[c] > 0:
                rest[c] *= 2
                if rest[c] >= ticks[c]:
                    rest[c] -= ticks[c]
                    missing -= 1
    return True  # the sum is 1


@inlined
def packed(chosen: Int64Array, rules: LabelRules) -> int:
    """Return a set of devices as what it adds to a label in free order."""
    label = np.int64(0)
    used = np.int64(0)
    for c in range(len(chosen)):
        label += chosen[c] << (rules.width * c)
        used += chosen[c]
    return int(label + ((used * rules.counted) << rules.used_shift))


@subroutine
def smallest_sets(limit: int, rules: LabelRules, scratch: SetScratch) -> int:
    """List the smallest sets of devices of any order that bring a stage within a limit; return their number.

    That is −1 where there are more than the scratch has room for. Lists one number after the other of each class but
    the last in rank, for which the least number that suffices follows.
    """
    ticks, chosen, ranked = scratch.ticks, scratch.chosen, scratch.ranked
    classes = len(ticks)
    last = ranked[classes - 1]
    count = 0
    chosen[:] = 0
    while True:
        enough = _complete(last, limit, rules, scratch)
        if enough and _none_spare(limit, scratch) and (rules.counted == 0 or chosen.sum() <= rules.most):
            if count == len(scratch.sets):
                return -1
            scratch.sets[count] = packed(chosen, rules)
            count += 1
        full = enough and chosen[last] == 0  # more of any class is needless
        chosen[last] = 0
        i = 0
        while i < classes - 1:
            c = ranked[i]
            if not full and ticks[c] < NEVER and chosen[c] < rules.counts[c]:
                chosen[c] += 1
                break
            if chosen[c] > 0:
                full = False
            chosen[c] = 0
            i += 1
        if i >= classes - 1:
            return count


@subroutine
def _complete(last: int, limit: int, rules: LabelRules, scratch: SetScratch) -> bool:
    """Add the fewest devices of the last class that are enough with those chosen; return whether there are so many."""
    ticks, chosen = scratch.ticks, scratch.chosen
    chosen[last] = 0
    if suffices(chosen, ticks, limit):
        return True
    if ticks[last] >= NEVER or rules.counts[last] == 0:
        return False
    missing = 1.0
    for c in range(len(ticks)):
        if chosen[c] > 0:
            missing -= float(chosen[c]) * float(limit) / float(ticks[c])
    about = rules.counts[last] if limit == 0 else min(missing * float(ticks[last]) / float(limit), 1e9)
    chosen[last] = max(1, min(rules.counts[last], np.int64(about)))
    while chosen[last] > 1:
        chosen[last] -= 1
        if not suffices(chosen, ticks, limit):
            chosen[last] += 1
            break
    while not suffices(chosen, ticks, limit):
        if chosen[last] == rules.counts[last]:
            return False
        chosen[last] += 1
    return True


@subroutine
def _none_spare(limit: int, scratch: SetScratch) -> bool:
    """Return whether no device of a class but the last in rank can be left out."""
    chosen, ranked = scratch.chosen, scratch.ranked
    for i in range(len(chosen) - 1):
        c = ranked[i]
        if chosen[c] > 0:
            chosen[c] -= 1
            enough = suffices(chosen, scratch.ticks, limit)
            chosen[c] += 1
            if enough:
                return False
    return True


@subroutine
def all_suffice(limit: int, rules: LabelRules, scratch: SetScratch) -> bool:
    """Return whether all devices together bring a stage within a limit."""
    for c in range(len(scratch.ticks)):
        scratch.chosen[c] = rules.counts[c] if scratch.ticks[c] < NEVER else 0
    return suffices(scratch.chosen, scratch.ticks, limit)


@inlined
def joined(label: int, added: int, whole: int, rules: LabelRules) -> int:
    """Return the label with the devices of one more stage, in free order; −1 if there are not so many."""
    new = label + added
    return new if no_more(new, whole, rules.guards) else -1


@subroutine
def whole_label(rules: LabelRules) -> int:
    """Return the label of all devices in free order."""
    whole = np.int64(0)
    for c in range(len(rules.counts)):
        whole += rules.counts[c] << (rules.width * c)
    return int(whole + ((rules.most * rules.counted) << rules.used_shift))


@subroutine
def next_sets_in_order(label: int, limit: int, devices: DeviceTicks, rules: LabelRules, scratch: SetScratch) -> int:
    """List the labels in fixed order after one more stage, and return their number; −1 as :func:`smallest_sets`.

    Where devices used are not counted there is at most one: all that can hold the stage, up to the first that suffices.
    Else for each last device the fastest ones, where these are fewer than for those before it.
    """
    ticks, available = scratch.ticks, scratch.available
    lead, used = label & LEADING, label >> INDEX_BITS
    fewest = rules.most - used + 1 if rules.counted else 1 << 30
    count = 0
    available[:] = 0
    for device in range(lead, len(devices.class_of)):
        c = devices.class_of[device]
        if ticks[c] >= NEVER:
            continue
        available[c] += 1
        if not rules.counted:
            if suffices(available, ticks, limit):
                scratch.sets[0] = device + 1
                return 1
            continue
        taken = _fewest_of(available, fewest - 1, limit, scratch)
        if taken > 0:
            if count == len(scratch.sets):
                return -1
            scratch.sets[count] = ((used + taken) << INDEX_BITS) | (device + 1)
            count += 1
            fewest = taken
            if taken == 1:
                break
    return count


@subroutine
def _fewest_of(available: Int64Array, most: int, limit: int, scratch: SetScratch) -> int:
    """Return the fewest of the available devices that bring a stage within a limit; 0 if more than *most* are needed.

    These are the fastest ones for it.
    """
    ticks, chosen = scratch.ticks, scratch.chosen
    chosen[:] = 0
    taken = 0
    while taken < most:
        best = -1
        for c in range(len(ticks)):
            if chosen[c] < available[c] and (best < 0 or ticks[c] < ticks[best]):
                best = c
        if best < 0:
            return 0
        chosen[best] += 1
        taken += 1
        if suffices(chosen, ticks, limit):
            return taken
    return 0
