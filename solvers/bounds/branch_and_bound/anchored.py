"""The cheapest convex stage around one op, proven by branch and bound."""

from __future__ import annotations

from functools import partial

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.tree import BranchAndBound
from mtpp.solvers.bounds.configuration.stage_weights import stage_weights
from mtpp.solvers.bounds.limits import BoundLimits


def anchored_bound(name: str, instance: Instance, op: int, value: int, limits: BoundLimits) -> LowerBound | None:
    """Prove that any stage with an op costs *value* or more, whatever is before it and after it.

    Parameters
    ----------
    name
        Of the bound that the proof is for.
    op
        Of the instance.
    value
        In ticks.

    Returns
    -------
    A bound of tier ``exact``, None if the cases could not all be refuted in the time, or take too long a proof.

    Notes
    -----
    Some stage holds the op, and no more than min(k, n) − 1 stages are on either side of it: three blocks of stages, of
    which the middle one is that stage. O(n) variables and O(pins) rows; exponential at worst.
    """
    others = min(instance.k, instance.op_count) - 1
    stages, block = ((others, 1, others), 2) if others else ((1,), 1)
    for weights in stage_weights(instance):
        blocks = Blocks.of(instance, weights, stages, (op, block))
        most = blocks.most(value)
        tree = BranchAndBound(blocks, most, limits.proof_bytes)
        tree.run(limits.ended, limits.deadline.remaining_s, partial(_unchanged, most))
        if tree.most_refuted >= most:
            document = tree.document(value)
            if document is not None:
                return LowerBound(value, name, Tier.EXACT, document)
    return None


def _unchanged(most: int, block: Int32Array) -> int:
    """Take no partition: three blocks are none of the instance."""
    return most
