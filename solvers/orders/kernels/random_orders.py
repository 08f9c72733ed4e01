"""A batch of random topological orders, each sliced, the best kept (random-T of Archer et al. 2024, C.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array
from mtpp.solvers.jit import kernel
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE, best_segmentation, fewest_stages
from mtpp.solvers.orders.kernels.topological import kahn_order

if TYPE_CHECKING:
    from mtpp.solvers.arrays import OrderArrays, SlicingArrays


@kernel
def best_random_order(
    priorities: NDArray[np.float64],
    stage_count: int,
    cutoff: int,
    ordering: OrderArrays,
    slicing: SlicingArrays,
    best_order: Int32Array,
) -> int:
    """Slice the order of every row of *priorities* and keep the first of the best ones.

    Parameters
    ----------
    priorities
        One weight vector per candidate, float64, shape (T, n).
    cutoff
        Only bottlenecks below this many ticks are of interest.
    best_order
        Receives the order of the result, int32, shape (n,).

    Returns
    -------
    The least bottleneck in ticks, or :data:`~mtpp.solvers.orders.kernels.slicing.INFEASIBLE` if none is below *cutoff*.
    """
    best = INFEASIBLE
    parent = np.empty(len(best_order) + 1, dtype=np.int32)
    for i in range(len(priorities)):
        order = kahn_order(ordering, priorities[i])
        # Most orders do not improve, and this tells so without the factor k of the full programme.
        needed = fewest_stages(order, cutoff, stage_count, slicing, parent)
        if needed <= stage_count:
            best = best_segmentation(order, stage_count, cutoff, slicing)
            cutoff = best
            for v in range(len(order)):
                best_order[v] = order[v]
    return best
