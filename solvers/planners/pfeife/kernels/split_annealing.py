"""Simulated annealing of split points under a fixed schedule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel, subroutine
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays
from mtpp.solvers.planners.pfeife.kernels.split_iteration import NEVER, iteration, split_room
from mtpp.solvers.planners.pfeife.kernels.split_memory import MemoryArrays, excess_bytes

_SINGLE, _JOINT = 0.4, 0.7
"""Shares of moves of one split point, and of that and moves of several neighbouring ones by as much."""

WIDEST = 0.1
"""Of the ops of a stage: how far split points move at first, on average."""


class Cooling(NamedTuple):
    """Steps of an annealing, and temperatures at the first and the last one as parts of the best iteration."""

    steps: int
    hottest: float
    coldest: float
    seed: int


@kernel
def split_iteration(arrays: SplitArrays, split: Int64Array) -> int:
    """Return the ticks of an iteration."""
    return iteration(arrays, split, split_room(arrays, len(split) - 1), NEVER)


@kernel
def anneal_split(
    arrays: SplitArrays, memory: MemoryArrays, limited: bool, split: Int64Array, cooling: Cooling
) -> tuple[int, int]:
    """Anneal the iteration of *split*, which is set to the best one met; return its ticks and its excess of memory.

    Parameters
    ----------
    memory, limited
        What devices hold, and whether their memory is limited at all.
    split
        Input and output, int64, shape (S + 1,).

    Notes
    -----
    A split that needs less memory beyond the limits than another one is better, whatever the two take. O(passes) a
    step, less for steps that are refused: what devices still have to do refuses most early. Invariant: *split* is the
    best met so far, *best* its ticks and *best_excess* its excess.
    """
    steps, hottest, coldest, seed = cooling
    np.random.seed(seed)
    stages = len(split) - 1
    reach = max(1.0, WIDEST * split[stages] / stages)
    room = split_room(arrays, stages)
    current = split.copy()
    trial = split.copy()
    excess = excess_bytes(arrays, memory, split) if limited else 0
    best_excess = excess
    ticks = iteration(arrays, split, room, NEVER)
    best = ticks
    for step in range(steps):
        part = step / steps
        temperature = hottest * (coldest / hottest) ** part * best
        trial[:] = current
        if not move_split(trial, max(1.0, reach * (1.0 - part))):
            continue
        over = excess_bytes(arrays, memory, trial) if limited else 0
        if over > excess:
            continue
        cutoff = NEVER - 1
        if over == excess:
            cutoff = ticks + int(-temperature * np.log(1.0 - np.random.random()))
        found = iteration(arrays, trial, room, cutoff)
        if found > cutoff:
            continue
        current[:] = trial
        ticks, excess = found, over
        if over < best_excess or (over == best_excess and found < best):
            best, best_excess = found, over
            split[:] = trial
    return best, best_excess


@subroutine
def move_split(trial: Int64Array, reach: float) -> bool:
    """Move one split point, several by as much, or two against each other; return whether a split is left."""
    stages = len(trial) - 1
    if stages < 2:
        return False
    step = 1 + int(np.random.exponential(reach))
    if np.random.random() < 0.5:
        step = -step
    kind = np.random.random()
    first = 1 + np.random.randint(stages - 1)
    last = first
    if kind >= _SINGLE:
        other = 1 + np.random.randint(stages - 1)
        if kind < _JOINT:
            first, last = min(first, other), max(first, other)
        else:
            back = 1 + int(np.random.exponential(reach))
            trial[other] += -back if step > 0 else back
    for s in range(first, last + 1):
        trial[s] += step
    in_order = True
    for s in range(stages):
        in_order &= trial[s] < trial[s + 1]
    return in_order
