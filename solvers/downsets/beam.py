"""Beam search over downsets: partitions of graphs that have too many downsets to try them all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.solvers.downsets.enumeration import DownsetEnumeration, DownsetProblem
from mtpp.solvers.downsets.kernels.downset_layout import DEPTH, LAST_BASE, NEXT, TRAIL

_FIRST_WIDTH = 8
"""Downsets of each number of stages that go on, at first; twice as many each time."""

_STEPS_PER_WIDTH = 125
"""Steps for the stages after one downset, per downset that goes on; see :func:`search_downsets`."""

_PIECE = 1 << 17
"""Steps between two looks at the clock."""

_GAP = 1000
"""Limits closer to each other than one part in so many are not told apart."""


class BeamSearch:
    """Better and better partitions of one instance, by beams that widen.

    Downsets that the same number of stages leads to are reached together, and only some of them go on: those with the
    most work, less what crosses from them to later stages. The limit of the stages' cost is found by halving; then the
    beam gets twice as wide. It proves nothing.

    Parameters
    ----------
    memory_bytes
        Of the downsets kept, at most.
    ended
        Tells whether the work has to end.

    Attributes
    ----------
    steps
        Steps made.
    finished
        Whether a wider beam finds no more: nothing was left out of it.

    Notes
    -----
    Beam search, Lowerre (1976), over the states of the exhaustive search in
    :mod:`mtpp.solvers.downsets.kernels.downsets`, whose rules hold here as well.
    """

    def __init__(self, problem: DownsetProblem, memory_bytes: int, ended: Callable[[], bool]) -> None:
        self.steps = 0
        self.finished = False
        self._problem = problem
        self._memory_bytes = memory_bytes
        self._ended = ended
        self._width = _FIRST_WIDTH
        self._failed: int | None = None  # the highest limit at which the present width found nothing
        self._narrowed = False
        self._open: _Beam | None = None

    def improve(self, lower: int, upper: int, steps: int) -> Partition | None:
        """Return the best partition below *upper* ticks found with so many more steps; *lower* is known of all.

        A search that the steps do not suffice for goes on at the next call.
        """
        best = None
        upper = min(upper, self._problem.instance.most_ticks + 1)
        last_step = self.steps + steps
        while not self.finished and lower < upper and self.steps < last_step and not self._ended():
            beam = self._open
            if beam is None or not lower <= beam.limit < upper:
                beam = self._next(lower, upper)
            before = beam.steps
            beam.run_beam(last_step - self.steps, self._ended)
            self.steps += beam.steps - before
            self._open = beam if beam.state == "open" else None
            if beam.state == "found":
                best = beam.partition()
                upper = bottleneck(self._problem.instance, best)
            elif beam.state != "open":
                self._failed = beam.limit
                self._narrowed |= beam.narrowed or beam.state == "full"
            self.finished = not self._narrowed and self._failed is not None and self._failed >= upper - 1
        return best

    def _next(self, lower: int, upper: int) -> _Beam:
        """Begin the next search: at a limit between those that fail and the best, if there is room, else wider."""
        failed = lower - 1 if self._failed is None else max(lower - 1, self._failed)
        if upper - failed <= max(1, upper // _GAP if self._narrowed else 0):
            self._width, self._narrowed, self._failed = 2 * self._width, False, None
            failed = lower - 1
        beam = _Beam(self._problem, (failed + upper) // 2, self._memory_bytes, self._width)
        self.steps += beam.steps
        return beam


class _Beam(DownsetEnumeration):
    """One search, with one limit and one width.

    Attributes
    ----------
    narrowed
        Whether anything was left out.
    """

    def __init__(self, problem: DownsetProblem, limit: int, memory_bytes: int, width: int) -> None:
        super().__init__(problem, limit, memory_bytes)
        if self.state == "open" and problem.instance.cost.shares_memory:
            self._begin_whole()
        self.narrowed = False
        self._width = width
        self._waiting = deque([0])  # downsets of one number of stages that go on, ascending
        self._reached = 1  # downsets of that number or fewer
        self._left = _STEPS_PER_WIDTH * width

    def run_beam(self, steps: int, ended: Callable[[], bool]) -> None:
        """Go on for about that many steps, or until the search is decided or *ended* says so."""
        last_step = self.steps + steps
        while self.state == "open" and self.steps < last_step and not ended():
            downset, before = self._waiting[0], self.steps
            self._registers[NEXT] = self._registers[LAST_BASE] = downset
            self.run(min(self._left, last_step - before, _PIECE))
            self._left -= self.steps - before
            if self.state != "open":
                return
            if self.next == downset:
                if self._left > 0:
                    continue
                self._registers[DEPTH] = self._registers[TRAIL] = 0  # enough stages were tried after it
                self.narrowed = True
            self._waiting.popleft()
            self._left = _STEPS_PER_WIDTH * self._width
            if not self._waiting:
                self._narrow()

    def _narrow(self) -> None:
        """Let the most promising of the downsets just reached go on."""
        store, first, end = self._store, self._reached, self.count
        settled = store.work[first:end] - store.crossing[first:end]
        best = np.argsort(-settled, kind="stable")[: self._width]
        self._waiting.extend(sorted((first + best).tolist()))
        self.narrowed |= end - first > self._width
        self._reached = end
        if first == end:
            self.state = "ended"
