"""The process that HiGHS runs in: killed when it overruns, replaced when it dies, gone with its parent."""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import mtpp
from mtpp.solvers.bounds.mip import block_solve
from mtpp.solvers.bounds.mip.block_solve import SolverProcess, solver_process
from mtpp.solvers.bounds.mip.model import MipModel, ModelBuilder


def knapsacks(columns: int, rows: int, seed: int = 0) -> MipModel:
    """Return a covering problem: the more rows, the harder."""
    stream = np.random.Generator(np.random.PCG64(seed))
    weights = stream.integers(1, 60, (rows, columns)).astype(float)
    return MipModel(
        stream.integers(10, 100, columns).astype(float),
        np.zeros(columns),
        np.ones(columns),
        np.ones(columns, dtype=bool),
        weights.sum(axis=1) * 2 / 3,
        np.full(rows, np.inf),
        np.arange(rows + 1, dtype=np.int64) * columns,
        np.tile(np.arange(columns, dtype=np.int64), rows),
        weights.ravel(),
    )


EASY = knapsacks(8, 3)
HARD = knapsacks(140, 40)


def optimum(model: MipModel) -> float:
    """Return the least cost by trying everything."""
    count = model.column_count
    choices = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    rows = model.values.reshape(model.row_count, count)
    feasible = np.all(choices @ rows.T >= model.row_lower, axis=1)
    return float((choices[feasible] @ model.cost).min())


def test_it_solves_one_model_after_the_other_in_one_process() -> None:
    """The dual bound and the solution are those of the model at hand."""
    process = SolverProcess()
    pids = set()
    for seed in range(3):
        model = knapsacks(8, 3, seed)
        told: list[float] = []
        solved = process.solve(model, 60.0, told=told.append)
        assert solved.status == "optimal"
        assert max(told, default=0.0) <= optimum(model) + 1e-4
        assert solved.dual_bound == pytest.approx(optimum(model), abs=1e-4)
        assert solved.solution is not None
        assert float(model.cost @ solved.solution) == pytest.approx(optimum(model), abs=1e-4)
        pids.add(process.pid)
    assert len(pids) == 1
    process.close()


def test_what_cannot_be_is_infeasible() -> None:
    """The status says so, and is no bound."""
    model = knapsacks(8, 3)
    impossible = MipModel(
        model.cost,
        model.lower,
        model.upper,
        model.integral,
        model.row_lower * 10,
        model.row_upper,
        model.row_starts,
        model.indices,
        model.values,
    )
    solved = solver_process().solve(impossible, 60.0)
    assert (solved.status, solved.dual_bound, solved.solution) == ("infeasible", -math.inf, None)


