"""Even splits under schedules that everybody knows, to compare plans with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtpp.solvers.planners.pfeife.candidate import Scheduled
from mtpp.solvers.planners.pfeife.schedule_arrays import looped_arrays
from mtpp.solvers.planners.pfeife.split_points import even_split
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.plan import Baseline
from mtpp.training.pfeife.problem import SplitProblem

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
