"""The stage that has at least the simple bound's work, and all that is before it and after it."""

from __future__ import annotations

from mtpp.solvers.bounds.mip.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.mip.block_problem import BlockProblem


def middle_model(problem: BlockProblem, *, ordered: bool = True, cuts: bool = True) -> BlockModel:
    """Return the model of section 3.2: some stage has at least the work L (14); minimise what it costs.

    The stage may be anywhere, so nothing is known of y. Without order there is no before and after: any set of ops.
    """
    work = Block(1, least_work=problem.least_work)
    rest = Block(max(1, problem.stages - 1), counted=False)
    blocks = [rest, work, rest] if ordered else [work, rest]
    return block_model(problem, blocks, ordered=ordered, cuts=cuts)
