"""HiGHS; the only importer of highspy.

MIPs are solved one after the other in a process of their own that can be killed: run as a program, this module is that
process. Linear programmes, which end soon and whose results nothing has to trust, are solved where they are asked for.

The process reads pickled :class:`~mtpp.solvers.bounds.mip.model.Job` from its standard input and writes pickled tuples,
whose first item says what they are, to what was its standard output: ``("ready",)`` once, then per job ``("bound", dual
bound)`` and ``("solution", objective, values)`` as they come, and ``("done", status, dual bound)``. It ends when its
input does: with its parent.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, BinaryIO, NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from mtpp.host.child_process import message_pipes
from mtpp.solvers.bounds.mip.model import Job, MipModel, SolveStatus

FloatArray = NDArray[np.float64]

_EVERY_S = 0.02
"""Seconds between two messages about the dual bound."""

_TOLD = 200
"""Rows that a programme is told of at a time."""

_TOLERANCES = {
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
"""Tighter than the defaults of 1e-6 and 1e-7, at next to no cost in time: with those, presolve ignores costs of that
part of the largest. Rows that an optimum may meet exactly have to be loosened by more: see ``mip_scale.MARGIN``."""

_LP_ENDS = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)
"""What a linear programme with an optimum may come to."""

_ENDS = {
    highspy.HighsModelStatus.kOptimal: SolveStatus.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: SolveStatus.INFEASIBLE,
    highspy.HighsModelStatus.kTimeLimit: SolveStatus.TIME_LIMIT,
    highspy.HighsModelStatus.kObjectiveTarget: SolveStatus.TARGET,
    highspy.HighsModelStatus.kInterrupt: SolveStatus.ENOUGH,
}
"""What a solve may come to; anything else is a failure, whatever numbers there are."""


def solver_with(model: MipModel, options: dict[str, Any]) -> highspy.Highs:
    """Return a new solver that holds the model."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    fixed: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
    }
    for name, value in (fixed | options).items():
        if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise RuntimeError(f"HiGHS does not take {name} = {value}")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.column_count, model.row_count
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = model.cost, model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = model.row_lower, model.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = model.column_count, model.row_count
    lp.a_matrix_.start_, lp.a_matrix_.index_ = model.row_starts, model.indices
    lp.a_matrix_.value_ = model.values
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(integral)] for integral in model.integral]
    if solver.passModel(lp) != highspy.HighsStatus.kOk:
        raise RuntimeError("HiGHS does not take the model")
    return solver


def write_model(model: MipModel, names: list[str], path: Path) -> None:
    """Write the model to a file for another solver, MPS or LP by the ending of its name; *names* are the columns'."""
    solver = solver_with(model, {})
    for column, name in enumerate(names):
        solver.passColName(column, name)
    if solver.writeModel(str(path)) == highspy.HighsStatus.kError:
        raise OSError(f"HiGHS could not write {path}")


