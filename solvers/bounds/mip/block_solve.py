"""A model about blocks of stages given to the solver, and what comes back turned into ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int32Array
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import BlockModel
from mtpp.solvers.bounds.mip.block_problem import BlockProblem
from mtpp.solvers.bounds.mip.model import MipModel
from mtpp.solvers.bounds.mip.process import solver_process
from mtpp.solvers.bounds.mip.scale import MARGIN
from mtpp.solvers.bounds.mip.status import SolveStatus

LONGEST_S = 1e7
"""Seconds that stand for no limit."""


@dataclass(frozen=True)
class BlockOutcome:
    """What solving a model has come to.

    Attributes
    ----------
    status
        As in :class:`~mtpp.solvers.bounds.mip.process.Solved`; ``empty`` where there was nothing to solve.
    lower
        Ticks that the dual bound is worth; None if there is none, whatever the status.
    blocks
        Block of each op in the best solution found.
    columns, rows
        Of the model.
    """

    status: SolveStatus
    lower: int | None
    blocks: Int32Array | None
    columns: int
    rows: int

    @property
    def solved(self) -> bool:
        """Whether more time would not raise the bound."""
        return self.impossible or self.status in (SolveStatus.OPTIMAL, SolveStatus.TARGET, SolveStatus.ENOUGH)

    @property
    def impossible(self) -> bool:
        """Whether the model was found to have no solution: a hint where to look next, and no bound."""
        return self.status in (SolveStatus.INFEASIBLE, SolveStatus.EMPTY)


def solve_blocks(
    problem: BlockProblem,
    model: BlockModel,
    limits: BoundLimits,
    *,
    time_limit_s: float | None = None,
    start: Int32Array | None = None,
    target: int | None = None,
) -> BlockOutcome:
    """Solve a model within the limits.

    Parameters
    ----------
    time_limit_s
        Less than what the limits allow.
    start
        Block of each op in a solution to begin with.
    target
        A solution of that many ticks is good enough.
    """
    mip = model.compiled.model
    if mip is None:
        return BlockOutcome(SolveStatus.EMPTY, None, None, 0, 0)
    if not mip.integral.any():
        return _determined(problem, model, mip)
    left = min(limits.deadline.remaining_s(), LONGEST_S if time_limit_s is None else time_limit_s)
    solved = solver_process().solve(
        mip,
        left,
        seed=limits.seed,
        start=None if start is None else model.start(start),
        target=-math.inf if target is None else problem.scale.objective(target) + MARGIN,
        enough=problem.scale.objective(min(problem.scale.most, limits.target)) + 2 * MARGIN,
        interrupted=limits.interrupted,
    )
    lower = problem.scale.lower(solved.dual_bound)
    found = None if solved.solution is None else model.blocks(solved.solution)
    return BlockOutcome(solved.status, lower, found, mip.column_count, mip.row_count)


def _determined(problem: BlockProblem, model: BlockModel, mip: MipModel) -> BlockOutcome:
    """Return what a model has come to in which every op has its block."""
    values = model.builder.completed(model.compiled.fixed)[model.compiled.kept]
    if bool(np.any(values > mip.upper)):
        return BlockOutcome(SolveStatus.INFEASIBLE, None, None, mip.column_count, mip.row_count)
    lower = problem.scale.lower(float(mip.cost @ values))
    return BlockOutcome(SolveStatus.OPTIMAL, lower, model.blocks(values), mip.column_count, mip.row_count)


def solver_bound(name: str, problem: BlockProblem, value: int, proof: dict[str, Any], columns: int) -> LowerBound:
    """Return a bound of tier ``solver`` that says how it was scaled and what was taken off."""
    said = {"objective_scale": problem.scale.objective(1), "margin": MARGIN, "columns": columns}
    return LowerBound(value, name, Tier.SOLVER, {**proof, **said})


def bound_of(name: str, problem: BlockProblem, outcome: BlockOutcome) -> BoundResult:
    """Return what one model has proven."""
    if outcome.lower is None:
        return BoundResult(None, outcome.solved)
    proof = {"status": str(outcome.status), "rows": outcome.rows}
    return BoundResult(solver_bound(name, problem, outcome.lower, proof, outcome.columns), outcome.solved)
