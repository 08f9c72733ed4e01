"""Annealing runs in chunks short enough to be interrupted, and rounds of them, each followed by polishing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import ceil
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays, assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.annealing import anneal
from mtpp.solvers.local_search.kernels.moves import start_from
from mtpp.solvers.local_search.kernels.polishing import polish
from mtpp.solvers.step_times import move_s
from mtpp.solvers.threads import Threads

_CHUNKS = 16
_LONGEST_CHUNK_S = 0.02

_POLISHING = 4
_LONGEST_POLISHING_S = 0.5


class Schedule(NamedTuple):
    """Where temperature and sharpness begin and end; both move geometrically.

    Attributes
    ----------
    first_temperature, last_temperature
        In units of the objective's slope at the reference; see ``kernels/annealing.py``.
    first_sharpness, last_sharpness
        γ of the objective.
    """

    first_temperature: float
    last_temperature: float
    first_sharpness: float
    last_sharpness: float

    def between(self, begin: float, end: float) -> Schedule:
        """Return the part of the schedule from fraction *begin* to fraction *end*."""
        heat = self.last_temperature / self.first_temperature
        edge = self.last_sharpness / self.first_sharpness
        return Schedule(
            self.first_temperature * heat**begin,
            self.first_temperature * heat**end,
            self.first_sharpness * edge**begin,
            self.first_sharpness * edge**end,
        )


HOT = Schedule(0.02, 0.0003, 2.0, 16.0)
"""Forgets where it began. Measured on random graphs of 50 to 200 ops and on networks up to 1,500, k = 2 … 32."""

SHARP = Schedule(0.02, 0.0002, 5.0, 24.0)
"""As hot, and cares for the slowest stage from the beginning: long runs end better on wide networks, worse on random
graphs."""

WARM = Schedule(0.01, 0.0003, 2.0, 16.0)
"""Keeps some of what it began with."""

COOL = Schedule(0.003, 0.0003, 4.0, 16.0)
"""Keeps the shape of the partition that it began with."""


def run_schedule(
    schedule: Schedule,
    proposals: int,
    reference: int,
    move_s: float,
    moves: MoveArrays,
    state: AssignmentState,
    stopped: Callable[[], bool],
) -> int:
    """Anneal *state* along *schedule*; return the number of moves proposed, fewer than asked for if stopped.

    Parameters
    ----------
    reference
        Ticks of a typical slow stage, above 0.
    move_s
        Seconds that a move takes, about: :func:`~mtpp.solvers.step_times.move_s`.
    stopped
        Asked before each chunk of some hundredths of a second.
    """
    chunks = max(_CHUNKS, ceil(proposals / max(1, round(_LONGEST_CHUNK_S / move_s))))
    done = 0
    for chunk in range(chunks):
        if stopped():
            break
        part = schedule.between(chunk / chunks, (chunk + 1) / chunks)
        share = proposals * (chunk + 1) // chunks - done
        anneal(
            share,
            float(reference),
            part.first_sharpness,
            part.first_temperature,
            part.last_temperature,
            moves,
            state,
        )
        done += share
    return done


class Start(NamedTuple):
    """Where a run begins, and how hot.

    Attributes
    ----------
    stage
        Stage of each op, int32, shape (n,).
    """

    stage: Int32Array
    schedule: Schedule


class Assignment(NamedTuple):
    """A stage for each op, int32, shape (n,), and the bottleneck in ticks."""

    bottleneck: int
    stage: Int32Array


def best_of(found: Iterable[Assignment], count: int) -> list[Assignment]:
    """Return so many of some assignments at most, the best first, each once."""
    distinct = {one.stage.tobytes(): one for one in found}
    return sorted(distinct.values(), key=lambda one: one.bottleneck)[:count]


class Annealer:
    """Anneals an instance from many starts, in threads; what it finds depends on the seed and the calls alone.

    Memory: O(n + m·k) for each of the runs that threads are at together, however many a round has.

    Attributes
    ----------
    threads
        Of the next round.
    """

    def __init__(
        self, instance: Instance, stage_count: int, threads: Threads, seed: int, stopped: Callable[[], bool]
    ) -> None:
        self._moves = move_arrays(instance, stage_count)
        self._move_s = move_s(instance)
        self._stage_count = stage_count
        self.threads = threads
        self._seeds = np.random.SeedSequence(seed)
        self._stopped = stopped
        self._idle: list[AssignmentState] = []

    def round(self, starts: Sequence[Start], proposals: int) -> tuple[list[Assignment], int]:
        """Run every start for that many proposed moves; return the best of each, and the moves proposed in all.

        Polishing looks at a quarter as many ops at most, and at no more than take half a second or so, as nothing ends
        it before; it is not counted.
        """
        looks = min(
            max(len(self._moves.op_tensor_offsets) - 1, proposals // _POLISHING),
            round(_LONGEST_POLISHING_S / self._move_s),
        )
        seeds = [int(child.generate_state(1, np.uint64)[0]) for child in self._seeds.spawn(len(starts))]

        def run(task: tuple[Start, int]) -> tuple[Assignment, int]:
            start, seed = task
            state = self._state()
            state.stream[0] = seed
            start_from(start.stage, self._moves, state)
            reference = max(1, int(state.best[0]))
            done = run_schedule(start.schedule, proposals, reference, self._move_s, self._moves, state, self._stopped)
            if not self._stopped():
                polish(looks, self._moves, state)
            found = Assignment(int(state.best[0]), state.best_stage.copy())
            self._idle.append(state)
            return found, done

        results = self.threads.map(run, list(zip(starts, seeds, strict=True)))
        return [found for found, _ in results], sum(done for _, done in results)

    def _state(self) -> AssignmentState:
        """Return a state that no run is at; nothing of what was in it matters to :func:`start_from`."""
        with suppress(IndexError):
            return self._idle.pop()
        return assignment_state(self._moves, self._stage_count, 0)
