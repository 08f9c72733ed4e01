"""One threshold decided: whether there is a plan all of whose stages are within a time, and which."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.graph import Int64Array
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.piper.arrays import ChoiceArrays
from mtpp.solvers.planners.piper.kernels.pipeline_layout import NOT_KNOWN, LeastCompute, States, StateScratch, Threshold
from mtpp.solvers.planners.piper.kernels.pipeline_states import Part, extend
from mtpp.solvers.planners.piper.kernels.stage_choices import BANG_PER_BUCK, LEAST, UNBOUNDED
from mtpp.solvers.planners.piper.kernels.stage_options import gather_members, knapsack_scratch
from mtpp.solvers.planners.piper.layer_downsets import LayerDownsets, Sets, layer_downsets
from mtpp.solvers.planners.piper.stage_making import make_stage
from mtpp.solvers.threads import Threads
from mtpp.training.plan import LayerStage
from mtpp.training.problem import PlanningProblem
from mtpp.units import ceil_ratio

_TABLE_ENTRIES = 2**25
_MEMORY_ENTRIES = 2**25
_STATE_ENTRIES = 2**25


@dataclass(frozen=True, eq=False)
class Decision:
    """What one threshold came to.

    Attributes
    ----------
    front
        Pairs (Σ d, devices) of which one at least is no larger in every plan within the threshold; empty if there is
        no such plan. By ascending Σ d.
    complete
        Whether that is so. False: states were left out for lack of space, and there may be more plans.
    certain
        Whether it is so, and no knapsack was given up.
    """

    front: Sequence[tuple[int, int]]
    complete: bool
    certain: bool


class PipelineSearch:
    """Plans whose stages end at downsets of one family, threshold by threshold.

    Parameters
    ----------
    sets
        The family; has to hold the empty and the full downset.
    threads
        Where the states of downsets of one size are worked out side by side.
    """

    def __init__(
        self, problem: PlanningProblem, arrays: ChoiceArrays, sets: Sets, limits: PlanLimits, threads: Threads
    ) -> None:
        self.problem, self.arrays = problem, arrays
        self.stopped = StopReason.FINISHED
        self._limits, self._threads = limits, threads
        self._wanted = LEAST if limits.knapsack == "exact" else BANG_PER_BUCK
        most = min(problem.devices, problem.micro_batches)
        in_flight = max(1, min(most, _MEMORY_ENTRIES // (len(problem.degrees) * len(sets)) - 1))
        self.downsets = layer_downsets(problem, arrays, sets, in_flight)
        self._data_degrees = np.array(problem.data_degrees, dtype=np.int64)
        self._spread = np.array([problem.spread(d) for d in problem.data_degrees], dtype=np.int64)
        count = len(sets)
        lone = list(problem.degrees) == [1] and not problem.exact_micro_batches
        width = 1 if lone else max(1, min(most, _STATE_ENTRIES // count))
        shape = (count, width)
        self.states = States(np.zeros(count, dtype=np.int64), *(np.zeros(shape, dtype=np.int32) for _ in range(6)))
        self._table = least_compute_table(self.downsets, arrays, problem.memory_bytes)
        rows = sum(len(choices) for by_layer in problem.choices for choices in by_layer)
        jobs = max(1, limits.jobs)
        self._scratches = [
            (
                StateScratch(*(np.zeros(most + 2, dtype=np.int32) for _ in range(5))),
                knapsack_scratch(len(problem.model.layers), rows),
            )
            for _ in range(jobs)
        ]
        self._starts = np.flatnonzero(np.diff(self.downsets.sizes, prepend=-1, append=-1))

    @property
    def proves(self) -> bool:
        """Whether no plan within a threshold is missed: bang per buck takes slower choices, or none in time."""
        return self._wanted == LEAST

    def decide(
        self,
        time: Fraction | None,
        *,
        strictly: bool = False,
        devices: int | None = None,
        micro_batches: int | None = None,
        memory: int | None = None,
        optimistic: bool = False,
    ) -> Decision | None:
        """Look for plans whose stages take at most *time*, or less than it if *strictly*; any time if it is None.

        Parameters
        ----------
        devices, micro_batches, memory
            In place of the problem's; *memory* leaves the tables of least compute unused.
        optimistic
            Take it that choices exist where their search was ended: for proofs that there is no plan.

        Returns
        -------
        The decision; None if the search had to end.
        """
        problem = self.problem
        limits = (
            problem.memory_bytes if memory is None else memory,
            problem.devices if devices is None else devices,
            problem.micro_batches if micro_batches is None else micro_batches,
        )
        threshold = self._threshold(time, strictly, limits, optimistic)
        self._budgets = threshold.budget
        table = self._table if memory is None else no_table()
        states, downsets = self.states, self.downsets
        given_up = self._given_up
        states.counts[0] = 1
        states.degrees[0, 0] = states.devices[0, 0] = 0
        alive = np.zeros(len(downsets.sizes), dtype=np.int64)
        alive_start = np.zeros(len(self._starts) + 1, dtype=np.int64)
        alive_start[1] = 1
        levels, more = (self._starts, alive, alive_start), (threshold, downsets, self.arrays, table, states)
        if self._limits.stop:
            self.stopped = self._limits.stop
            return None
        if states.degrees.size <= _AT_ONCE and len(downsets.sizes) <= _AT_ONCE // 100:
            complete = extend(Part(1, len(self._starts) - 1, 0, 1, *levels), *more, *self._scratches[0])
            return self._decision(complete, given_up)
        complete, jobs = True, len(self._scratches)
        for level, (first, last) in enumerate(pairwise(self._starts[1:].tolist()), start=1):
            parts = jobs * -(-(last - first) // (jobs * _AT_A_TIME)) if last - first > _ALONE else 1

            def work(part: int, level: int = level, parts: int = parts) -> bool:
                """Work out one of so many parts of the downsets of a size with the scratch of one thread."""
                return extend(Part(level, level + 1, part, parts, *levels), *more, *self._scratches[part % jobs])

            for part in range(0, parts, jobs):
                if self._limits.stop:
                    self.stopped = self._limits.stop
                    return None
                at_once = range(part, min(part + jobs, parts))
                done = self._threads.map(work, at_once) if len(at_once) > 1 else [work(part)]
                complete = complete and all(done)
            if parts > 1:
                reached = first + np.flatnonzero(states.counts[first:last])
                alive_start[level + 1] = alive_start[level] + len(reached)
                alive[alive_start[level] : alive_start[level + 1]] = reached
        return self._decision(complete, given_up)

    def _decision(self, complete: bool, given_up: int) -> Decision:
        """Return what the states of everything say."""
        states, last = self.states, len(self.downsets.sizes) - 1
        count = int(states.counts[last])
        front = list(zip(states.degrees[last, :count].tolist(), states.devices[last, :count].tolist(), strict=True))
        return Decision(front, complete, complete and self._given_up == given_up)

    @property
    def _given_up(self) -> int:
        """Knapsacks whose search was ended, so far."""
        return sum(int(knapsack.given_up[0]) for _, knapsack in self._scratches)

    def tell_time(self, time: Fraction) -> None:
        """Tell the observer of a plan."""
        self._limits.observer.incumbent(math.ceil(time))

    def tell_bound(self, bound: Fraction) -> None:
        """Tell the observer of a bound."""
        self._limits.observer.bound(math.ceil(bound))

    def _threshold(
        self, time: Fraction | None, strictly: bool, limits: tuple[int, int, int], optimistic: bool
    ) -> Threshold:
        problem, d, spread = self.problem, self._data_degrees, self._spread
        budgets = []
        for degree, spreading in zip(d.tolist(), spread.tolist(), strict=True):
            if time is None:
                budgets.append(UNBOUNDED)
                continue
            most = time * degree * spreading
            budgets.append(min(UNBOUNDED, math.ceil(most) - 1 if strictly else math.floor(most)))
        ticks = UNBOUNDED if time is None else max(1, min(UNBOUNDED, math.ceil(time)))
        downsets = self.downsets
        leaving = downsets.least_leaving
        numbers = [
            *limits,
            ticks,
            int(problem.exact_micro_batches),
            self._wanted,
            int(optimistic),
            int(problem.convention == "program"),
        ]
        return Threshold(
            d,
            spread,
            d - 1,
            np.array(budgets, dtype=np.int64),
            -(-(downsets.device_work[-1] - downsets.device_work + leaving) // ticks),
            -(-(downsets.degree_work[-1] - downsets.degree_work + leaving) // ticks),
            np.array(numbers, dtype=np.int64),
        )

    def stages(self, state: int) -> list[LayerStage]:
        """Return the stages behind a pair of the front that the last decision found, each with its fastest choices."""
        sets, scratch = self.downsets.sets, self._scratches[0][1]
        stages = []
        for outer, inner, j, g, in_flight in self._cuts(state):
            question = (int(self._data_degrees[g]), j, in_flight, self._wanted, scratch, int(self._budgets[g]))
            stages.append(make_stage(self.problem, self.arrays, sets[outer], sets[inner], *question))
        return stages

    def memory_needed(self, state: int) -> int:
        """Return the bytes that the stages behind a pair of the front need at least, on the fullest device."""
        sets, scratch, arrays = self.downsets.sets, self._scratches[0][1], self.arrays
        most, n = 0, len(self.problem.model.layers)
        for outer, inner, j, _, in_flight in self._cuts(state):
            needed = 0  # not from the sums of downsets, which end at fewer micro-batches where they would be large
            for v in scratch.members[: gather_members(n, sets[outer], sets[inner], scratch)].tolist():
                rows = slice(int(arrays.start[j * n + v]), int(arrays.start[j * n + v + 1]))
                needed += int((arrays.memory_a[rows] * in_flight + arrays.memory_b[rows]).min())
            most = max(most, needed)
        return most

    def _cuts(self, state: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the stages behind a pair of the front, from the model's sources on.

        As the downsets with it and behind it, the positions of its degrees t and d, and its micro-batches in flight.
        """
        outer, states = len(self.downsets.sizes) - 1, self.states
        while self.downsets.sizes[outer]:
            inner = int(states.inner[outer, state])
            j, g = int(states.tensor[outer, state]), int(states.data[outer, state])
            yield outer, inner, j, g, ceil_ratio(int(states.degrees[outer, state]), int(self._data_degrees[g]))
            outer, state = inner, int(states.state[outer, state])


