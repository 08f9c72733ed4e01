"""The search over downsets that re-checks a proof: stages grow by ops that are ready, and both sides are added up.

What is searched for, and why its rules are sound, stands in :mod:`mtpp.solvers.recheck.plain`. From one downset D, a
stage grows from nothing. An op is *ready* once all that it reads from is in D or in the stage. Of the ready ops, the
one that became so last either joins the stage or is left to later ones, with all that waits for it. Each way to decide
ends at another downset E, so none is met twice. On the way

* the *cost* of the stage only grows: by the work of ops that join, by what they read from D, and by what they make and
  an op that was left reads;
* the *rest* only grows: by the work of ops that are left, and by what they read from D or from the stage;
* the work that is undecided will be in one of the two, so the sum of all three only grows, by transfers.

A way ends where one of them is more than *fit* and the limit of a stage allow, or the parameters on either side are. It
also ends where an op that could be added for nothing has been left, and fits beside all that may still join: no E that
it leads to is *maximal*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtpp.solvers.jit import kernel
from mtpp.solvers.recheck.kernels.decisions import BACK, DOWN, OPEN, accepted, begin, decide, memory_ticks, peak_of
from mtpp.solvers.recheck.kernels.state import (
    DEPTH,
    LATER,
    NEXT,
    PAIRS,
    PHASE,
    REACHED,
    READY,
    REST,
    REST_PARAMS,
)
from mtpp.solvers.recheck.kernels.store import reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mtpp.array_types import Int64Array
    from mtpp.solvers.recheck.arrays import ClaimArrays, GroundArrays, Limits
    from mtpp.solvers.recheck.layout import Scratch, Store

DONE, PAUSED, FULL, FALSE = 0, 1, 2, 3
"""How the search returns: it is through; its steps are; the store is; there is a partition within the limit."""


@kernel
def search_again(
    claim: ClaimArrays,
    limits: Limits,
    ground: GroundArrays,
    store: Store,
    scratch: Scratch,
    nodes: Int64Array,
    steps: int,
) -> int:
    """Go on with a search for a number of steps.

    Returns
    -------
    :data:`DONE`; :data:`PAUSED` or :data:`FULL`, to be called again, with a larger store for the latter; or
    :data:`FALSE`: all outside the downset that was reached last may be one stage.

    Notes
    -----
    O(n + pins) time per downset, which counts as n steps, and O(degree) per decision; for decisions after which
    *maximal* may fail whatever follows, the pins of all undecided ops.
    """
    state = scratch.state
    words = store.sets.shape[1]
    level = int(store.level[max(0, state[NEXT] - 1)])
    phase = state[PHASE]
    depth = state[DEPTH]
    outcome = -1
    while outcome < 0:
        if steps <= 0:
            outcome = PAUSED
        elif state[REACHED] == len(store.level):
            outcome = FULL
        elif phase == OPEN:
            if state[NEXT] == state[REACHED] or store.level[state[NEXT]] > limits.last_level:
                outcome = DONE
            else:
                downset = state[NEXT]
                level = int(store.level[downset])
                state[NEXT] += 1
                steps -= len(scratch.status)
                if begin(claim, limits, store, scratch, nodes, downset):
                    phase = DOWN
        elif phase == DOWN and nodes[depth, READY] < 0:
            phase = BACK
            if accepted(claim, limits, ground, scratch, nodes, depth):
                state[PAIRS] += 1
                if reach(store, scratch, words, level + 1):
                    peak = peak_of(ground, scratch, LATER) if limits.counted else limits.reserve
                    ticks = memory_ticks(nodes[depth, REST_PARAMS], peak, LATER, claim, limits, scratch)
                    if nodes[depth, REST] + ticks <= limits.ticks:
                        outcome = FALSE
        elif phase == BACK and depth == 0:
            phase = OPEN
        else:
            phase, depth = decide(phase, depth, level, claim, limits, scratch, nodes)
        steps -= 1
    state[PHASE] = phase
    state[DEPTH] = depth
    return outcome


@kernel
def stages_after(
    claim: ClaimArrays,
    limits: Limits,
    ground: GroundArrays,
    base: Store,
    scratch: Scratch,
    nodes: Int64Array,
    reached: NDArray[np.uint64],
    steps: int,
) -> int:
    """Write down the downsets that one more stage leads to from a downset, each as often as a stage does.

    Parameters
    ----------
    base
        Holds that downset alone, at level 0, whose row of ``claim.rest_ticks`` and ``claim.rest_bytes`` counts.
    reached
        A row for each, shape (rows, words); the first ``scratch.state[PAIRS]`` are filled in.

    Returns
    -------
    :data:`DONE`; :data:`PAUSED`, or :data:`FULL` where the rows are used up, to be called again.
    """
    state = scratch.state
    phase, depth = state[PHASE], state[DEPTH]
    outcome = -1
    while outcome < 0:
        if steps <= 0:
            outcome = PAUSED
        elif state[PAIRS] == len(reached):
            outcome = FULL
        elif phase == OPEN:
            if state[NEXT] == 1:
                outcome = DONE
            else:
                state[NEXT] = 1
                if begin(claim, limits, base, scratch, nodes, 0):
                    phase = DOWN
        elif phase == DOWN and nodes[depth, READY] < 0:
            phase = BACK
            if accepted(claim, limits, ground, scratch, nodes, depth):
                reached[state[PAIRS], :] = scratch.inside
                state[PAIRS] += 1
        elif phase == BACK and depth == 0:
            phase = OPEN
        else:
            phase, depth = decide(phase, depth, 0, claim, limits, scratch, nodes)
        steps -= 1
    state[PHASE] = phase
    state[DEPTH] = depth
    return outcome
