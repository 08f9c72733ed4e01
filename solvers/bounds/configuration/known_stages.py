"""Stages within a limit that have been met: what weights must at least keep to, whatever the families."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.kernels.full_stages import BitArray, Paths, grow_stages
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_network import Int8Array, work_and_cut
from mtpp.solvers.threads import Threads

_SPREADS = (0.0, 0.3, 0.8, 0.8)
"""How much chance weighs in, one growth of stages after the other."""

_STEPS = 2.5e8
"""Elementary steps that a growth may take, about."""

_THINNED = 3
"""Times that a stage is thinned out and grown again."""

_FULLEST, _AROUND = 32, 8
"""Stages known that others are grown from in each growth, and times that each is begun with where it was just met."""

_BEYOND = 1.1
"""Of the limit: what stages cost at most that others are grown from."""

_AT_A_TIME, _TASK_STEPS = 16, 2e7
"""Starts of one task of a thread at most, and elementary steps about, between two looks at the clock."""

_MOST_KEPT, _MOST_PLACES = 12_000, 8_000_000
"""Stages, and ops of them all; beyond, the emptier half goes."""


@dataclass(eq=False)
class KnownStages:
    """Stages of an instance that have been met, each once.

    Attributes
    ----------
    sets
        Whose they are; its limit is theirs.
    threads
        Share the growth among them.
    inside
        1 for the ops of each stage, int8, shape (stages, n).
    cost, rest
        Of each: work and what it cuts, and work less what it cuts; int64.
    """

    sets: StageSets
    threads: Threads
    inside: Int8Array = field(init=False)
    cost: Int64Array = field(init=False)
    rest: Int64Array = field(init=False)
    _met: set[bytes] = field(default_factory=set)
    _growths: int = 0
    _tasks: int = 0

    def __post_init__(self) -> None:
        """Know none yet, and find the paths and tensors of each op."""
        instance = self.sets.instance
        n = instance.op_count
        self.inside = np.empty((0, n), dtype=np.int8)
        self.cost = self.rest = np.empty(0, dtype=np.int64)
        offsets, tensors = instance.op_tensors
        pinned = np.zeros((instance.tensor_count, n), dtype=np.int8)
        pinned[instance.tensor_of_pin, instance.pins] = 1
        network = self.sets.network
        own, before, after = _bits(np.eye(n, dtype=np.int8)), _bits(network.reached), _bits(network.reaches)
        self._paths = Paths(
            np.concatenate([own, _bits(pinned)]), _and_any(before, instance), _and_any(after, instance),
            offsets, tensors,
        )  # fmt: skip

    def within(self) -> Int8Array:
        """Return the stages within the limit of the sets."""
        return self.inside[(self.cost <= self.sets.most) & (self.rest >= self.sets.least)]

    def fullest(self, weight: FloatArray) -> float:
        """Return what the fullest stage within the limit holds of some weights."""
        return float((self.within() @ weight).max(initial=0.0))

    def grow(
        self, weight: FloatArray, above: float, guide: FloatArray | None = None, around: Int8Array | None = None
    ) -> int:
        """Meet stages that hold more than *above* of some weights; return how many of them are new.

        Parameters
        ----------
        guide
            Weights that they are grown by, if by others.
        around
            Convex sets to grow them from, whatever these cost; None: single ops, and the fullest stages known.
        """
        affordable = int(_STEPS / self._start_steps)
        if around is None:
            starts = self._starts(weight, max(4, affordable))
        else:
            starts = np.repeat(around, _AROUND, axis=0)[: max(len(around), affordable)]
        size = max(1, min(_AT_A_TIME, int(_TASK_STEPS / self._start_steps)))
        inside, held, bits = np.empty(starts.shape, dtype=np.int8), np.empty(len(starts)), _bits(starts)
        spread, first = _SPREADS[self._growths % len(_SPREADS)], self._tasks
        by = weight if guide is None else guide

        def grow_some(task: int) -> None:
            self.sets.go_on()
            some = slice(task * size, (task + 1) * size)
            grow_stages(
                self.sets.network, self._paths, bits[some], by, self.sets.most, self.sets.least, spread, _THINNED,
                first + task, inside[some], held[some],
            )  # fmt: skip

        tasks = -(-len(starts) // size)
        self._growths, self._tasks = self._growths + 1, self._tasks + tasks
        self.threads.map(grow_some, range(tasks))
        return self.add(inside[(held >= 0) & (inside @ weight > above)])

    @property
    def _start_steps(self) -> float:
        """Elementary steps for each start, about."""
        instance = self.sets.instance
        n = instance.op_count
        tried = min(n, 256) * (n / 64 + 4.0 * len(instance.pins) / n)
        return float((n / instance.k + 1) * tried * (1 + _THINNED))

    def _starts(self, weight: FloatArray, count: int) -> Int8Array:
        """Return so many single ops at most, of no known stage first, and as many of the fullest stages at most.

        Those stages cost little more than one may.
        """
        random, n = np.random.default_rng(self._growths), self.sets.instance.op_count
        roots = random.permutation(n)
        if count < n:
            held = self.within().sum(axis=0) > 0
            roots = roots[np.argsort(held[roots], kind="stable")][:count]
        near = self.inside[self.cost <= _BEYOND * self.sets.most]
        fullest = near[np.argsort(-(near @ weight), kind="stable")[: min(_FULLEST, count)]]
        return np.concatenate([np.eye(n, dtype=np.int8)[roots], fullest])

    def add(self, stages: Int8Array) -> int:
        """Take convex sets of ops, at any cost; return how many of them are new."""
        new = []
        for row in stages[stages.any(axis=1)]:
            key = np.packbits(row).tobytes()
            if key not in self._met:
                self._met.add(key)
                new.append(row)
        if not new:
            return 0
        inside = np.array(new, dtype=np.int8)
        nowhere = np.zeros(self.sets.instance.tensor_count, dtype=np.int8)
        sums = np.array([work_and_cut(self.sets.network, row, nowhere) for row in inside], dtype=np.int64)
        work, cut = sums[:, 0], sums[:, 1]
        self.inside = np.concatenate([self.inside, inside])
        self.cost = np.concatenate([self.cost, work + cut])
        self.rest = np.concatenate([self.rest, work - cut])
        return len(new)

    def keep(self, weight: FloatArray) -> None:
        """Forget the stages that hold least of some weights, if they are too many."""
        most = min(_MOST_KEPT, _MOST_PLACES // max(1, len(weight)))
        if len(self.cost) > most:
            fullest = np.argsort(-(self.inside @ weight), kind="stable")[: most // 2]
            self.inside, self.cost, self.rest = self.inside[fullest], self.cost[fullest], self.rest[fullest]
            self._met = {np.packbits(row).tobytes() for row in self.inside}


def rows_of(stages: Int8Array) -> list[tuple[Int32Array, FloatArray]]:
    """Return the ops of each stage with a coefficient of 1, as linear programmes take them."""
    found = []
    for row in stages:
        ops = np.flatnonzero(row).astype(np.int32)
        found.append((ops, np.ones(len(ops))))
    return found


def _and_any(ops: BitArray, instance: Instance) -> BitArray:
    """Return a set for each op, and after them for each tensor all that is in the sets of the ops that touch it."""
    return np.concatenate([ops, np.bitwise_or.reduceat(ops[instance.pins], instance.pin_offsets[:-1], axis=0)])


def _bits(sets: Int8Array) -> BitArray:
    """Return sets of ops as bits, 64 of them a word."""
    n = sets.shape[1]
    padded = np.zeros((len(sets), -(-n // 64) * 64), dtype=np.uint8)
    padded[:, :n] = sets
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
