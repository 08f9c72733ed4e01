"""The node bound: some stage holds op v, and no set of ops that holds v costs less, by a minimum cut.

f(S) is at least w(S) + c(S) − C for any stage S: w are weights of ops, c(S) the transfers of the tensors that S cuts, C
a constant. *Plain*: w = work and C = 0. *Streamed* (only with a fast memory M): w(u) = work(u) + ⌊β·param_bytes(u)⌋ and
C = ⌊β·(M − r)⌋, β being the ticks of one byte on the link, a rational, and r the activation reserve, 0 where peaks
depend on the order. For ⌈x − y⌉ ≥ ⌊x⌋ − ⌊y⌋.

A stage has, with two ops, all ops on the paths between them. Minimum cuts know that of paths that end in v: with an op
u from which v can be reached, S has those successors of u from which v can be reached, and the same against the
direction of the edges. Such an op *draws* the other one.

**The proof**: ``{"op": v, "streamed": bool, "flow": [[tensor, op, amount, op, amount, …], …], "drawn": [[u, x, amount],
…]}``. Ops are called by any of their members' numbers in the file, tensors by their place among those that at least two
ops touch. Row of a tensor: so much goes from the op into the tensor, out of it if negative; amounts of a row sum to 0,
the positive ones to at most the tensor's transfer. Row of ``drawn``: amount > 0 goes from u right to x, without a
limit on it; u draws x, which is to say

* x reads from u, and there is a path from x to v; or
* u reads from x, and there is a path from v to x;

neither is v. Let a(u) be what u gets less what it gives out, tensors and drawn ops together. The proof holds if
a(u) ≤ w(u) for all u ≠ v, and then the bound is w(v) − a(v) − C: for a stage S ∋ v gives out no more than c(S) on
balance, as nothing that is drawn leaves it, so Σ_{u ∈ S} −a(u) ≤ c(S), and Σ_{u ∈ S, u ≠ v} (w(u) − a(u)) ≥ 0.
"""

from __future__ import annotations

import numpy as np

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.anchored_proofs import AnchoredCuts
from mtpp.solvers.bounds.configuration.stage_weights import StageWeights, stage_weights
from mtpp.solvers.bounds.kernels.largest_node_bound import largest_node_bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult

_AT_A_TIME = 64
"""Ops between two looks at the clock."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the largest node bound of any op, a lower bound on OPT of tier ``exact``.

    Notes
    -----
    A maximum flow per op whose stage may cost more alone than what is proven by then, most expensive first; about a
    second for 1,500 ops. The largest one is also a bound where the work had to end early.
    """
    cuts = AnchoredCuts(instance)
    best, found, solved = 0, None, True
    for weights in stage_weights(instance):
        value, op, done = _largest(instance, cuts, weights, best, limits)
        solved = solved and done
        if op is not None:
            best, found = value, (weights, op)
        if best >= limits.target:
            break
    if found is None:
        return BoundResult(None, solved)
    weights, op = found
    zero = np.zeros_like(weights.weight)
    flow, drawn, _ = cuts.flow(weights.weight, zero, op, 1, 0, -1, limits.target + weights.constant)
    proof = {"op": int(cuts.op_of[op]), "streamed": weights.streamed, "flow": flow, "drawn": drawn}
    return BoundResult(LowerBound(best, "node", Tier.EXACT, proof), solved)


def _largest(
    instance: Instance, cuts: AnchoredCuts, weights: StageWeights, best: int, limits: BoundLimits
) -> tuple[int, int | None, bool]:
    """Return the largest bound above *best*, an op that has it, None if there is none, and whether all were tried."""
    alone = weights.weight + _cut_alone(instance)
    order = np.argsort(-alone, kind="stable")
    order = order[alone[order] - weights.constant > best]
    op: int | None = None
    for begin in range(0, len(order), _AT_A_TIME):
        if best >= limits.target:
            return best, op, True
        if limits.ended():
            return best, op, False
        some = order[begin : begin + _AT_A_TIME]
        known, ceiling = best + weights.constant, limits.target + weights.constant
        value, v = largest_node_bound(cuts.network, weights.weight, alone, some, known, ceiling, cuts.scratch)
        if v >= 0:
            best, op = value - weights.constant, v
    return best, op, True


def _cut_alone(instance: Instance) -> Int64Array:
    """Return the transfers of the tensors of each op that others touch, ops numbered along the instance's order."""
    touching = np.diff(instance.pin_offsets)
    total = np.zeros(instance.op_count, dtype=np.int64)
    np.add.at(total, instance.pins, np.repeat(np.where(touching > 1, instance.transfer, 0), touching))
    return total[instance.order]