def _simplex() -> highspy.Highs:
    """Return HiGHS for linear programmes that grow: one thread, nothing presolved, the same in every run."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("random_seed", 0)):
        highs.setOptionValue(option, value)
    return highs


def _run(highs: highspy.Highs, time_limit_s: float) -> highspy.HighsModelStatus | None:
    """Solve a linear programme, from the last basis at first; return how that ended, None for an error."""
    spent_s = highs.getRunTime()  # its clock adds up over all solves
    highs.setOptionValue("time_limit", spent_s + max(0.0, min(time_limit_s, 1e6)))
    status = None
    for again in (False, True):
        if again:
            highs.clearSolver()  # from the last basis it may find no optimum where there is one
        status = None if highs.run() == highspy.HighsStatus.kError else highs.getModelStatus()
        if status in _LP_ENDS:
            break
    return status


class RowProgram:
    """Maximise c·x over x between bounds, subject to rows a·x ≤ b that are added one after the other.

    What comes out is a proposal in floating point; the caller has to check it.

    Parameters
    ----------
    objective
        c, shape (variables,).
    """

    def __init__(self, objective: FloatArray) -> None:
        self._highs = _simplex()
        count = len(objective)
        self._all = np.arange(count, dtype=np.int32)
        self._highs.addVars(count, np.zeros(count), np.zeros(count))
        self._highs.changeColsCost(count, self._all, -objective)

    def add(self, rows: Sequence[tuple[NDArray[np.int32], FloatArray]], at_most: float) -> None:
        """Add rows, each given by the variables in it and their coefficients."""
        if not rows:
            return
        lengths = [len(indices) for indices, _ in rows]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32)
        indices = np.concatenate([indices for indices, _ in rows]).astype(np.int32)
        values = np.concatenate([values for _, values in rows])
        lowest = np.full(len(rows), -highspy.kHighsInf)
        highest = np.full(len(rows), at_most)
        self._highs.addRows(len(rows), lowest, highest, len(indices), starts, indices, values)

    def solve(self, lowest: FloatArray, highest: FloatArray, time_limit_s: float) -> tuple[float, FloatArray] | None:
        """Return the maximum and x, None if there is none or the time did not suffice."""
        self._highs.changeColsBounds(len(self._all), self._all, lowest, highest)
        if _run(self._highs, time_limit_s) != highspy.HighsModelStatus.kOptimal:
            return None
        return -self._highs.getInfo().objective_function_value, np.array(self._highs.getSolution().col_value)


def broken_rows(held: FloatArray, told: NDArray[np.bool_], at_most: float) -> NDArray[np.int64]:
    """Return which rows a programme is to be told of next: the fullest ones that break their bound, so many at a time.

    Parameters
    ----------
    held
        a·x of each row; −∞ for one that does not count.
    told
        Which rows the programme has been told of, bool; those that are returned are marked.
    at_most
        b, with some tolerance.
    """
    fullest = np.argsort(-np.where(told, -np.inf, held), kind="stable")[:_TOLD]
    broken = fullest[(held[fullest] > at_most) & ~told[fullest]]
    told[broken] = True
    return broken


class MatrixGame:
    """Zero-sum game of a matrix to which rows and columns are added: one player mixes rows, the other columns.

    What comes out is a proposal in floating point; the caller has to check it.
    """

    def __init__(self) -> None:
        self._highs = _simplex()
        self._highs.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        self._highs.changeColCost(0, 1.0)
        self._highs.addRow(1.0, 1.0, 0, np.array([], dtype=np.int32), np.array([]))
        self._rows = self._columns = 0

    def add_row(self, values: FloatArray) -> None:
        """Add a row: what the player of rows gets for it against each column."""
        indices = np.arange(self._columns + 1, dtype=np.int32)
        self._highs.addRow(0.0, highspy.kHighsInf, len(indices), indices, np.concatenate([[1.0], -values]))
        self._rows += 1

    def add_column(self, values: FloatArray) -> None:
        """Add a column: what the player of columns pays for it against each row."""
        indices = np.arange(self._rows + 1, dtype=np.int32)
        self._highs.addCol(0.0, 0.0, highspy.kHighsInf, len(indices), indices, np.concatenate([[1.0], -values]))
        self._columns += 1

    def solve(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the best mixtures of rows and of columns, None if HiGHS found none."""
        if self._highs.run() == highspy.HighsStatus.kError:
            return None
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        rows = np.maximum(0.0, np.array(solution.row_dual)[1:])
        columns = np.maximum(0.0, np.array(solution.col_value)[1:])
        if rows.sum() <= 0.0 or columns.sum() <= 0.0:
            return None
        return rows / rows.sum(), columns / columns.sum()


class LpSolution(NamedTuple):
    """An optimum of a linear programme, in floating point.

    Attributes
    ----------
    value
        The objective.
    columns
        Values of the columns.
    prices
        Dual value of each row.
    """

    value: float
    columns: FloatArray
    prices: FloatArray


