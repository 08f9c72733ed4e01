"""A schedule as kernels take it: passes in precedence order, messages, and what devices keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.planners.pfeife.kernels.ordered_passes import looped_rows, ordered_passes
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.schedule import PassSchedule

_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ScheduleArrays:
    """Passes of a schedule that runs. Make one with :func:`arrays_of` or :func:`looped_arrays`.

    Attributes
    ----------
    devices, stages, micro_batches
        D, S and B.
    rows, row_start
        Stage, kind and micro-batch of each pass, int32, shape (passes, 3), device by device from ``row_start[d]`` on.
    order
        Positions in *rows* in precedence order, int64.
    table
        As :func:`mtpp.solvers.planners.pfeife.kernels.ordered_passes.ordered_passes` sets it.
    after, after_start
        Passes that each pass is a dependency of besides, by place in that order, CSR, int32; empty if there are none.
    """

    devices: int
    stages: int
    micro_batches: int
    rows: Int32Array
    row_start: Int64Array
    order: Int64Array
    table: Int32Array
    after: Int32Array
    after_start: Int32Array

    @property
    def loops(self) -> int:
        """Stages of the devices that have most."""
        return -(-self.stages // self.devices)

    @cached_property
    def share(self) -> Int64Array:
        """Passes of each kind of each stage, int64, shape (S, 4)."""
        counts = np.bincount(4 * self.rows[:, 0].astype(np.int64) + self.rows[:, 1], minlength=4 * self.stages)
        return counts.astype(np.int64).reshape(self.stages, 4)

    @cached_property
    def place(self) -> Int32Array:
        """Place of each pass in the precedence order by stage, kind and micro-batch, −1 for none; int32."""
        places = np.full((self.stages, 4, self.micro_batches), -1, dtype=np.int32)
        ordered = self.rows[self.order]
        places[ordered[:, 0], ordered[:, 1], ordered[:, 2]] = np.arange(len(ordered))
        return places

    @cached_property
    def micro_batch_of(self) -> Int32Array:
        """Micro-batch of each pass in the precedence order, int32."""
        return np.ascontiguousarray(self.rows[self.order][:, 2])

    @cached_property
    def held(self) -> tuple[Int64Array, Int64Array]:
        """Micro-batches in flight of each loop of each device at the moments that may matter, and where each begins.

        int64, shapes (moments, N_l) and (D + 1,). No moment holds as many as another one of its device in every loop.
        """
        moments: list[tuple[int, ...]] = []
        starts = [0]
        for d in range(self.devices):
            rows = self.rows[self.row_start[d] : self.row_start[d + 1]]
            change = np.zeros((len(rows), self.loops), dtype=np.int64)
            step = np.where(rows[:, 1] == 0, 1, np.where(rows[:, 1] == 2, 0, -1))
            change[np.arange(len(rows)), rows[:, 0] // self.devices] = step
            moments += _highest(np.unique(np.cumsum(change, axis=0), axis=0))
            starts.append(len(moments))
        return np.array(moments, dtype=np.int64).reshape(-1, self.loops), np.array(starts, dtype=np.int64)


def _highest(moments: Int64Array) -> list[tuple[int, ...]]:
    """Return the rows that no other row is at least as high as everywhere."""
    kept: list[tuple[int, ...]] = []
    left = moments[np.argsort(-moments.sum(axis=1), kind="stable")]
    while len(left):  # the first one has the greatest sum: none of the others is higher everywhere
        kept.append(tuple(left[0].tolist()))
        left = left[(left > left[0]).any(axis=1)]
    return kept


def looped_arrays(looped: LoopedSchedule) -> ScheduleArrays | None:
    """Return the arrays of a looped schedule, None if its passes wait for each other: O(passes)."""
    if looped.grows:
        return None
    rows = looped_rows(looped.micro_batches, looped.loops, looped.loop_batch, np.array(looped.warm_up, dtype=np.int64))
    each = 2 * looped.loops * looped.micro_batches
    starts = np.arange(looped.devices + 1, dtype=np.int64) * each
    return _ordered(rows, starts, looped.stages, looped.micro_batches, _NO_PAIRS)


def arrays_of(schedule: PassSchedule) -> ScheduleArrays | None:
    """Return the arrays of any schedule, None if its passes wait for each other: O(passes)."""
    passes = [one for row in schedule.rows for one in row]
    starts = np.cumsum([0, *map(len, schedule.rows)], dtype=np.int64)
    pairs = _NO_PAIRS
    if schedule.dependencies:
        place = {one: i for i, one in enumerate(passes)}
        pairs = np.array([[place[a], place[b]] for a, b in schedule.dependencies], dtype=np.int64)
    rows = np.array(passes, dtype=np.int32).reshape(-1, 3)
    return _ordered(rows, starts, schedule.stages, schedule.micro_batches, pairs)


def _ordered(
    rows: Int32Array, starts: Int64Array, stages: int, micro_batches: int, pairs: Int64Array
) -> ScheduleArrays | None:
    order = np.empty(len(rows), dtype=np.int64)
    table = np.empty((len(rows), 5), dtype=np.int32)
    done = ordered_passes(starts, rows, stages, micro_batches, pairs, order, table)
    if done < len(rows):
        return None
    after, after_start = _after(order, pairs)
    return ScheduleArrays(len(starts) - 1, stages, micro_batches, rows, starts, order, table, after, after_start)


def _after(order: Int64Array, pairs: Int64Array) -> tuple[Int32Array, Int32Array]:
    """Return the passes that each pass is a dependency of, by place in *order*, as CSR; empty where there are none."""
    if not len(pairs):
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ends = place[pairs]
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], np.arange(len(order) + 1)).astype(np.int32)
    return ends[:, 1].astype(np.int32), starts
