"""The stage that has at least the simple bound's work, and all that is before it and after it."""

from __future__ import annotations

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.mip.block_problem import BlockProblem, prepared
from mtpp.solvers.bounds.mip.block_solve import bound_of, solve_blocks


def middle_model(problem: BlockProblem, *, ordered: bool = True, cuts: bool = True) -> BlockModel:
    """Return the model of section 3.2: some stage has at least the work L (14); minimise what it costs.

    The stage may be anywhere, so nothing is known of y. Without order there is no before and after: any set of ops.
    """
    work = Block(1, least_work=problem.least_work)
    rest = Block(max(1, problem.stages - 1), counted=False)
    blocks = [rest, work, rest] if ordered else [work, rest]
    return block_model(problem, blocks, ordered=ordered, cuts=cuts)


def middle_bound(
    name: str, instance: Instance, limits: BoundLimits, *, ordered: bool = True, cuts: bool = True
) -> BoundResult:
    """Return the bound of :func:`middle_model`.

    The work ends when a stage is found that is not above the bound known: no more is available here.
    """
    problem = prepared(instance, limits, with_windows=False)
    if isinstance(problem, BoundResult):
        return problem
    model = middle_model(problem, ordered=ordered, cuts=cuts)
    start = _start(problem, limits, ordered)
    return bound_of(name, problem, solve_blocks(problem, model, limits, start=start, target=limits.lower))


def _start(problem: BlockProblem, limits: BoundLimits, ordered: bool) -> Int32Array | None:
    """Return the blocks that the cheapest stage with enough work of the partition known is the middle one of."""
    stages = None if limits.start is None else problem.stages_of(limits.start)
    if stages is None:
        return None
    enough = [j for j in range(problem.stages) if int(problem.work[stages == j].sum()) >= problem.least_work]
    if not enough:  # ops were merged since the simple bound was found
        return None
    middle = min(enough, key=lambda j: problem.cost(stages == j))
    blocks = 1 + np.sign(stages - middle) if ordered else stages != middle
    return blocks.astype(np.int32)
