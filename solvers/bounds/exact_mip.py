"""The exact MIP: all stages, minimum bottleneck; where that takes too long, whether a lower cutoff can be met."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mtpp.instance import Instance
from mtpp.objective import bottleneck
from mtpp.solvers.bounding import BoundLimits, BoundResult
from mtpp.solvers.bounds.block_model import Block, BlockModel, block_model
from mtpp.solvers.bounds.block_problem import BlockProblem, block_problem
from mtpp.solvers.bounds.block_solve import bound_of, no_better, solve_blocks

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


def exact_model(problem: BlockProblem) -> BlockModel:
    """Return the model of section 3.1 for partitions below the cutoff, empty stages last.

    What is known of y follows from the windows of work of the first b stages, which themselves follow from the cutoff
    and from what has to cross between the stages.
    """
    n, stages = len(problem.work), problem.stages
    inside = np.zeros((n, stages + 1), dtype=bool)
    outside = np.zeros((n, stages + 1), dtype=bool)
    for b in range(1, stages):
        inside[:, b] = problem.surely_inside(b)
        outside[:, b] = problem.surely_outside(b)
    return block_model(problem, [Block(1)] * stages, inside, outside, nonempty_first=True, by_stage=True)


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return OPT, or a lower bound on it; of tier ``solver``, with a better partition if one was found.

    Where the time does not suffice, lower cutoffs are tried: that no partition is below one is far easier to show, for
    it settles more of the ops, and it proves as much as the cutoff.

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
        if deadline.limit_s is None:
            yield target, None
            return
        yield target, max(_LEAST_S, _FIRST_SHARE * deadline.remaining_s())
        share = _STEP
        while not self.best.solved and not self._limits.ended():
            left = deadline.remaining_s()
            cutoff = self._lower + int(share * (self._unsolved - self._lower))
            limit = _NEXT_SHARE * left
            if limit < max(_LEAST_S, self._least_s) or cutoff - self._lower <= self._lower // _CLOSE:
                return
            yield cutoff, limit
            share = min(0.5, 2 * share) if self._lower >= cutoff else _STEP

    def attempt(self, cutoff: int, time_limit_s: float | None) -> None:
        """Look for a partition below *cutoff* or the proof that there is none."""
        began = time.perf_counter()
        problem = block_problem(self._instance, cutoff)
        if problem is None:
            self._unsolved = self._lower
            return
        if problem.lowest is None:
            self._take_in(no_better(_NAME, problem, "crossings"), cutoff)
            return
        start = None if self._limits.start is None else problem.stages_of(self._limits.start)
        model = exact_model(problem)
        self._least_s = max(self._least_s, 2 * (time.perf_counter() - began))
        outcome = solve_blocks(problem, model, self._limits, time_limit_s=time_limit_s, start=start)
        result = bound_of(_NAME, problem, outcome)
        if outcome.lower is None and time_limit_s is not None:  # not even the first relaxation was solved
            self._least_s = max(self._least_s, 1.5 * time_limit_s)
        if outcome.blocks is not None:
            result = replace(result, partition=problem.better(outcome.blocks, self._upper))
        self._take_in(result, cutoff)

    @property
    def _upper(self) -> int:
        found = self.best.partition
        return self._limits.upper if found is None else bottleneck(self._instance, found)

    def _take_in(self, result: BoundResult, cutoff: int) -> None:
        """Keep the higher bound and the better partition; *cutoff* is settled or not."""
        lower, partition = self.best.lower, result.partition or self.best.partition
        if result.lower is not None and (lower is None or result.lower.value > lower.value):
            lower = result.lower
            self._limits.observer.bound(lower.value)
        if lower is not None:
            self._lower = max(self._lower, lower.value)
        below = partition is not None and bottleneck(self._instance, partition) < cutoff
        settled = result.solved and (below or cutoff >= self._limits.target)
        if not result.solved:
            self._unsolved = cutoff
        self.best = BoundResult(lower, settled, partition)
        if below:
            self._unsolved = min(self._unsolved, self._upper)