class BoxProgram:
    """One minimisation solved over and over with other bounds of its first columns, each time from the last basis.

    What comes out is a proposal in floating point; the caller has to check it.

    Parameters
    ----------
    model
        With no integral column, and an optimum.
    boxed
        How many columns have bounds that change.

    Attributes
    ----------
    failed
        Whether the last programme was not solved though there was time.
    """

    def __init__(self, model: MipModel, boxed: int) -> None:
        self._highs = solver_with(model, {"presolve": "off", "random_seed": 0})
        self.failed = False
        self._boxed = np.arange(boxed, dtype=np.int32)

    def solve(self, lower: FloatArray, upper: FloatArray, time_limit_s: float) -> LpSolution | None:
        """Return an optimum, None if the time did not suffice or HiGHS failed."""
        highs = self._highs
        highs.changeColsBounds(len(self._boxed), self._boxed, lower, upper)
        status = _run(highs, time_limit_s)
        self.failed = status not in _LP_ENDS
        if status != highspy.HighsModelStatus.kOptimal:
            return None
        solution = highs.getSolution()
        value = highs.getInfo().objective_function_value
        return LpSolution(value, np.array(solution.col_value), np.array(solution.row_dual))


class _Told:
    """What the parent has been told of one solve, and what is new."""

    def __init__(self, replies: BinaryIO) -> None:
        self._replies = replies
        self._lock = Lock()
        self._sent = self.bound = -np.inf
        self._over = Event()

    def send(self, *message: Any) -> None:
        with self._lock:
            pickle.dump(message, self._replies)
            self._replies.flush()

    def send_bound(self) -> None:
        bound = self.bound
        if np.isfinite(bound) and bound > self._sent:
            self._sent = bound
            self.send("bound", bound)

    def keep_telling(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.send_bound()

    def finish(self) -> None:
        self._over.set()


def _solve(job: Job, replies: BinaryIO) -> None:
    if not job.model.integral.any():
        raise RuntimeError("HiGHS has no MIP bound where no column is integral")
    limits = {"time_limit": job.time_limit_s, "random_seed": job.seed, "objective_target": job.target}
    solver = solver_with(job.model, limits | _TOLERANCES)
    told = _Told(replies)

    def progress(event: Any) -> None:
        told.bound = max(told.bound, float(event.data_out.mip_dual_bound))
        if told.bound >= job.enough:
            event.interrupt()

    def incumbent(event: Any) -> None:
        told.send("solution", float(event.data_out.objective_function_value), np.array(event.data_out.mip_solution))

    solver.cbMipInterrupt += progress  # comes many times a second; that of the log only if there is one
    solver.cbMipImprovingSolution += incumbent
    if job.start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = job.start.tolist()
        solver.setSolution(solution)
    teller = Thread(target=told.keep_telling, daemon=True)
    teller.start()
    try:
        ran = solver.run()
    finally:  # or it would tell the next solve of this one's bound
        told.finish()
        teller.join()
    status = None if ran == highspy.HighsStatus.kError else _ENDS.get(solver.getModelStatus())
    status = status or SolveStatus.FAILED
    info = solver.getInfo()
    bound = info.mip_dual_bound if status != SolveStatus.FAILED and info.valid else -np.inf
    feasible = info.primal_solution_status == int(highspy.kSolutionStatusFeasible)
    if status != SolveStatus.FAILED and feasible:  # what presolve finds it tells no one
        told.send("solution", info.objective_function_value, np.array(solver.getSolution().col_value))
    told.send("done", status, float(bound))


def serve() -> None:
    """Solve what comes in until the input ends, which it does with the parent at the latest."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user's interruption is for the parent
    requests, replies = message_pipes()
    jobs: SimpleQueue[Job] = SimpleQueue()

    def listen() -> None:
        while True:
            try:
                jobs.put(pickle.load(requests))
            except BaseException:
                os._exit(0)

    Thread(target=listen, daemon=True).start()
    pickle.dump(("ready",), replies)
    replies.flush()
    while True:
        job = jobs.get()
        try:
            _solve(job, replies)
        except (RuntimeError, ValueError, TypeError, MemoryError):
            pickle.dump(("done", SolveStatus.FAILED, -np.inf), replies)
            replies.flush()
