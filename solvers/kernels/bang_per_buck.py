"""What the layers of a stage run as by the heuristic of section 4 of Piper's paper: bang per buck."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtpp.solvers.kernels.jit import kernel
from mtpp.solvers.kernels.stage_choices import NOTHING_FITS
from mtpp.solvers.kernels.stage_options import gather_options

if TYPE_CHECKING:
    from mtpp.solvers.kernels.stage_options import KnapsackScratch
    from mtpp.solvers.planners.piper_arrays import ChoiceArrays


@kernel
def bang_per_buck(
    count: int,
    j: int,
    scale_p: int,
    scale_w: int,
    in_flight: int,
    memory: int,
    arrays: ChoiceArrays,
    outer: NDArray[np.uint64],
    inner: NDArray[np.uint64],
    scratch: KnapsackScratch,
) -> int:
    """Return the cost of the choices that the paper's heuristic makes, or :data:`NOTHING_FITS` if none fit.

    From the fastest choices on, the change with the largest ratio of memory saved to time lost is made until the rest
    fits; earlier layers and choices go first among equals. They are left in ``scratch.chosen``. O(c) a change.
    """
    gather_options(count, j, scale_p, scale_w, in_flight, arrays, outer, inner, scratch)
    cost = 0
    used = 0
    for i in range(count):
        if scratch.option_start[i] == scratch.option_start[i + 1]:
            return NOTHING_FITS
        scratch.class_at[i] = scratch.option_start[i]
        cost += scratch.cost[scratch.option_start[i]]
        used += scratch.memory[scratch.option_start[i]]
    while used > memory:
        best_i, best_place, best_ratio = -1, -1, np.inf
        for i in range(count):
            here = scratch.class_at[i]
            for place in range(here + 1, scratch.option_start[i + 1]):
                ratio = (scratch.cost[place] - scratch.cost[here]) / (scratch.memory[here] - scratch.memory[place])
                if ratio < best_ratio:
                    best_i, best_place, best_ratio = i, place, ratio
        if best_i < 0:
            return NOTHING_FITS
        here = scratch.class_at[best_i]
        cost += scratch.cost[best_place] - scratch.cost[here]
        used -= scratch.memory[here] - scratch.memory[best_place]
        scratch.class_at[best_i] = best_place
    for i in range(count):
        scratch.chosen[i] = scratch.choice[scratch.class_at[i]]
    return cost
