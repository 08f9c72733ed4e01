"""The fewest stages that keep every stage under a given time."""

from __future__ import annotations

import numpy as np

from mtpp.errors import Infeasible
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.feasibility import least_stages, refuse_oversized_op
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.orders.kernels.slicing import fewest_stages
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.units import ceil_ratio


def find_fewest_stages(instance: Instance, limit: int, limits: SearchLimits) -> tuple[int, Int32Array]:
    """Search for a partition into the fewest stages that all cost at most *limit* ticks.

    The graph's own order and then random orders are cut greedily optimally: for each order the number of segments
    is the least possible, over the orders tried it is an upper bound on the fewest stages.

    Parameters
    ----------
    instance
        Its k is not used.
    limits
        ``evaluations`` orders are tried, or fewer at the deadline.

    Returns
    -------
    The number of stages, and the order whose cut has that many, int32, shape (n,).

    Notes
    -----
    O(n·log n + n·w + pins) per order. Stops early where a lower bound is reached: ⌈Σ work / limit⌉ stages, or those
    that the memory needs.
    """
    heaviest = int(instance.work.argmax())
    if instance.work[heaviest] > limit:
        raise Infeasible(
            f"proven infeasible: op {instance.op_names[heaviest]!r} alone takes "
            f"{instance.describe(int(instance.work[heaviest]))}, more than the {instance.describe(limit)} allowed",
            parameter="max_bottleneck",
        )
    refuse_oversized_op(instance)
    slicing = slicing_arrays(instance)
    ordering = order_arrays(instance)
    n = instance.op_count
    least = max(least_stages(instance), ceil_ratio(int(instance.work.sum()), limit) if limit else 1)
    stream = np.random.Generator(np.random.PCG64(limits.seed))
    parent = np.empty(n + 1, dtype=np.int32)
    best = n + 1
    best_order = order = instance.order.copy()
    for _ in range(max(1, limits.evaluations)):
        count = int(fewest_stages(order, limit + 1, best - 1, slicing, parent))
        if count < best:
            best, best_order = count, order
            if best <= least:
                break
        if limits.stop:
            break
        order = kahn_order(ordering, stream.random(n))
    if best > n:
        raise Infeasible(
            f"none found: no order tried can be cut into stages of at most {instance.describe(limit)} each"
            + (" within the stage memory" if instance.device.memory_bytes is not None else ""),
            parameter="max_bottleneck",
            remedy="allow more time per stage, or try more orders with ‹work_limit›",
        )
    return best, best_order