_ALONE = 8
"""So few downsets of one size are not worth a second thread."""

_AT_A_TIME = 128
"""So many downsets of one size each thread works out before the limits are looked at again."""

_AT_ONCE = 100_000
"""So many states, of a hundredth as many downsets, are worked out in a moment."""


def no_table() -> LeastCompute:
    """Return the table without an entry."""
    empty = np.zeros(0, dtype=np.int64)
    return LeastCompute(np.zeros((0, 0), dtype=np.int64), empty, empty)


def least_compute_table(downsets: LayerDownsets, arrays: ChoiceArrays, memory: int) -> LeastCompute:
    """Return a table for all pairs of downsets, to be filled in as it is used; without an entry if it were large."""
    count, degrees = len(downsets.sizes), len(arrays.degrees)
    if count * count * degrees > _TABLE_ENTRIES // 4:
        return no_table()
    pairs = np.full((count, count), -1, dtype=np.int64)
    entries: list[Int64Array] = []
    number = 0
    for outer in range(count):
        inside = ~(downsets.sets & ~downsets.sets[outer]).any(axis=1)
        inner = np.flatnonzero(inside & (downsets.sizes < downsets.sizes[outer]))
        pairs[outer, inner] = number + np.arange(len(inner))
        number += len(inner)
        room = downsets.least_memory[:, :, outer, None] - downsets.least_memory[:, :, inner] <= memory
        missing = downsets.missing[:, outer, None] != downsets.missing[:, inner]
        entries.append(np.where(missing, 0, room.sum(axis=1)).T.ravel() + 1)
    start = np.zeros(number * degrees + 1, dtype=np.int64)
    np.cumsum(np.concatenate(entries), out=start[1:])
    if start[-1] > _TABLE_ENTRIES:
        return no_table()
    return LeastCompute(pairs, start, np.full(int(start[-1]) + 1, NOT_KNOWN, dtype=np.int64))
