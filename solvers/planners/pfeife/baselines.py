"""Split points at parts of the time of a line, and even splits under schedules that everybody knows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.planners.pfeife.candidate import Scheduled
from mtpp.solvers.planners.pfeife.schedule_arrays import looped_arrays
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.plan import Baseline
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.units import Exact, ceil_ratio

EVEN = "even"
"""Name of the baseline with the plan's own schedule."""

_MOST_LOOPS = 3


def baselines(problem: SplitProblem) -> Iterator[Baseline]:
    """Go through GPipe, 1F1B, interleaved 1F1B, and loops with full prefetch, each with an even split."""
    sums = (
        problem.times.forward[int(problem.times.speed_of[0])] + problem.times.backward[int(problem.times.speed_of[0])]
    )
    for name, looped in known_schedules(problem):
        arrays = looped_arrays(looped)
        if arrays is None:
            continue
        split = even_split(sums, looped.stages)
        found = Scheduled(problem, arrays, looped).of(np.asarray(split))
        yield Baseline(name, split.tolist(), found.ticks, found.excess == 0)


def known_schedules(problem: SplitProblem) -> Iterator[tuple[str, LoopedSchedule]]:
    """Go through the looped schedules to compare with, for which there are ops enough."""
    devices, total, n = problem.devices, problem.micro_batches, problem.line.costs.ops
    if devices > n:
        return
    full = tuple(devices - 1 - d for d in range(devices))
    yield "gpipe", LoopedSchedule(devices, total, 1, total, (total,) * devices)
    yield "1f1b", LoopedSchedule(devices, total, 1, total, (0,) * devices)
    for loops in range(2, _MOST_LOOPS + 1):
        if loops * devices <= n:
            yield f"interleaved-{loops}", LoopedSchedule(devices, total, loops, min(devices, total), full)
            yield f"prefetch-{loops}", LoopedSchedule(devices, total, loops, total, full)


def even_split(sums: Int64Array, stages: int) -> Int64Array:
    """Return the split whose stages take equal parts of the last of *sums*, as near as whole ops allow, none empty.

    Parameters
    ----------
    sums
        Ticks of the first ops, int64, shape (n + 1,); n is at least the number of stages.

    Returns
    -------
    int64, shape (S + 1,). Of two positions that are as near the lower one is taken.
    """
    total = int(sums[-1])
    return _nearest(sums, [Fraction(s * total, stages) for s in range(1, stages + 1)])


def split_of_shares(sums: Int64Array, shares: Sequence[float]) -> Int64Array:
    """Return the split whose stages come as near to *shares* of the last of *sums* as whole ops allow, none empty."""
    total = float(sums[-1])
    return _nearest(sums, [int(end * total) for end in accumulate(shares)])


def _nearest(sums: Int64Array, ends: Sequence[Exact]) -> Int64Array:
    known = sums.tolist()
    n, stages = len(known) - 1, len(ends)
    split = np.zeros(stages + 1, dtype=np.int64)
    for s, end in enumerate(ends[:-1], 1):
        at = min(bisect_left(known, ceil_ratio(end.numerator, end.denominator)), n)
        if at > 0 and end - known[at - 1] <= known[at] - end:
            at = bisect_left(known, known[at - 1])
        split[s] = min(max(at, int(split[s - 1]) + 1), n - (stages - s))
    split[stages] = n
    return split
