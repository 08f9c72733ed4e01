"""Candidate plan: a schedule and a split, with what it takes of time and of memory beyond the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.names import BUFFERS
from mtpp.solvers.planners.pfeife.kernels.split_annealing import Cooling, anneal_split, split_iteration
from mtpp.solvers.planners.pfeife.kernels.split_arrays import SplitArrays
from mtpp.solvers.planners.pfeife.kernels.split_beam import best_of_all_splits, extend_beam
from mtpp.solvers.planners.pfeife.kernels.split_iteration import NEVER
from mtpp.solvers.planners.pfeife.kernels.split_memory import MemoryArrays, device_bytes, excess_bytes
from mtpp.solvers.planners.pfeife.schedule_arrays import ScheduleArrays
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.problem import SplitProblem

UNLIMITED = 2**60
"""Bytes of a device without a limit."""

_NOTHING = np.zeros(0, dtype=np.int32)
_NO_PLACES = np.zeros((0, 4, 0), dtype=np.int32)
_NO_TENSORS = (_NOTHING, _NOTHING, _NOTHING, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A schedule of a problem, ready for splits to be tried.

    Attributes
    ----------
    looped
        The schedule's parameters; None for one that was given as passes.
    """

    problem: SplitProblem
    arrays: ScheduleArrays
    looped: LoopedSchedule | None

    @cached_property
    def memory(self) -> MemoryArrays:
        """Sums along the line, and what the schedule keeps."""
        costs = self.problem.line.costs
        held, held_start = self.arrays.held
        limits = self.problem.memory_bytes
        return MemoryArrays(
            np.concatenate([[0], np.cumsum(costs.fixed_bytes)]),
            np.concatenate([[0], np.cumsum(costs.kept_bytes)]),
            costs.crossing_bytes,
            held,
            held_start,
            np.array([UNLIMITED] * self.problem.devices if limits is None else limits, dtype=np.int64),
            self.problem.micro_batches,
            self.problem.rules.buffers != BUFFERS[0],
        )

    @property
    def limited(self) -> bool:
        """Whether memory is."""
        return self.problem.memory_bytes is not None

    @cached_property
    def split_arrays(self) -> SplitArrays:
        """Times and passes as kernels take them."""
        times, arrays = self.problem.times, self.arrays
        direct = self.problem.rules.transport == "direct"
        straight = self.problem.straight_tensors if direct else _NO_TENSORS
        return SplitArrays(
            times.forward,
            times.backward,
            times.handover,
            times.speed_of,
            arrays.table,
            arrays.after,
            arrays.after_start,
            arrays.share,
            direct,
            arrays.place if direct else _NO_PLACES,
            arrays.micro_batch_of if direct else _NOTHING,
            *straight,
            self.problem.line.costs.latency,
        )

    def of(self, split: Int64Array) -> Candidate:
        """Return a split under this schedule."""
        excess = excess_bytes(self.split_arrays, self.memory, split) if self.limited else 0
        return Candidate(self, split, int(split_iteration(self.split_arrays, split)), int(excess))

    def annealed(self, split: Int64Array, cooling: Cooling) -> Candidate:
        """Return the best split met by annealing from one, as :func:`anneal_split` does."""
        best = split.copy()
        ticks, excess = anneal_split(self.split_arrays, self.memory, self.limited, best, cooling)
        return Candidate(self, best, int(ticks), int(excess))

    def best_of_all(self, cutoff: int) -> Candidate | None:
        """Return the best of all splits within the memory if it takes less than *cutoff* ticks."""
        best = np.zeros(self.arrays.stages + 1, dtype=np.int64)
        ticks = best_of_all_splits(self.split_arrays, self.memory, self.limited, best, cutoff)
        return None if ticks == cutoff else Candidate(self, best, int(ticks), 0)

    def beam(
        self, split: Int64Array, width: int, rounds: int, ended: Callable[[], bool] = lambda: False
    ) -> Candidate | None:
        """Return the best split within the memory that a beam search from one comes to.

        Notes
        -----
        Jhoo et al. (2025), algorithm 1: the beam is extended by neighbours of its splits until it stays as it is, in at
        most so many rounds. The first split is where the search begins even if it does not fit.
        """
        start = self.of(split)
        beam = np.tile(split, (width, 1))
        ticks = np.full(width, NEVER, dtype=np.int64)
        if start.excess == 0:
            ticks[0] = start.ticks
        for turn in range(rounds):
            changed, before = False, beam.copy()
            for row in range(width if turn else 1):
                if ended() or (turn and ticks[row] == NEVER):
                    break
                changed |= bool(extend_beam(self.split_arrays, self.memory, self.limited, before[row], beam, ticks))
            if not changed or ended():
                break
        return None if ticks[0] == NEVER else Candidate(self, beam[0].copy(), int(ticks[0]), 0)

    def with_limit(self, limit: Int64Array) -> Scheduled:
        """Return the same with other limits of memory."""
        other = replace(self)
        other.__dict__["memory"] = self.memory._replace(limit=limit)
        return other


@dataclass(frozen=True, eq=False)
class Candidate:
    """A split under a schedule.

    Attributes
    ----------
    split
        int64, shape (S + 1,).
    ticks
        Of an iteration.
    excess
        Bytes beyond the limits of all devices, in sum.
    """

    scheduled: Scheduled
    split: Int64Array
    ticks: int
    excess: int

    @property
    def rank(self) -> tuple[int, int]:
        """Less is better."""
        return self.excess, self.ticks

    @property
    def key(self) -> tuple[int, ...]:
        """The same for the same schedule and split, and an order among equals."""
        looped = self.scheduled.looped
        given = () if looped is None else (looped.loops, looped.loop_batch, *looped.warm_up)
        return tuple(chain(given, self.split.tolist()))

    def annealed(self, cooling: Cooling) -> Candidate:
        """Return the best split met by annealing from this one under the same schedule."""
        return self.scheduled.annealed(self.split, cooling)

    @property
    def device_bytes(self) -> Sequence[int]:
        """Bytes that each device needs."""
        need = np.empty(self.scheduled.problem.devices, dtype=np.int64)
        device_bytes(self.scheduled.split_arrays, self.scheduled.memory, self.split, need)
        return need.tolist()
