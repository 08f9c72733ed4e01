"""Best split under a schedule, by going through all of them."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.jit import kernel
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays
from mtpp.solvers.planners.pfeife.kernels.split_iteration import iteration, split_room
from mtpp.solvers.planners.pfeife.kernels.split_memory import MemoryArrays, excess_bytes


@kernel
def best_of_all_splits(arrays: SplitArrays, memory: MemoryArrays, limited: bool, best: Int64Array, cutoff: int) -> int:
    """Return the least iteration below *cutoff* of a split within the memory, which *best* is set to, or *cutoff*.

    Notes
    -----
    O(C(n − 1, S − 1) · passes).
    """
    stages, n = len(best) - 1, arrays.forward.shape[1] - 1
    room = split_room(arrays, stages)
    split = np.arange(stages + 1)
    split[stages] = n
    while True:
        if not limited or excess_bytes(arrays, memory, split) == 0:
            found = iteration(arrays, split, room, cutoff - 1)
            if found < cutoff:
                cutoff = found
                best[:] = split
        s = stages - 1
        while s > 0 and split[s] == n - (stages - s):
            s -= 1
        if s == 0:
            return cutoff
        split[s] += 1
        for later in range(s + 1, stages):
            split[later] = split[later - 1] + 1