def test_the_bound_streamed_counts_when_the_process_has_to_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of the bounds that came in, and the next model is solved by another process."""
    monkeypatch.setattr(block_solve, "GRACE_S", -5.0)  # killed five seconds before the solver's own limit
    process = SolverProcess()
    told: list[float] = []
    killed = process.solve(HARD, 8.0, told=told.append)
    assert killed.status == "killed"
    assert process.pid is None
    assert told == sorted(told)
    assert killed.dual_bound == told[-1]
    monkeypatch.undo()
    again = process.solve(HARD, 2.0)
    assert again.solution is not None
    assert killed.dual_bound <= float(HARD.cost @ again.solution)
    assert process.solve(EASY, 60.0).status == "optimal"
    process.close()


def test_a_time_limit_gives_the_bound_so_far() -> None:
    """A solve that ends by itself keeps its process."""
    process = SolverProcess()
    solved = process.solve(HARD, 3.0)
    assert solved.status == "time-limit"
    assert solved.dual_bound > 0
    assert process.pid is not None
    process.close()


def test_a_crash_is_no_bound_and_no_exception() -> None:
    """A process that dies by itself proves nothing, and the next solve has a new one."""
    process = SolverProcess()
    assert process.solve(EASY, 60.0).status == "optimal"
    killers = [threading.Thread(target=os.kill, args=(process.pid, signal.SIGKILL))]

    def told(bound: float) -> None:
        if killers:
            killers.pop().start()

    crashed = process.solve(HARD, 30.0, told=told)
    assert crashed.status == "failed"
    assert crashed.dual_bound == -math.inf
    assert process.solve(EASY, 60.0).status == "optimal"
    process.close()


def test_a_process_that_died_between_two_solves_is_replaced() -> None:
    """The caller notices nothing."""
    process = SolverProcess()
    assert process.solve(EASY, 60.0).status == "optimal"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process.solve(EASY, 60.0).status == "optimal"
    process.close()


def test_a_model_that_the_solver_refuses_is_no_bound() -> None:
    """Bounds of a column that cross, or no integral column at all."""
    crossed = MipModel(
        EASY.cost, EASY.upper, EASY.lower, EASY.integral, EASY.row_lower, EASY.row_upper, EASY.row_starts,
        EASY.indices, EASY.values,
    )  # fmt: skip
    linear = MipModel(
        EASY.cost, EASY.lower, EASY.upper, ~EASY.integral, EASY.row_lower, EASY.row_upper, EASY.row_starts,
        EASY.indices, EASY.values,
    )  # fmt: skip
    process = SolverProcess()
    for model in (crossed, linear):
        solved = process.solve(model, 60.0)
        assert (solved.status, solved.dual_bound, solved.solution) == ("failed", -math.inf, None)
    assert process.solve(EASY, 60.0).status == "optimal"
    process.close()


def test_an_interruption_ends_the_solve() -> None:
    """It is asked for while the solver works."""
    told: list[float] = []
    solved = solver_process().solve(HARD, 600.0, told=told.append, interrupted=lambda: len(told) > 0)
    assert solved.status == "interrupted"
    assert solved.dual_bound == told[-1]


def test_what_was_left_unfinished_does_not_answer_for_the_next_model() -> None:
    """An exception on the way, such as the user's second Ctrl-C, ends the process."""
    process = SolverProcess()

    def told(bound: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.solve(HARD, 60.0, told=told)
    assert process.pid is None
    assert process.solve(EASY, 60.0).dual_bound == pytest.approx(optimum(EASY))
    process.close()


def test_a_start_and_a_target_are_used() -> None:
    """A solution that is good enough ends the work."""
    everything = np.ones(HARD.column_count)
    solved = solver_process().solve(HARD, 600.0, start=everything, target=float(HARD.cost.sum()))
    assert solved.status == "target"
    assert solved.solution is not None


def _solve(model: MipModel) -> float:
    return solver_process().solve(model, 60.0).dual_bound


def test_it_works_in_a_spawned_worker() -> None:
    """A worker has a solver process of its own, also a daemonic one, which may have no children by multiprocessing."""
    with get_context("spawn").Pool(1) as pool:
        assert pool.map(_solve, [EASY]) == [pytest.approx(optimum(EASY), abs=1e-4)]


_PARENT = """
import sys
sys.path[:] = {path!r}
from mtpp.solvers.bounds.mip.block_solve import SolverProcess
from mtpp.solvers.bounds.mip.model import MipModel
import pickle
model = pickle.load(open({file!r}, "rb"))
process = SolverProcess()
def told(bound):
    print(process.pid, flush=True)
process.solve(model, 600.0, told=told)
"""


def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    """Also when the parent is killed in the middle of a solve."""
    file = tmp_path / "model"
    file.write_bytes(pickle.dumps(HARD))
    script = _PARENT.format(path=[os.path.abspath(entry) for entry in sys.path], file=str(file))
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(600):
        if not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.1)
    raise AssertionError("the solver outlived its parent")


def test_a_builder_leaves_out_what_is_fixed_and_what_always_holds() -> None:
    """Two columns of four and one row of three are left; the values of all come back."""
    builder = ModelBuilder()
    x = builder.add_columns([0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], lambda: list("abcd"), integral=True)
    builder.add_rows(3, [([0, 0, 1, 2, 2], x[[0, 1, 2, 0, 3]], [1.0, 1.0, 1.0, 2.0, 3.0])], lower=[1.0, 0.0, 3.0])
    compiled = builder.compile()
    assert compiled.model is not None
    assert compiled.kept.tolist() == [0, 3]
    assert compiled.model.row_count == 1
    assert compiled.model.values.tolist() == [2.0, 3.0]
    assert compiled.whole(np.array([1.0, 1.0])).tolist() == [1.0, 1.0, 0.0, 1.0]


def test_a_builder_sees_rows_that_cannot_hold() -> None:
    """Such a model is not built."""
    builder = ModelBuilder()
    x = builder.add_columns([0.0], [1.0], lambda: ["a"], integral=True)
    builder.add_rows(1, [([0], x, [1.0])], lower=2.0)
    assert builder.compile().model is None


def test_a_slow_start_takes_no_slice_of_the_time(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of which each op has a second at first is the same where the solver takes longer than that to begin."""
    ready = SolverProcess._ready

    def slow(process: SolverProcess, ends: float, interrupted: Callable[[], bool]) -> bool:
        if process.pid is None:
            time.sleep(1.2)
        return ready(process, ends, interrupted)

    ladder = str(checkout / "docs" / "bounds" / "ladder.json")
    (due,) = (row.ticks for row in mtpp.bound(ladder, 2, bounds="node-convex") if row.bound == "node-convex")
    monkeypatch.setattr(block_solve, "_OWN", threading.local())
    monkeypatch.setattr(SolverProcess, "_ready", slow)
    (found,) = (row.ticks for row in mtpp.bound(ladder, 2, bounds="node-convex") if row.bound == "node-convex")
    assert found == due == 20
