"""Stages within a limit that hold much weight, grown op by op."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_network import Int8Array, StageNetwork
from mtpp.solvers.jit import kernel

_TRIED = 256
"""Ops that are tried at each step at most, drawn at random if there are more."""

_AT_LEAST = 0.02
"""Share of the limit that an op counts as at least, so that what costs nothing is not all that counts."""


@kernel
def grow_stages(
    network: StageNetwork, tensor_offsets: Int64Array, tensors: Int64Array, roots: Int32Array, weight: FloatArray,
    most: int, least: int, spread: float, seed: int, inside: Int8Array, held: FloatArray,
) -> None:  # fmt: skip
    """Grow a stage from each of some ops: always by the op, with what it draws in, that adds most weight for its cost.

    Parameters
    ----------
    tensor_offsets, tensors
        Tensors that touch each op, CSR, int64.
    roots
        Those ops, int32.
    weight
        Of each op, float64, shape (n,).
    most, least
        Of the work of a stage and what it cuts, and of its work less what it cuts.
    spread
        How much chance weighs in, at least 0.
    seed
        For the chance.
    inside
        Result: 1 for the ops of the stage grown from that root; int8, shape (roots, n).
    held
        Result: its weight, −1 if there is none, float64, shape (roots,).

    Notes
    -----
    O(n) for each op tried at a step, and O(pins) for what it draws in. Stages are convex.
    """
    n, m = len(network.work), len(network.transfer)
    np.random.seed(seed)
    above, below = np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int8)
    touched = np.empty(m, dtype=np.int64)
    drawn = np.empty(n, dtype=np.int64)
    tried = np.empty(n, dtype=np.int64)
    for place in range(len(roots)):
        root = roots[place]
        own = inside[place]
        held[place] = -1.0
        for x in range(n):
            own[x] = 0
            above[x] = 0
            below[x] = 0
        for t in range(m):
            touched[t] = 0
        work, cut = np.int64(0), np.int64(0)
        total = 0.0
        adding = root
        while adding >= 0:
            above[adding] = 1
            below[adding] = 1
            for x in range(n):
                above[x] |= network.reached[adding, x]
                below[x] |= network.reaches[adding, x]
            for x in range(n):
                if above[x] == 1 and below[x] == 1 and own[x] == 0:
                    own[x] = 1
                    work += network.work[x]
                    total += weight[x]
                    for i in range(tensor_offsets[x], tensor_offsets[x + 1]):
                        cut += _change(network, touched, tensors[i])
                        touched[tensors[i]] += 1
            held[place] = total if work + cut <= most and work - cut >= least else -1.0
            candidates = 0
            for x in range(n):
                if own[x] == 0:
                    tried[candidates] = x
                    candidates += 1
            if candidates > _TRIED:
                for i in range(_TRIED):
                    j = np.random.randint(i, candidates)
                    tried[i], tried[j] = tried[j], tried[i]
                candidates = _TRIED
            adding = -1
            highest = 0.0
            for c in range(candidates):
                u = tried[c]
                more_work, more_cut, more = np.int64(0), np.int64(0), 0.0
                count = 0
                for x in range(n):
                    if own[x] == 0 and (
                        x == u
                        or (
                            (above[x] == 1 or network.reached[u, x] == 1)
                            and (below[x] == 1 or network.reaches[u, x] == 1)
                        )
                    ):
                        drawn[count] = x
                        count += 1
                        more_work += network.work[x]
                        more += weight[x]
                        if work + more_work > most:
                            break
                if work + more_work > most:
                    continue
                for i in range(count):
                    for j in range(tensor_offsets[drawn[i]], tensor_offsets[drawn[i] + 1]):
                        more_cut += _change(network, touched, tensors[j])
                        touched[tensors[j]] += 1
                for i in range(count):
                    for j in range(tensor_offsets[drawn[i]], tensor_offsets[drawn[i] + 1]):
                        touched[tensors[j]] -= 1
                cost = more_work + more_cut
                if work + cut + cost > most:
                    continue
                score = (more + 1e-9) / (max(float(cost), 0.0) + _AT_LEAST * most) * (1.0 + spread * np.random.random())
                if score > highest:
                    highest = score
                    adding = u


@kernel
def _change(network: StageNetwork, touched: Int64Array, t: int) -> int:
    """Return by how much the cut grows with one more of the ops of a tensor."""
    size = network.pin_offsets[t + 1] - network.pin_offsets[t]
    if touched[t] == 0 and size > 1:
        return int(network.transfer[t])
    return -int(network.transfer[t]) if touched[t] == size - 1 and size > 1 else 0
