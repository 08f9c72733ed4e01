"""The exact MIP: all stages, minimum bottleneck."""

from __future__ import annotations

import numpy as np

from mtpp.instance import Instance
from mtpp.solvers.bounding import BoundLimits, BoundResult
from mtpp.solvers.bounds.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.block_problem import BlockProblem, block_problem
from mtpp.solvers.bounds.block_solve import bound_of, no_better, solve_blocks

_NAME = "exact-mip"


def exact_model(problem: BlockProblem) -> BlockModel:
    """Return the model of section 3.1 for partitions that are better than the one known, empty stages last.

    What is known of y follows from the windows of work of the first b stages, which themselves follow from the cutoff
    and from what has to cross between the stages.
    """
    n, stages = len(problem.work), problem.stages
    inside = np.zeros((n, stages + 1), dtype=bool)
    outside = np.zeros((n, stages + 1), dtype=bool)
    for b in range(1, stages):
        inside[:, b] = problem.surely_inside(b)
        outside[:, b] = problem.surely_outside(b)
    return block_model(problem, [Block(1)] * stages, inside, outside, nonempty_first=True)


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return OPT, or the solver's lower bound on it; of tier ``solver``, with a better partition if one was found.

    Notes
    -----
    O(n·k) variables, O(pins·k) constraints, before what is fixed is left out. Archer et al. (2024), section 3.1.
    Overflow of parameters beside a fixed reserve is in the model; beside peaks in the graph's order, which are at
    least those of single ops, it is a relaxation.
    """
    problem = block_problem(instance, limits)
    if problem is None:
        return BoundResult(None, solved=True)
    if problem.lowest is None:
        return no_better(_NAME, problem, "crossings")
    model = exact_model(problem)
    start = None if limits.start is None else problem.stages_of(limits.start)
    outcome = solve_blocks(problem, model, limits, start=start)
    result = bound_of(_NAME, problem, outcome)
    if outcome.blocks is None:
        return result
    return BoundResult(result.lower, result.solved, problem.better(outcome.blocks, limits.upper))
