"""The exact MIP: all stages, minimum bottleneck; where that takes too long, the same below lower cutoffs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.mip.block_problem import BlockProblem, prepared
from mtpp.solvers.bounds.mip.block_solve import bound_of, solve_blocks

_NAME = "exact-mip"

_FIRST_SHARE = 0.2
"""Of the time, for the cutoff that is asked for; what follows are easier ones."""

_NEXT_SHARE = 0.6
"""Of the time left, for each of those."""

_STEP = 0.2
"""Of the way from the bound to what could not be shown, for the next cutoff; twice as much after a success."""

_CLOSE = 1000
"""Cutoffs closer to each other than one part in so many are not worth another attempt."""

_LEAST_S = 0.5
"""Seconds below which none is made."""


def exact_model(problem: BlockProblem, *, loose: bool = False) -> BlockModel:
    """Return the model of section 3.1 for partitions below the cutoff, empty stages last.

    What is known of y follows from the windows of work of the first b stages, which themselves follow from the cutoff
    and from what has to cross between the stages.

    Parameters
    ----------
    loose
        Whether the rest of the model lets in solutions of any cost: there is always one, and the model has a least
        value that says something of partitions below the cutoff even if there are none.
    """
    n, stages = len(problem.work), problem.stages
    inside = np.zeros((n, stages + 1), dtype=bool)
    outside = np.zeros((n, stages + 1), dtype=bool)
    for b in range(1, stages):
        inside[:, b] = problem.surely_inside(b)
        outside[:, b] = problem.surely_outside(b)
    blocks = [Block(1)] * stages
    return block_model(problem, blocks, inside, outside, nonempty_first=not loose, by_stage=True, loose=loose)


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return OPT, or a lower bound on it; of tier ``solver``, with a better partition if one was found.

    Where the time does not suffice, lower cutoffs are tried: they settle more of the ops, and the least cost of what
    they leave is a bound up to the cutoff. That there is nothing below a cutoff is no bound, only a reason to try a
    higher one.

    Notes
    -----
    O(n·k) variables, O(pins·k) constraints, before what is fixed is left out. Archer et al. (2024), section 3.1.
    Overflow of parameters beside a fixed reserve is in the model; beside peaks in the graph's order, which are at
    least those of single ops, it is a relaxation.
    """
    search = _Search(instance, limits)
    for cutoff, time_limit_s in search.attempts():
        search.attempt(cutoff, time_limit_s)
    return search.best


class _Search:
    """Attempts at one cutoff after the other, and what has come of them."""

    def __init__(self, instance: Instance, limits: BoundLimits) -> None:
        self.best = BoundResult(None, solved=True)
        self._instance = instance
        self._limits = limits
        self._lower = limits.lower
        self._unsolved = limits.target
        self._least_s = 0.0  # an attempt with less time is known to be of no use

    def attempts(self) -> Iterator[tuple[int, float | None]]:
        """Yield cutoffs with the seconds that each may take; None: as long as there is time."""
        deadline, target = self._limits.deadline, self._limits.target
        first_s = None if deadline.limit_s is None else max(_LEAST_S, _FIRST_SHARE * deadline.remaining_s())
        yield target, first_s
        if self._proven < target <= self._lower and target < self._limits.upper:  # that nothing is left is no bound
            target = self._limits.upper
            yield target, first_s
        if first_s is None:
            return
        share = _STEP
        while not self.best.solved and not self._limits.ended():
            left = deadline.remaining_s()
            cutoff = self._lower + int(share * (self._unsolved - self._lower))
            limit = _NEXT_SHARE * left
            if limit < max(_LEAST_S, self._least_s) or cutoff - self._lower <= self._lower // _CLOSE:
                break
            yield cutoff, limit
            share = min(0.5, 2 * share) if self._lower >= cutoff else _STEP
        left = deadline.remaining_s()
        if not self.best.solved and not self.best.left_out and left >= max(_LEAST_S, self._least_s):
            yield target, left

    def attempt(self, cutoff: int, time_limit_s: float | None) -> None:
        """Look for a partition up to *cutoff*, and for a bound of so much at most."""
        began = time.perf_counter()
        problem = prepared(self._instance, self._limits, cutoff)
        if isinstance(problem, BoundResult):
            if problem.left_out:
                self.best = problem
            self._unsolved = self._lower
            return
        if problem.lowest is None:  # to be claimed by the bound `crossings`, which has the proof
            self._take_in(BoundResult(None, solved=True), cutoff, impossible=True)
            return
        start = None if self._limits.start is None else problem.stages_of(self._limits.start)
        known = cutoff >= self._limits.upper and start is not None
        model = exact_model(problem, loose=not known)
        if not known:
            start = model.projected(np.zeros(len(problem.work), dtype=np.int32) if start is None else start)
        self._least_s = max(self._least_s, 2 * (time.perf_counter() - began))
        outcome = solve_blocks(problem, model, self._limits, time_limit_s=time_limit_s, start=start)
        result = bound_of(_NAME, problem, outcome)
        if outcome.lower is None and time_limit_s is not None:  # not even the first relaxation was solved
            self._least_s = max(self._least_s, 1.5 * time_limit_s)
        if outcome.blocks is not None:
            result = replace(result, partition=problem.better(outcome.blocks, self._upper))
        self._take_in(result, cutoff, impossible=outcome.impossible)

    @property
    def _proven(self) -> int:
        return self._limits.lower if self.best.lower is None else self.best.lower.value

    @property
    def _upper(self) -> int:
        found = self.best.partition
        return self._limits.upper if found is None else bottleneck(self._instance, found)

    def _take_in(self, result: BoundResult, cutoff: int, *, impossible: bool) -> None:
        """Keep the higher bound and the better partition; *cutoff* is settled or not."""
        lower, partition = self.best.lower, result.partition or self.best.partition
        if result.lower is not None and (lower is None or result.lower.value > lower.value):
            lower = result.lower
            self._limits.observer.bound(lower.value)
        if lower is not None:
            self._lower = max(self._lower, lower.value)
        if impossible:
            self._lower = max(self._lower, cutoff)
        below = partition is not None and bottleneck(self._instance, partition) <= cutoff
        settled = result.solved and (below or cutoff >= self._limits.target)
        if not result.solved:
            self._unsolved = cutoff
        self.best = BoundResult(lower, settled, partition)
        if below:
            self._unsolved = min(self._unsolved, self._upper)
