"""A model about blocks of stages given to the solver, and what comes back turned into ticks."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import local
from typing import Any

import numpy as np

from mtpp.host.child_process import TalkingProcess, serving
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int32Array
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import BlockModel
from mtpp.solvers.bounds.mip.block_problem import MARGIN, BlockProblem
from mtpp.solvers.bounds.mip.model import FloatArray, Job, MipModel, SolveStatus

LONGEST_S = 1e7
"""Seconds that stand for no limit."""

GRACE_S = 1.0
"""By so much may a solve overrun its limit before it is killed."""

_LOOK_S = 0.1
"""Seconds between two looks at whether the work is still wanted."""

_START_S = 60.0
"""Longest that a process may take to begin, on a machine that is busy."""

_COMMAND = serving("mtpp.solvers.bounds.mip.highs")


@dataclass(frozen=True)
class BlockOutcome:
    """What solving a model has come to.

    Attributes
    ----------
    status
        As in :class:`~mtpp.solvers.bounds.mip.block_solve.Solved`; ``empty`` where there was nothing to solve.
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
    process = solver_process()
    process.start(limits.deadline.remaining_s(), limits.interrupted)  # of which a slice of the time pays nothing
    solved = process.solve(
        mip,
        min(limits.deadline.remaining_s(), LONGEST_S if time_limit_s is None else time_limit_s),
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


@dataclass(frozen=True, eq=False)
class Solved:
    """What a solve has come to.

    Attributes
    ----------
    status
        How it ended.
    dual_bound
        The solver's, minus infinity if there is none to go by: never drawn from the status.
    solution
        Values of the columns of the best solution found, None if none was.
    """

    status: SolveStatus
    dual_bound: float
    solution: FloatArray | None


class SolverProcess:
    """A process that solves one model at a time; a new one takes its place when it has died."""

    def __init__(self) -> None:
        self._process: TalkingProcess | None = None
        self._replies: SimpleQueue[Any] = SimpleQueue()

    @property
    def pid(self) -> int | None:
        """Of the process, None where there is none."""
        return None if self._process is None else self._process.pid

    def solve(
        self,
        model: MipModel,
        time_limit_s: float,
        *,
        seed: int = 0,
        start: FloatArray | None = None,
        target: float = -math.inf,
        enough: float = math.inf,
        interrupted: Callable[[], bool] = lambda: False,
        told: Callable[[float], None] = lambda bound: None,
    ) -> Solved:
        """Solve *model*, to the end or as long as there is time.

        Parameters
        ----------
        time_limit_s
            From now on, the start of the process included; the call takes :data:`GRACE_S` longer at most.
        start, target, enough
            As in :class:`~mtpp.solvers.bounds.mip.model.Job`.
        told
            Is given each dual bound that comes in.

        Returns
        -------
        What is known, also where the solver had to be killed, or broke down: never an exception.
        """
        ends = time.monotonic() + time_limit_s
        dual_bound, solution = -math.inf, None
        try:
            if not self._ready(ends, interrupted):
                return Solved(SolveStatus.INTERRUPTED if interrupted() else SolveStatus.TIME_LIMIT, dual_bound, None)
            left = ends - time.monotonic()
            if left <= 0:
                return Solved(SolveStatus.TIME_LIMIT, dual_bound, None)
            assert self._process is not None
            self._process.send(Job(model, left, seed, start, target, enough))
            while True:
                message = self._receive(ends + GRACE_S, interrupted)
                if message is None:
                    ended = SolveStatus.INTERRUPTED if interrupted() else SolveStatus.KILLED
                    return Solved(ended, dual_bound, solution)
                kind, *values = message
                if kind == "bound":
                    dual_bound = max(dual_bound, values[0])
                    told(dual_bound)
                elif kind == "solution":
                    solution = values[1]
                else:
                    status, final = values
                    if status in (SolveStatus.FAILED, SolveStatus.INFEASIBLE):  # neither tells of the least value
                        return Solved(status, -math.inf, solution)
                    return Solved(status, final if math.isfinite(final) else dual_bound, solution)
        except (OSError, EOFError):
            self.close()
            return Solved(SolveStatus.FAILED, -math.inf, solution)
        except BaseException:
            self.close()  # what it has to say of this model must not be taken for what it says of the next
            raise

    def start(self, time_limit_s: float, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Start the process, if there is none, within a time; where that fails, :meth:`solve` says so."""
        with suppress(OSError, EOFError):
            self._ready(time.monotonic() + time_limit_s, interrupted)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _ready(self, ends: float, interrupted: Callable[[], bool]) -> bool:
        if self._process is not None and self._process.running:
            return True
        self.close()
        self._replies = SimpleQueue()
        self._process = TalkingProcess(_COMMAND, self._replies.put, leads=False)  # killed with what this one is
        weakref.finalize(self, self._process.close)
        return self._receive(min(ends, time.monotonic() + _START_S), interrupted) is not None

    def _receive(self, until: float, interrupted: Callable[[], bool]) -> Any:
        """Return the next message, None where the process had to be killed; raises EOFError if it has died."""
        while True:
            left = until - time.monotonic()
            if left <= 0 or interrupted():
                self.close()
                return None
            try:
                message = self._replies.get(timeout=min(left, _LOOK_S))
            except Empty:
                continue
            if message is None:
                raise EOFError
            return message


_OWN = local()


def solver_process() -> SolverProcess:
    """Return the process of the calling thread: its start is paid for once."""
    if not hasattr(_OWN, "process"):
        _OWN.process = SolverProcess()
    process: SolverProcess = _OWN.process
    return process
