"""Looped schedules that a search goes through: those of a cell, a number of loops and a loop batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.planners.pfeife.candidate import Candidate, Scheduled
from mtpp.solvers.planners.pfeife.kernels.joint_annealing import LoopedWarmUp, anneal_together
from mtpp.solvers.planners.pfeife.kernels.split_annealing import Cooling
from mtpp.solvers.planners.pfeife.schedule_arrays import looped_arrays
from mtpp.training.pfeife.looped import LoopedSchedule, least_warm_up
from mtpp.training.pfeife.problem import SplitProblem

_BEGINNINGS = 8
"""Warm-ups that a search begins with, at most."""


class ScheduleCell:
    """Looped schedules of one number of loops and one loop batch.

    Parameters
    ----------
    problem
        Which may fix what is prefetched.
    """

    def __init__(self, problem: SplitProblem, loops: int, loop_batch: int) -> None:
        self.problem, self.loops, self.loop_batch = problem, loops, loop_batch
        self.least = least_warm_up(problem.devices, problem.micro_batches, loops, loop_batch)
        self.most = loops * problem.micro_batches
        self._made: dict[tuple[int, ...], Scheduled | None] = {}

    def scheduled(self, warm_up: Sequence[int]) -> Scheduled | None:
        """Return the schedule of a warm-up, None if it grows, begins too early, or its passes wait for each other."""
        key = tuple(warm_up)
        if key not in self._made:
            made = None
            if all(w >= low for w, low in zip(key, self.least, strict=True)):
                looped = self.looped(key)
                arrays = looped_arrays(looped) if max(key) <= self.most else None
                made = None if arrays is None else Scheduled(self.problem, arrays, looped)
            self._made[key] = made
        return self._made[key]

    def looped(self, warm_up: Sequence[int]) -> LoopedSchedule:
        """Return the parameters of the schedule with a warm-up."""
        prefetch = tuple(w - low for w, low in zip(warm_up, self.least, strict=True))
        return LoopedSchedule(self.problem.devices, self.problem.micro_batches, self.loops, self.loop_batch, prefetch)

    @property
    def fixed(self) -> Sequence[int] | None:
        """The warm-up where the problem fixes what is prefetched."""
        given = self.problem.rules.prefetch
        if given is None:
            return None
        return LoopedSchedule(
            self.problem.devices, self.problem.micro_batches, self.loops, self.loop_batch, given
        ).warm_up

    def annealed(self, scheduled: Scheduled, split: Int64Array, cooling: Cooling) -> Candidate:
        """Return the best split and warm-up met by annealing from those given; the split alone where that is fixed."""
        if self.fixed is not None or scheduled.looped is None:
            return scheduled.annealed(split, cooling)
        warm_up = np.array(scheduled.looped.warm_up, dtype=np.int64)
        best = split.copy()
        looped = LoopedWarmUp(self.loops, self.loop_batch, np.array(self.least, dtype=np.int64), warm_up)
        ticks, excess = anneal_together(
            scheduled.split_arrays, scheduled.memory, scheduled.limited, looped, best, cooling
        )
        found = self.scheduled(warm_up.tolist())
        assert found is not None
        return Candidate(found, best, int(ticks), int(excess))

    def beginnings(self) -> Iterator[Sequence[int]]:
        """Go through warm-ups to begin a search with: device d prefetches up to D − 1 − d passes, up to some number."""
        if self.fixed is not None:
            yield self.fixed
            return
        devices = self.problem.devices
        count = min(devices, _BEGINNINGS)
        for cap in sorted({round(i * (devices - 1) / max(1, count - 1)) for i in range(count)}, reverse=True):
            yield tuple(min(low + min(cap, devices - 1 - d), self.most) for d, low in enumerate(self.least))

    @property
    def leanest(self) -> Scheduled | None:
        """The schedule that keeps least, None if its passes wait for each other."""
        return self.scheduled(self.least if self.fixed is None else self.fixed)

    def every(self) -> Iterator[Sequence[int]]:
        """Go through all warm-ups that do not grow from a device to the next one."""
        if self.fixed is not None:
            yield self.fixed
            return
        yield from self._every((), self.most)

    def _every(self, given: tuple[int, ...], highest: int) -> Iterator[tuple[int, ...]]:
        d = len(given)
        if d == len(self.least):
            yield given
            return
        for w in range(self.least[d], highest + 1):
            yield from self._every((*given, w), w)

    @property
    def at_most(self) -> int:
        """No more warm-ups than that are in :meth:`every`."""
        return 1 if self.fixed is not None else prod(self.most - low + 1 for low in self.least)
