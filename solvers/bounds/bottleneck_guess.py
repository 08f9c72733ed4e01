"""The three-superblock MIP once per position of the stage with the simple bound's work."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.mip.block_problem import BlockProblem, prepared
from mtpp.solvers.bounds.mip.block_solve import LONGEST_S, solve_blocks, solver_bound
from mtpp.solvers.bounds.mip.model import SolveStatus

_NAME = "bottleneck-guess"

_FIRST_SHARE = 0.25
"""Of an even share of the time, for the first attempt at each position; it doubles with every round."""


def guess_model(problem: BlockProblem, position: int, *, windows: bool = True) -> BlockModel:
    """Return the model of section 3.3 in which stage *position* (from 1 on) has at least the work L (14).

    The stages before it are one block, those after it another; their average cost is at most the bottleneck. What is
    known of y follows from the windows of work of the stages before it, and of those up to it. Without *windows*
    nothing is, and no position is impossible, limits on memory aside.
    """
    n, stages = len(problem.work), problem.stages
    parts = [(position - 1, None), (1, problem.least_work), (stages - position, None)]
    blocks = [Block(count, least_work=work) for count, work in parts if count]
    inside = np.zeros((n, len(blocks) + 1), dtype=bool)
    outside = np.zeros((n, len(blocks) + 1), dtype=bool)
    boundary = 0
    for b, block in enumerate(blocks[:-1], start=1):
        if not windows:
            break
        boundary += block.stages
        inside[:, b] = problem.surely_inside(boundary)
        outside[:, b] = problem.surely_outside(boundary)
    return block_model(problem, blocks, inside, outside)


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the least, over all positions j, of a bound on the partitions whose stage j has the simple bound's work.

    The positions share the time. One that was not solved counts with the solver's dual bound, one that was not begun
    with the simple bound. Of tier ``solver``; for two stages it is OPT.

    Notes
    -----
    k models of O(n) variables and O(pins) constraints. Archer et al. (2024), section 3.3 with (14). The work ends
    once a position has a solution that is not above the bound known: the minimum cannot be either. Where the windows
    leave a position no solution, that is no bound, and its model is solved without them.
    """
    problem = prepared(instance, limits)
    if isinstance(problem, BoundResult):
        return problem
    windows = [problem.lowest is not None] * problem.stages
    lower = [problem.least_work] * problem.stages
    done = [False] * problem.stages
    failed = [False] * problem.stages
    columns = rows = 0
    hopeless = False
    for position, time_limit_s in _attempts(problem, limits, lower, done, failed):
        model = guess_model(problem, position + 1, windows=windows[position])
        outcome = solve_blocks(
            problem,
            model,
            limits,
            time_limit_s=time_limit_s,
            start=_start(problem, limits, position),
            target=limits.lower,
        )
        columns, rows = max(columns, outcome.columns), max(rows, outcome.rows)
        if outcome.lower is not None:
            lower[position] = max(lower[position], outcome.lower)
        if outcome.impossible and windows[position]:
            windows[position] = False
            continue
        done[position], failed[position] = outcome.solved, outcome.status == SolveStatus.FAILED
        hopeless = done[position] and lower[position] <= limits.lower
        if hopeless or min(lower) >= problem.scale.enough or limits.ended():
            break
    proof = {"status": "optimal" if all(done) else "open", "solved": sum(done), "positions": len(done), "rows": rows}
    least = min(lower)
    proven = solver_bound(_NAME, problem, least, proof, columns)
    return BoundResult(proven, solved=all(done) or hopeless or least >= problem.scale.enough)


def _attempts(
    problem: BlockProblem, limits: BoundLimits, lower: list[int], done: list[bool], failed: list[bool]
) -> Iterator[tuple[int, float]]:
    """Yield positions with the time that each may take; the lists change meanwhile.

    In every round the position with the least bound comes next, for it is the minimum that counts; positions that are
    good enough wait, and where the solver has failed it would fail again. The first round begins in the middle, where
    least is known of the ops.
    """

    def waiting() -> list[int]:
        enough = problem.scale.enough
        return [j for j in range(len(done)) if not done[j] and not failed[j] and lower[j] < enough]

    share = _FIRST_SHARE
    while True:
        if not waiting():
            return
        for position in sorted(waiting(), key=lambda j: (lower[j], abs(2 * j - problem.stages + 1))):
            left = limits.deadline.remaining_s()
            if left <= 0:
                return
            yield position, LONGEST_S if math.isinf(left) else max(1.0, share * left / max(1, len(waiting())))
        share *= 2


def _start(problem: BlockProblem, limits: BoundLimits, position: int) -> np.ndarray | None:
    """Return the blocks of the partition known, if its stage at this position has the work asked for."""
    stages = None if limits.start is None else problem.stages_of(limits.start)
    if stages is None or int(problem.work[stages == position].sum()) < problem.least_work:
        return None
    first = 1 if position else 0
    return np.where(stages < position, 0, np.where(stages == position, first, first + 1)).astype(np.int32)
