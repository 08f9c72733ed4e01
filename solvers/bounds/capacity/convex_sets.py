"""The most work of a convex set of ops that a device has time and memory for, by one pass along a topological order.

A set of the ops decided so far matters to the rest by the tensors whose readers are not all decided: whether they were
made inside it, outside, or behind it, and whether the set pays for them already. Of the sets alike in that, those that
others beat in ticks, bytes and work are dropped. An op may be inside unless it reads what is made behind the set; it is
behind where it is outside and reads from inside or behind. So each convex set is met once.

At most :data:`~mtpp.solvers.bounds.kernels.convex_sets.SLOTS` tensors are live together. Where a graph has more, the
cheapest are *forgotten*: nobody pays for them, and they keep no order. That only adds sets and makes others cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.kernels.convex_sets import (
    BITS,
    SLOTS,
    Labels,
    OpStep,
    Runs,
    StageRoom,
    decide_op,
    most_of_a_run,
    stages_of,
    undominated,
)
from mtpp.solvers.stage_cost.cost_arrays import (
    LIMIT_BYTES,
    NO_MEMORY,
    RESERVE_BYTES,
    UNLIMITED_BYTES,
    MemoryArrays,
    memory_arrays,
)

_ROUNDED = 1 + 1e-9

_RUN_STEPS = 1 << 25
"""Pins that runs of an order may take: a fraction of a second."""

BOTH, TIME, BYTES = "both", "time", "bytes"
"""What limits a set: ticks and memory, or one of them alone."""

_ALL_BITS = (1 << BITS * SLOTS) - 1


@dataclass(frozen=True, eq=False)
class Stair:
    """Convex sets in increasing ticks and measure: no set within the ticks of one has more than it, up to a limit.

    Attributes
    ----------
    ticks, work
        Of each, int64.
    labels
        Labels that were gone on from, a measure of the time taken.
    """

    ticks: Int64Array
    work: Int64Array
    labels: int

    def within(self, ticks: int) -> int:
        """Return the most measure of a set that costs at most so many ticks."""
        at = int(np.searchsorted(self.ticks, ticks, side="right"))
        return int(self.work[at - 1]) if at else 0


@dataclass(frozen=True)
class ScanLimits:
    """Limits of a pass.

    Attributes
    ----------
    most
        Ticks that a set costs at most.
    known
        Measure of a set that is known to cost no more: others matter where they have more.
    labels, width
        Labels in all, and at one op.
    ended
        Whether to end without result.
    """

    most: int
    known: int
    labels: int
    width: int
    ended: Callable[[], bool]


class _Live:
    """Places of tensors in a state while the ops are decided."""

    def __init__(self, instance: Instance, forgotten: Sequence[int]) -> None:
        n = instance.op_count
        place = np.empty(n, dtype=np.int64)
        place[instance.order] = np.arange(n)
        self.reads: list[list[int]] = [[] for _ in range(n)]
        self.makes: list[list[int]] = [[] for _ in range(n)]
        self.last: dict[int, int] = {}
        left_out = set(forgotten)
        pins, offsets, places = instance.pins.tolist(), instance.pin_offsets.tolist(), place.tolist()
        for t in range(instance.tensor_count):
            maker, *readers = pins[offsets[t] : offsets[t + 1]]
            if not readers or t in left_out:
                continue
            self.makes[maker].append(t)
            self.last[t] = max(places[v] for v in readers)
            for v in dict.fromkeys(readers):
                self.reads[v].append(t)


def tensors_beyond(instance: Instance, slots: int) -> list[int]:
    """Return the tensors to forget for no more than *slots* to be live together: the cheapest, then the longest."""
    live = _Live(instance, ())
    ticks = instance.transfer.tolist()
    now: set[int] = set()
    forgotten = []
    for i, v in enumerate(instance.order.tolist()):
        now -= {t for t in live.reads[v] if live.last[t] == i}
        now |= set(live.makes[v])
        while len(now) > slots:
            cheapest = min(now, key=lambda t: (ticks[t], -live.last[t], t))
            now.remove(cheapest)
            forgotten.append(cheapest)
    return sorted(forgotten)


@dataclass(frozen=True, eq=False)
class ConvexSets:
    """Passes over an instance, some of whose tensors are forgotten.

    Attributes
    ----------
    measure
        Weight of each op, int64.
    """

    instance: Instance
    measure: Int64Array
    forgotten: Sequence[int]

    @cached_property
    def _places(self) -> list[tuple[Int64Array, list[int], int, int]]:
        """For each op in order: places in a state of what it reads, these tensors, bits kept, and bits made."""
        live = _Live(self.instance, self.forgotten)
        free = list(range(SLOTS))
        place_of: dict[int, int] = {}
        rows = []
        for i, v in enumerate(self.instance.order.tolist()):
            read = live.reads[v]
            shifts = np.array([BITS * place_of[t] for t in read], dtype=np.int64)
            kept = _ALL_BITS
            for t in read:
                if live.last[t] == i:
                    free.append(place_of.pop(t))
                    kept &= ~(((1 << BITS) - 1) << BITS * free[-1])
            made = 0
            for t in live.makes[v]:
                place_of[t] = free.pop()
                made |= 1 << BITS * place_of[t]
            rows.append((shifts, read, kept, made))
        return rows

    def bytes_left(self, c: int) -> int | None:
        """Return what the memory of a device of a class holds beside its reserve; None: anything."""
        held = int(self._memory.figures[c, LIMIT_BYTES])
        return None if held >= UNLIMITED_BYTES else held - int(self._memory.figures[c, RESERVE_BYTES])

    @cached_property
    def _memory(self) -> MemoryArrays:
        return memory_arrays(self.instance)

    def _steps(self, c: int, counted: str) -> list[OpStep]:
        """Return the ops as a device of a class takes them."""
        cost, instance = self.instance.cost, self.instance
        transfer, work, params = cost.transfer[cost.link_of[c]], cost.work[c].tolist(), instance.param_bytes.tolist()
        if counted == BYTES:
            transfer, work, params = np.zeros_like(transfer), params, [0] * len(params)
        value, rest = self.measure.tolist(), int(self.measure.sum())
        steps = []
        for v, (shifts, read, kept, made) in zip(instance.order.tolist(), self._places, strict=True):
            rest -= value[v]
            steps.append(OpStep(shifts, transfer[read].copy(), kept, made, work[v], params[v], value[v], rest))
        return steps

    def rate(self, c: int, counted: str = TIME) -> float:
        """Return the most measure in a tick of a device of a class, or in a byte, rounded up; −1: any."""
        some, work = self.measure > 0, self.instance.param_bytes if counted == BYTES else self.instance.cost.work[c]
        if not work[some].all():
            return -1.0
        return float((self.measure[some] / work[some]).max(initial=0.0)) * _ROUNDED

    def run(self, c: int, most: int) -> int:
        """Return the measure of some convex set of at most so many ticks: a run of the graph's own order."""
        instance, cost = self.instance, self.instance.cost
        offsets, tensors = instance.op_tensors
        runs = Runs(
            instance.order.copy(),
            offsets.copy(),
            tensors.copy(),
            np.diff(instance.pin_offsets),
            cost.work[c].copy(),
            cost.transfer[cost.link_of[c]].copy(),
            instance.param_bytes.copy(),
            self.measure.copy(),
            np.zeros(instance.tensor_count, dtype=np.int64),
        )
        return int(most_of_a_run(runs, self._room(c, most, 0, BOTH), _RUN_STEPS))

    def _room(self, c: int, most: int, known: int, counted: str) -> StageRoom:
        memory = self._memory if counted == BOTH else self._memory._replace(mode=NO_MEMORY)
        return StageRoom(memory, c, most, known, self.rate(c, counted))

    def stair(self, c: int, limits: ScanLimits, counted: str = BOTH) -> Stair | None:
        """Return the sets that a device of a class has room for; None where the limits do not suffice.

        Parameters
        ----------
        counted
            What limits a set. Where it is bytes alone, they stand in place of ticks.
        """
        room = self._room(c, limits.most, limits.known, counted)
        zero = np.zeros(1, dtype=np.int64)
        labels, looked_at = Labels(zero, zero, zero, zero), 0
        for step in self._steps(c, counted):
            if limits.ended():
                return None
            labels = _front(_decided(labels, step, room), room.memory.mode != NO_MEMORY)
            looked_at += len(labels.state)
            if looked_at > limits.labels or len(labels.state) > limits.width:
                return None
        ticks, work = stages_of(labels, room), labels.work
        some = (work > 0) & (ticks <= limits.most)
        by_ticks = np.lexsort((-work[some], ticks[some]))
        ticks, work = ticks[some][by_ticks], work[some][by_ticks]
        best = np.maximum.accumulate(work) if len(work) else work
        rises = np.diff(best, prepend=0) > 0
        return Stair(ticks[rises], work[rises], looked_at)


def _decided(old: Labels, step: OpStep, room: StageRoom) -> Labels:
    size = 2 * len(old.state)
    new = Labels(*(np.empty(size, dtype=np.int64) for _ in range(4)))
    count = decide_op(old, step, room, new)
    return Labels(*(rows[:count] for rows in new))


def _front(labels: Labels, by_params: bool) -> Labels:
    """Return the labels that no other one of their state beats."""
    keys = (-labels.work, labels.params, labels.paid, labels.state)
    order = np.lexsort(keys if by_params else (keys[0], *keys[2:]))
    labels = Labels(*(rows[order] for rows in labels))
    marked = undominated(labels, by_params)
    return Labels(*(rows[marked] for rows in labels))
