"""For each op, the least cost of a stage that holds it: convex sets of ops, one small MIP per op."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtpp.array_types import BoolArray
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.branch_and_bound.known_prefixes import Reach
from mtpp.solvers.bounds.branch_and_bound.one_stage import anchored_bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.mip.block_problem import BlockProblem, prepared
from mtpp.solvers.bounds.mip.block_solve import solve_blocks, solver_bound

_NAME = "node-convex"

_SLICES_S = (1.0, 8.0, 1e7)
"""Seconds at most for each op, in rounds."""


def convex_model(problem: BlockProblem, op: int, reach: Reach) -> BlockModel:
    """Return the model of the cheapest stage with op *op* in a partition below the cutoff.

    The ops before the op are in the stage or before it, those after it in the stage or after it. A stage that holds
    two ops holds all between them: too much work between the op and another puts that one outside the stage. What is
    not in the stage fits into the others.
    """
    n = len(problem.work)
    limit = problem.scale.limit
    inside = np.zeros((n, 4), dtype=bool)
    outside = np.zeros((n, 4), dtype=bool)
    before, after = _held(reach.leading[op], n), _held(reach.following[op], n)
    inside[:, 2] = before
    outside[:, 1] = after
    for u in np.flatnonzero(after).tolist():
        if int(problem.work[after & _held(reach.leading[u], n)].sum()) > limit:
            outside[u, 2] = True
    for u in np.flatnonzero(before).tolist():
        if int(problem.work[before & _held(reach.following[u], n)].sum()) > limit:
            inside[u, 1] = True
    least = max(0, int(problem.work.sum()) - (problem.stages - 1) * limit)
    others = Block(max(1, problem.stages - 1), counted=False)
    return block_model(problem, [others, Block(1, least_work=least), others], inside, outside)


def _held(ops: int, count: int) -> BoolArray:
    """Return for each of so many ops whether it is in a set, whose bits are set in an integer."""
    octets = np.frombuffer(ops.to_bytes(count // 8 + 1, "little"), dtype=np.uint8)
    return np.unpackbits(octets, bitorder="little")[:count].astype(bool)


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the largest, over the ops v, of min f(S) over the convex sets S with v: OPT is at least each of them.

    Ops that cost most by themselves come first, and those that are in a set no more expensive than what is known are
    left out. HiGHS finds the op; if the time suffices, branch and bound proves what it found, and the tier is
    ``exact``. Else it is ``solver``.

    Notes
    -----
    One model of O(n) variables and O(pins) constraints per op, most of which are fixed.
    """
    problem = prepared(instance, limits, with_windows=False)
    if isinstance(problem, BoundResult):
        return problem
    stages = None if limits.start is None else problem.stages_of(limits.start)
    reach = Reach(len(problem.work), problem.edges)
    alone = _alone(problem)
    best, at, columns, rows, status = -1, 0, 0, 0, "open"
    cheap = np.zeros(len(alone), dtype=bool)
    settled = np.zeros(len(alone), dtype=bool)
    for op, time_limit_s in _attempts(alone, settled):
        known = max(best, limits.lower)
        if known >= problem.scale.enough or limits.ended():
            break
        if cheap[op] or alone[op] <= known:
            settled[op] = True
            continue
        model = convex_model(problem, op, reach)
        start = None if stages is None else (1 + np.sign(stages - stages[op])).astype(np.int32)
        outcome = solve_blocks(problem, model, limits, time_limit_s=time_limit_s, start=start, target=known)
        settled[op] = outcome.solved
        if outcome.lower is not None and outcome.lower > best:
            best, at, columns, rows, status = outcome.lower, op, outcome.columns, outcome.rows, str(outcome.status)
        if outcome.blocks is not None:
            stage = outcome.blocks == 1
            if problem.cost(stage) <= max(best, limits.lower):
                cheap |= stage
                settled |= stage
    solved = bool(settled.all()) or max(best, limits.lower) >= problem.scale.enough
    if best < problem.least_work:  # every op is in a stage that is known to be cheap, or there was no time
        proof = {"status": "simple" if solved else "open", "rows": 0}
        return BoundResult(solver_bound(_NAME, problem, problem.least_work, proof, 0), solved)
    if best > limits.lower and not limits.ended():
        op = int(np.flatnonzero(problem.contraction.group_of == problem.order[at])[0])
        proven = anchored_bound(_NAME, instance, op, best, limits)
        if proven is not None:
            return BoundResult(proven, solved)
    member = int(problem.instance.first_members[problem.order[at]])
    proof = {"status": status, "op": member, "rows": rows}
    return BoundResult(solver_bound(_NAME, problem, best, proof, columns), solved)


def _attempts(alone: Int64Array, settled: BoolArray) -> Iterator[tuple[int, float]]:
    """Yield ops, the most expensive first, with the seconds that each may take; *settled* changes meanwhile."""
    for seconds in _SLICES_S:
        for op in np.argsort(-alone, kind="stable").tolist():
            if not settled[op]:
                yield op, seconds


def _alone(problem: BlockProblem) -> Int64Array:
    """Return f({v}) of each op without overflow, ticks."""
    instance = problem.instance
    cost = instance.work.copy()
    touching = np.repeat(instance.transfer, np.diff(instance.pin_offsets))
    several = np.repeat(np.diff(instance.pin_offsets) > 1, np.diff(instance.pin_offsets))
    np.add.at(cost, instance.pins[several], touching[several])
    return cost[problem.order]
