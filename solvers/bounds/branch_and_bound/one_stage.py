"""The cheapest convex stage around one op, or with enough work, proven by branch and bound."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.tree import BranchAndBound
from mtpp.solvers.bounds.configuration.stage_weights import StageWeights, stage_weights
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
    stages, block = _around(instance)
    choices = (Blocks.of(instance, weights, stages, (op, block)) for weights in _strongest_first(instance))
    return _proven(name, value, limits, choices)


def heavy_bound(name: str, instance: Instance, value: int, limits: BoundLimits) -> LowerBound | None:
    """Prove that any stage with at least the larger of the average weight and the heaviest op's costs *value* or more.

    Some stage has that. Parameters, result and cost are as for :func:`anchored_bound`.
    """
    stages, block = _around(instance)
    choices = (Blocks.of(instance, weights, stages, heavy=block) for weights in _strongest_first(instance))
    return _proven(name, value, limits, choices)


def _strongest_first(instance: Instance) -> list[StageWeights]:
    """Return weights by which stages cost at least so much: those with streamed parameters first, if there are any."""
    return stage_weights(instance)[::-1]


def _around(instance: Instance) -> tuple[tuple[int, ...], int]:
    """Return the stages of blocks around one stage, wherever it is, and the number of its block."""
    others = min(instance.k, instance.op_count) - 1
    return ((others, 1, others), 2) if others else ((1,), 1)


def _proven(name: str, value: int, limits: BoundLimits, choices: Iterable[Blocks]) -> LowerBound | None:
    """Return the first proof that comes to its end; a case that cannot be refuted ends an attempt."""
    for blocks in choices:
        most = blocks.most(value)
        tree = BranchAndBound(blocks, most, limits.proof_bytes)

        def ended(tree: BranchAndBound = tree) -> bool:
            return tree.stuck or limits.ended()

        tree.run(ended, limits.deadline.remaining_s, partial(_unchanged, most))
        if tree.most_refuted >= most:
            document = tree.document(value)
            if document is not None:
                return LowerBound(value, name, Tier.EXACT, document)
    return None


def _unchanged(most: int, block: Int32Array) -> int:
    """Take no partition: three blocks are none of the instance."""
    return most
