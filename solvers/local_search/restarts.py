"""Rounds of annealing runs, several at a time, each followed by polishing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.local_search.annealing import Schedule, run_schedule
from mtpp.solvers.local_search.assignment import AssignmentState, assignment_state, move_arrays
from mtpp.solvers.local_search.kernels.moves import start_from
from mtpp.solvers.local_search.kernels.polishing import polish
from mtpp.solvers.step_times import move_s
from mtpp.solvers.threads import Threads

_POLISHING = 4
_LONGEST_POLISHING_S = 0.5


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
        self._moves = move_arrays(instance)
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
        looks = min(max(len(self._moves.work), proposals // _POLISHING), round(_LONGEST_POLISHING_S / self._move_s))
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
