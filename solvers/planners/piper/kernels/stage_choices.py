"""The knapsack of configurations of a stage's layers (section 4 of Piper's paper), exact or by bang per buck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.solvers.jit import kernel
from mtpp.solvers.planners.piper.kernels.saving_classes import SAFE, UNDECIDED, cheapest_saving
from mtpp.solvers.planners.piper.kernels.stage_options import (
    Demand,
    KnapsackScratch,
    StageLayers,
    gather_options,
    gather_steps,
    take_steps,
)

if TYPE_CHECKING:
    from mtpp.solvers.planners.piper.arrays import ChoiceArrays

NOTHING_FITS = -1
"""No choices fit into the memory, or none that cost at most what was asked for."""

UNBOUNDED = 2**62
"""More than any stage costs or holds: asks for choices without a limit."""

ANY, LEAST, BANG_PER_BUCK = 0, 1, 2
"""Which choices are meant: any within the budget, the cheapest there are, or those of the paper's heuristic."""


@kernel
def least_cost(stage: StageLayers, demand: Demand, arrays: ChoiceArrays, scratch: KnapsackScratch) -> int:
    """Return the cost of choices for the members that fit into the memory and cost at most the budget of *demand*.

    Which ones is *wanted*: :data:`ANY`, :data:`LEAST` or :data:`BANG_PER_BUCK`. They are left in ``scratch.chosen``.

    Returns
    -------
    The cost, :data:`NOTHING_FITS`, or :data:`UNDECIDED` if the search was ended after many nodes.

    Notes
    -----
    The linear relaxation takes steps along the lower convex hulls of cost over memory saved, by cost per byte. It
    refutes, or its rounding answers, nearly all; that rounding is what bang per buck comes to, for the change with the
    best ratio of memory to time is always the next step on a hull. Otherwise branch and bound over classes of layers
    that save alike. O(n log n) plus O(n) a node. Invariant: the first k steps by ratio save *saved* bytes for *extra*,
    the least that so many can be saved for in the relaxation.
    """
    count, memory, budget, wanted = stage.size, demand.memory, demand.budget, demand.wanted
    gather_options(stage, demand, arrays, scratch)
    base = 0
    used = 0
    least_used = 0
    for i in range(count):
        first = scratch.option_start[i]
        if first == scratch.option_start[i + 1]:
            return NOTHING_FITS
        base += scratch.cost[first]
        used += scratch.memory[first]
        least_used += scratch.memory[scratch.option_start[i + 1] - 1]
        scratch.chosen[i] = scratch.choice[first]
    if base > budget or least_used > memory:
        return NOTHING_FITS
    need = used - memory
    if need <= 0:
        return base
    spare = budget - base
    steps = gather_steps(count, scratch)
    extra = 0
    saved = 0
    bound = 0.0
    taken = 0
    for k in range(steps):
        step = scratch.by_ratio[k]
        if saved + scratch.step_save[step] >= need:
            bound = extra + scratch.step_ratio[step] * (need - saved)
            extra += scratch.step_extra[step]
            taken = k + 1
            break
        saved += scratch.step_save[step]
        extra += scratch.step_extra[step]
    if bound * SAFE > spare or (wanted == BANG_PER_BUCK and extra > spare):
        return NOTHING_FITS
    best = spare + 1
    if extra <= spare:
        take_steps(taken, scratch)
        if wanted != LEAST or bound * SAFE > extra - 1:
            return base + extra
        best = extra
    found = cheapest_saving(count, need, best, steps, wanted == LEAST, scratch)
    if found == UNDECIDED:
        return UNDECIDED
    if found <= spare:
        return base + found
    return NOTHING_FITS
