"""Search for a schedule and split points together: cells by their bounds, each with warm-ups and splits annealed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.baselines import even_split
from mtpp.solvers.planners.pfeife.candidate import Candidate, Scheduled
from mtpp.solvers.planners.pfeife.families import ScheduleCell
from mtpp.solvers.planners.pfeife.kernels.split_annealing import Cooling
from mtpp.solvers.planners.pfeife.path_game import GameResult, PathGame
from mtpp.solvers.planners.pfeife.path_network import PathNetwork, family_network, schedule_network
from mtpp.solvers.planners.pfeife.schedule_arrays import arrays_of
from mtpp.solvers.threads import Threads
from mtpp.training.pfeife.problem import SplitProblem

MOST_EVALUATIONS = 200_000
"""Splits under all schedules that are gone through one by one rather than searched."""

_SHORT, _MEDIUM, _FINAL = 3_000, 30_000, 30_000
"""Steps of annealing: of each beginning, of the best of these, and of the best split under its schedule."""

_PASSES = 800
"""Passes of a schedule with which so many steps are taken; with more of them there are fewer steps, by the root."""

_KEPT = 4
"""Candidates that a race leaves for longer annealing."""

_SEEDS = 2

_RUNS = 6
"""Of annealing from each beginning, where the schedule is given: its splits have many local optima."""

MOST_PLAYED = 100_000
"""Passes of schedules that the game of paths against splits is played on."""

_BEAM, _MOST_ROUNDS = 10, 1_000
"""Splits of a beam, and rounds of improving it."""

_HOT, _COLD = 0.01, 0.0002
"""Temperatures as parts of the iteration, of long annealing; races begin warmer."""


@dataclass(eq=False)
class CellBound:
    """A cell with the game on its family: what no schedule of it is below, and split points to begin with.

    There is no game where the search had to end before it, or there are too many passes.
    """

    cell: ScheduleCell
    network: PathNetwork | None
    game: GameResult | None
    holds: bool

    @property
    def value(self) -> float:
        """Ticks that no schedule of the cell is below; 0 where the game leaves something out, or was not played."""
        return self.game.value if self.game is not None and self.holds else 0.0


class SplitSearch:
    """Search of one planning problem.

    Parameters
    ----------
    limits
        Threads, and when to end; the result depends on neither, unless the search was ended.
    """

    def __init__(self, problem: SplitProblem, limits: Limits) -> None:
        self._problem, self._limits = problem, limits
        self._direct = problem.rules.transport == "direct"
        times = problem.times
        self._times = replace(times, handover=np.zeros_like(times.handover)) if self._direct else times
        sums = problem.times.forward[0] + problem.times.backward[0]
        self._sums: Int64Array = sums

    @property
    def ended(self) -> bool:
        """Whether the search has to end now."""
        return self._limits.ended()

    @staticmethod
    def _cooling(most: int, scheduled: Scheduled, hottest: float, seed: int) -> Cooling:
        passes = len(scheduled.arrays.table)
        steps = most if passes <= _PASSES else max(1, int(most * sqrt(_PASSES / passes)))
        return Cooling(steps, hottest, _COLD, seed)

    def even(self, stages: int) -> Int64Array:
        """Return the split whose stages take equal parts of the time of a device, as near as whole ops allow."""
        return even_split(self._sums, stages)

    def cell_bounds(self, threads: Threads) -> list[CellBound]:
        """Return every cell with its bound, the lowest first."""
        problem = self._problem
        cells = [ScheduleCell(problem, loops, batch) for loops, batch in problem.cells]
        found = [one for one in threads.map(self._bounded, cells) if one is not None]
        return sorted(found, key=lambda one: one.value)

    def _bounded(self, cell: ScheduleCell) -> CellBound | None:
        network: PathNetwork | None = None
        if self._limits.ended() or 2 * cell.most * self._problem.devices > MOST_PLAYED:
            lost = cell.fixed is not None and cell.scheduled(cell.fixed) is None
            return None if lost else CellBound(cell, None, None, holds=False)
        if cell.fixed is None:
            network = family_network(self._problem.devices, self._problem.micro_batches, cell.loops, cell.loop_batch)
        else:
            scheduled = cell.scheduled(cell.fixed)
            network = None if scheduled is None else schedule_network(scheduled.arrays)
        if network is None:
            return None
        return CellBound(cell, network, self.game(network), not self._direct)

    def game(self, network: PathNetwork, *splits: Int64Array) -> GameResult:
        """Return the outcome of the game on a network."""
        game = PathGame(network, self._times, [self.even(network.stages), *splits])
        return game.play(self._limits.ended)

    @property
    def few(self) -> bool:
        """True if all splits under the given schedule can be tried in the time."""
        schedule = self._problem.rules.schedule
        assert schedule is not None
        return not self.ended and self.splits(schedule[1].stages) <= MOST_EVALUATIONS

    def _few_in(self, cell: ScheduleCell) -> bool:
        """Tell whether all splits under all schedules of a cell can be gone through, and there is time."""
        splits = self.splits(cell.loops * self._problem.devices)
        if self.ended or splits > MOST_EVALUATIONS:
            return False
        if splits * cell.at_most <= MOST_EVALUATIONS:
            return True
        most = MOST_EVALUATIONS // splits
        return sum(1 for _, _ in zip(cell.every(), range(most + 1), strict=False)) <= most

    def best_of_all(self, schedules: Sequence[Scheduled]) -> Candidate | None:
        """Return the best split within the memory under any of some schedules, by going through all of them."""
        best: Candidate | None = None
        for one in schedules:
            found = one.best_of_all(2**62 if best is None else best.ticks)
            best = found or best
            if self._limits.ended():
                break
        return best

    def splits(self, stages: int) -> int:
        """Return how many splits into so many stages there are."""
        return comb(self._problem.line.costs.ops - 1, stages - 1)

    def within_memory(self, schedules: Iterable[Scheduled | None]) -> Candidate | None:
        """Return the best split that fits under some schedules, of those with few enough splits to go through all."""
        left = MOST_EVALUATIONS
        found = []
        for one in schedules:
            count = 0 if one is None else self.splits(one.arrays.stages)
            if one is not None and count <= left:
                left -= count
                found.append(one)
        return self.best_of_all(found)

    def quick(self, loops: int, loop_batch: int) -> Candidate:
        """Return a split found in little time: of the schedules of a cell, or of that which is given."""
        problem = self._problem
        if problem.rules.schedule is not None:
            arrays = arrays_of(problem.rules.schedule[1])
            assert arrays is not None
            scheduled = Scheduled(problem, arrays, None)
            return scheduled.annealed(self.even(arrays.stages), self._cooling(_SHORT, scheduled, 2 * _HOT, 0))
        cell = ScheduleCell(problem, loops, loop_batch)
        made = [one for warm_up in cell.beginnings() if (one := cell.scheduled(warm_up)) is not None]
        return min(
            (self._together(cell, one, self.even(one.arrays.stages), 0, _SHORT, 2 * _HOT) for one in made),
            key=lambda one: (one.rank, one.key),
        )

    def best_of_cells(self, cells: Sequence[CellBound], threads: Threads) -> Candidate | None:
        """Return the best candidate found of some cells, the lowest bound first; None if nothing fits.

        Each cell is searched as if there were no other, so that cells more never lead to a slower plan. Those whose
        bound is no better than what is known are left out.
        """
        best: Candidate | None = None
        for bounded in cells:
            if best is not None and (bounded.value >= best.ticks or self.ended):
                break
            found = self._best_in(bounded, threads)
            if found is not None and (best is None or (found.rank, found.key) < (best.rank, best.key)):
                best = found
        return best

    def _best_in(self, bounded: CellBound, threads: Threads) -> Candidate | None:
        """Return the best candidate found of a cell that fits into memory."""
        cell = bounded.cell
        if self._problem.rules.search == "beam":
            best = self.beam([bounded], threads)
        elif self._few_in(cell):
            every = [made for warm_up in cell.every() if (made := cell.scheduled(warm_up)) is not None]
            best = self.best_of_all(every)
        else:
            best = self.raced(bounded, threads)
        return self.within_memory([cell.leanest]) if best is None or best.excess else best

    def raced(self, bounded: CellBound, threads: Threads) -> Candidate | None:
        """Return the best candidate found of a cell: split points and warm-ups annealed, the best for longer."""
        cell = bounded.cell
        jobs = [
            (cell, scheduled, start, seed, _SHORT, 2 * _HOT)
            for seed, warm_up in enumerate(cell.beginnings())
            if (scheduled := cell.scheduled(warm_up)) is not None
            for start in self._starts(bounded)
        ]
        found = threads.map(lambda job: self._together(*job), jobs)
        if not found:
            return None
        found = sorted(found, key=lambda one: (one.rank, one.key))
        long = [
            (cell, one.scheduled, one.split, 100 * i + seed, _MEDIUM, _HOT)
            for i, one in enumerate(found[:_KEPT])
            for seed in range(_SEEDS)
        ]
        again = threads.map(lambda job: self._together(*job), long)
        best = min([*again, *found], key=lambda one: (one.rank, one.key))
        return self._long([best], threads)

    def _starts(self, bounded: CellBound) -> list[Int64Array]:
        """Return split points to begin with: those of the game, if there was one, and even ones."""
        even = self.even(bounded.cell.loops * self._problem.devices)
        return [even] if bounded.game is None else [bounded.game.split, even]

    def _together(
        self, cell: ScheduleCell, scheduled: Scheduled, start: Int64Array, seed: int, steps: int, hottest: float
    ) -> Candidate:
        if self._limits.ended():
            return scheduled.of(start)
        return cell.annealed(scheduled, start, self._cooling(steps, scheduled, hottest, seed))

    def beam(self, cells: Sequence[CellBound], threads: Threads) -> Candidate | None:
        """Return the best candidate of beam searches from even splits, of the warm-ups to begin with.

        Notes
        -----
        Jhoo et al. (2025), algorithm 1, for comparison.
        """
        schedules = [
            scheduled
            for bounded in cells
            for warm_up in bounded.cell.beginnings()
            if (scheduled := bounded.cell.scheduled(warm_up)) is not None
        ]
        return self.beam_of(schedules, threads)

    def beam_of(self, schedules: Sequence[Scheduled], threads: Threads) -> Candidate | None:
        """Return the best candidate of beam searches from even splits under some schedules."""

        def searched(scheduled: Scheduled) -> Candidate | None:
            even = self.even(scheduled.arrays.stages)
            if self._limits.ended():
                start = scheduled.of(even)
                return start if start.excess == 0 else None
            return scheduled.beam(even, _BEAM, _MOST_ROUNDS, self._limits.ended)

        found = [one for one in threads.map(searched, schedules) if one is not None]
        return min(found, key=lambda one: (one.rank, one.key), default=None)

    def annealed(self, scheduled: Scheduled, threads: Threads) -> Candidate:
        """Return the best split found under one schedule."""
        starts = [self.even(scheduled.arrays.stages)]
        if len(scheduled.arrays.table) <= MOST_PLAYED:
            starts.append(self.game(schedule_network(scheduled.arrays)).split)
        jobs = [(start, 10 * i + seed) for i, start in enumerate(starts) for seed in range(_RUNS)]

        def run(job: tuple[Int64Array, int]) -> Candidate:
            start, seed = job
            if self._limits.ended():
                return scheduled.of(start)
            hottest = (1 + 2 * (seed % 2)) * _HOT
            return scheduled.annealed(start, self._cooling(_MEDIUM // 2, scheduled, hottest, seed))

        return self._long(sorted(threads.map(run, jobs), key=lambda one: (one.rank, one.key)), threads)

    def _long(self, found: list[Candidate], threads: Threads) -> Candidate:
        """Return the best of some candidates and of longer annealing of the first of them."""

        def run(job: tuple[Candidate, int]) -> Candidate:
            one, seed = job
            return one if self._limits.ended() else one.annealed(self._cooling(_FINAL, one.scheduled, _HOT, seed))

        again = threads.map(run, [(one, seed) for one in found[:2] for seed in range(_SEEDS)])
        return min([*found, *again], key=lambda one: (one.rank, one.key))
