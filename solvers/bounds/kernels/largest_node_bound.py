"""The op with the largest node bound, max over v of min f(S), S ∋ v, by minimum cuts."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.flows.anchored_network import AnchoredNetwork
from mtpp.solvers.flows.kernels.anchored_cut import CutScratch, cut_around, relate
from mtpp.solvers.jit import kernel


@kernel
def largest_node_bound(
    network: AnchoredNetwork,
    weight: Int64Array,
    alone: Int64Array,
    ops: Int64Array,
    best: int,
    enough: int,
    scratch: CutScratch,
) -> tuple[int, int]:
    """Return the largest minimum of weight and transfers cut over the sets around one of *ops*, and that op.

    Parameters
    ----------
    alone
        What a set of each op alone has: ops with no more than is known need no cut.
    best
        Of which only more is of interest: the op is −1 if there is none.
    enough
        The search ends once so much is found.

    Notes
    -----
    One maximum flow at most for each of *ops*; see :func:`~mtpp.solvers.flows.kernels.max_flow.max_flow`.
    """
    value = np.zeros(len(weight), dtype=np.int64)
    found = np.int64(-1)
    for i in range(len(ops)):
        v = ops[i]
        if alone[v] <= best:
            continue
        relate(network, weight, v, -1, scratch)
        least = cut_around(network, weight, value, v, 1, 0, enough, scratch)
        if least > best:
            best = least
            found = v
            if best >= enough:
                break
    return best, int(found)
