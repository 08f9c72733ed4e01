"""The cheapest way to save memory in a stage, by branch and bound over layers whose savings are alike.

Of layers with two options and the same saving the cheapest save first, so that a class of them is one number: how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import inlined

if TYPE_CHECKING:
    from mtpp.solvers.planners.piper.kernels.stage_options import KnapsackScratch

UNDECIDED = -2
"""The search was ended: there may be choices."""

SAFE = 1.0 - 1e-9
"""What bounds in floating point are multiplied by before they rule anything out."""

_NODES = 200_000


@inlined
def _classes(count: int, scratch: KnapsackScratch) -> int:
    """Sort the members that can save into classes: two options with the same saving, cheapest first, or one layer.

    Larger savings come first, then members with fewer options, then lower prices.
    """
    items = 0
    for i in range(count):
        options = scratch.option_start[i + 1] - scratch.option_start[i]
        if options < 2:
            continue
        last = scratch.option_start[i + 1] - 1
        scratch.saving[i] = scratch.memory[last - options + 1] - scratch.memory[last]
        scratch.price[i] = scratch.cost[last] - scratch.cost[last - options + 1]
        place = items
        while place > 0:
            k = scratch.class_items[place - 1]
            others = scratch.option_start[k + 1] - scratch.option_start[k]
            if scratch.saving[i] != scratch.saving[k]:
                goes_before = scratch.saving[i] > scratch.saving[k]
            elif options != others:
                goes_before = options < others
            else:
                goes_before = scratch.price[i] < scratch.price[k]
            if not goes_before:
                break
            scratch.class_items[place] = k
            place -= 1
        scratch.class_items[place] = i
        items += 1
    classes = 0
    for at in range(items):
        i, k = scratch.class_items[at], scratch.class_items[max(at - 1, 0)]
        two = scratch.option_start[i + 1] - scratch.option_start[i] == 2
        two = two and scratch.option_start[k + 1] - scratch.option_start[k] == 2
        if at == 0 or not two or scratch.saving[i] != scratch.saving[k]:
            scratch.class_start[classes] = at
            classes += 1
    scratch.class_start[classes] = items
    return classes


@inlined
def _relaxed(depth: int, need: int, steps: int, scratch: KnapsackScratch) -> float:
    """Return the least that saving *need* bytes may take of the classes from *depth* on; infinite if they cannot."""
    extra = 0.0
    for k in range(steps):
        step = scratch.by_ratio[k]
        if scratch.step_class[step] < depth:
            continue
        if scratch.step_save[step] >= need:
            return float(extra + scratch.step_ratio[step] * need)
        need -= scratch.step_save[step]
        extra += scratch.step_extra[step]
    return np.inf


@inlined
def cheapest_saving(count: int, need: int, best: int, steps: int, exactly: bool, scratch: KnapsackScratch) -> int:
    """Return the least extra cost below *best* that saves *need* bytes, or *best*; the choices are left if it is new.

    Without *exactly* the first one below is taken.
    """
    classes = _classes(count, scratch)
    for c in range(classes):
        for k in range(scratch.class_start[c], scratch.class_start[c + 1]):
            scratch.class_at[scratch.class_items[k]] = c
    for k in range(steps):
        scratch.step_class[k] = scratch.class_at[scratch.step_layer[k]]
    depth = 0
    # Options of a class are numbered: how many of its layers save, or which of the options of its only layer.
    scratch.class_at[0] = -1
    scratch.need_at[0], scratch.extra_at[0] = need, 0
    nodes = 0
    found = False
    while depth >= 0:
        if depth == classes:
            depth -= 1
            continue
        first, last = scratch.class_start[depth], scratch.class_start[depth + 1]
        single = last - first == 1
        i = scratch.class_items[first]
        options = scratch.option_start[i + 1] - scratch.option_start[i] if single else last - first + 1
        scratch.class_at[depth] += 1
        at = scratch.class_at[depth]
        if at == options:
            depth -= 1
            continue
        nodes += 1
        if nodes > _NODES:
            scratch.given_up[0] += 1
            return UNDECIDED
        if at == 0:
            left, extra = scratch.need_at[depth], scratch.extra_at[depth]
        elif single:
            place = scratch.option_start[i]
            left = scratch.need_at[depth] - (scratch.memory[place] - scratch.memory[place + at])
            extra = scratch.extra_at[depth] + scratch.cost[place + at] - scratch.cost[place]
        else:
            left, extra = scratch.need_at[depth], scratch.extra_at[depth]
            for k in range(first, first + at):
                left -= scratch.saving[scratch.class_items[k]]
                extra += scratch.price[scratch.class_items[k]]
        if extra >= best:
            depth -= 1  # further options of this class cost more
            continue
        if left <= 0:
            best = extra
            found = True
            for c in range(classes):
                scratch.class_best[c] = scratch.class_at[c] if c <= depth else 0
            if not exactly:
                break
            depth -= 1  # and so they do from here on
            continue
        # The integers are subtracted first: beyond 2^53 a sum with a float would lose more than SAFE allows for.
        if _relaxed(depth + 1, left, steps, scratch) * SAFE > best - 1 - extra:
            continue
        depth += 1
        if depth < classes:
            scratch.class_at[depth] = -1
            scratch.need_at[depth], scratch.extra_at[depth] = left, extra
    if found:
        for i in range(count):
            scratch.chosen[i] = scratch.choice[scratch.option_start[i]]
        for c in range(classes):
            first, last = scratch.class_start[c], scratch.class_start[c + 1]
            if last - first == 1:
                i = scratch.class_items[first]
                scratch.chosen[i] = scratch.choice[scratch.option_start[i] + scratch.class_best[c]]
            else:
                for k in range(first, first + scratch.class_best[c]):
                    i = scratch.class_items[k]
                    scratch.chosen[i] = scratch.choice[scratch.option_start[i + 1] - 1]
    return best
