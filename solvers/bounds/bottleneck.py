"""The least cost of a stage with at least the simple bound's work: the three-superblock MIP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.branch_and_bound.one_stage import heavy_bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import middle_model
from mtpp.solvers.bounds.mip.block_problem import BlockProblem, prepared
from mtpp.solvers.bounds.mip.block_solve import bound_of, solve_blocks


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return min f(S) over the stages S with work(S) ≥ L that a partition can have, a lower bound on OPT.

    L is the simple bound (Lemma 3.3): some stage of any partition has that work.

    Notes
    -----
    O(n) variables, O(pins) constraints. Archer et al. (2024), section 3.2.
    """
    return middle_bound("bottleneck", instance, limits)


def middle_bound(
    name: str, instance: Instance, limits: BoundLimits, *, ordered: bool = True, cuts: bool = True
) -> BoundResult:
    """Return the bound of :func:`middle_model`, of tier ``exact`` where branch and bound then proves it in the time.

    The work ends when a stage is found that is not above the bound known: no more is available here.
    """
    problem = prepared(instance, limits, with_windows=False)
    if isinstance(problem, BoundResult):
        return problem
    model = middle_model(problem, ordered=ordered, cuts=cuts)
    start = _start(problem, limits, ordered)
    outcome = solve_blocks(problem, model, limits, start=start, target=limits.lower)
    result = bound_of(name, problem, outcome)
    if outcome.lower is None or outcome.lower <= limits.lower or limits.ended():
        return result
    proven = heavy_bound(name, instance, outcome.lower, limits)
    return result if proven is None else replace(result, lower=proven)


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
