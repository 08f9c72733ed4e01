"""Annealing and evolved orders in turns: each takes up what the other has found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil
from time import monotonic

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.annealing import COOL, HOT, WARM, Annealer, Assignment, Schedule, Start, best_of
from mtpp.solvers.local_search.coarse_start import coarse_start
from mtpp.solvers.local_search.initial_partition import has_one_order
from mtpp.solvers.orders.evolution import (
    FloatArray,
    Population,
    cut_rating,
    elite_size,
    first_population,
    next_population,
    order_of,
)
from mtpp.solvers.orders.slicing import segment_below
from mtpp.solvers.step_times import move_s, order_s
from mtpp.solvers.threads import Threads

ORDER_SHARE = 0.15
"""Of the time of each round, for evolved orders, in searches that anneal and evolve."""

_RUNS = 8
_POOL = 8
_POPULATION = 32
_SCHEDULES = (HOT, WARM, COOL, WARM)
_FIRST_SCHEDULES = (HOT, WARM, HOT, COOL)
"""Of the first round after contractions; without one all runs are hot."""

_FIRST_SWEEPS = 800
"""Moves per op in a run of the first round, where the budget allows; each round doubles it."""

_ROUNDS_AIMED_AT = 7
_LONGEST_SWEEPS = 10_000
"""Moves per op in a run at most: from there on more runs gain more than longer ones."""

_SPARE = 0.8
"""Share of what is left that the annealing of a round may take: orders take some more."""

_FIRST_TIME_SHARE = 0.25
"""Of the time left, for the first round, as far as its time can be told in advance."""

_COARSE_SHARE = 0.25
"""Of a time limit, for contractions of a graph, before its rounds."""

_TOO_SHORT_S = 0.02

_FIRST_PROOF = 0.02
"""Of the budget, for a proof before the first round; without a budget as much as for :data:`_FIRST_SWEEPS`."""

_PROOF_SHARES = (0.05, 0.3)
"""Of the evaluations of a round, for a proof after it: least and most, halved where it came to nothing."""


class Portfolio:
    """A pool of good assignments of one instance, improved in rounds.

    Where a clock ends the search it begins with assignments of contractions. A round anneals from some of the pool, hot
    runs and cool ones side by side, polishes the results, and cuts the orders that the best assignments imply, with
    random orders inside the stages. With *order_share* above 0 those orders then evolve as in ``brkga`` for that share
    of the time. A *prover* of the same instance is given a share of the evaluations before the first round and after
    each, to end the search where the best is proven optimal. *schedules* of the runs of all rounds, in turns, may be
    given.

    Without a deadline the result depends on the seed and the number of evaluations alone.
    """

    def __init__(
        self,
        instance: Instance,
        start: SearchResult,
        limits: SearchLimits,
        threads: Threads,
        *,
        order_share: float,
        prover: Prover | None = None,
        schedules: Sequence[Schedule] | None = None,
    ) -> None:
        self._instance = instance
        self._schedules = schedules
        self._prover = prover
        self._proof_share = _PROOF_SHARES[1]
        self._limits = limits
        self._order_share = order_share
        # Only where a clock ends the search may its result depend on the number of threads.
        self._runs = _RUNS if limits.deadline.limit_s is None else max(_RUNS, limits.jobs)
        self._stages = min(instance.k, instance.op_count)
        self._stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(limits.seed, spawn_key=(1,))))
        self._rate = cut_rating(instance, threads, limits.ended)
        self._annealer = Annealer(instance, self._stages, threads, limits.seed, limits.ended)
        self._only_one = self._stages == 1 or has_one_order(instance)
        self._population: Population | None = None
        self._coarse = False  # whether the pool has assignments of contractions
        self.pool = [Assignment(start.bottleneck, _dense(start.partition, self._stages))]
        self.found_by = start.found_by
        self.evaluations = start.evaluations
        limits.keeper.offer(start.bottleneck, start.found_by, lambda: start.partition)

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do."""
        return self._ended() is not None

    @property
    def best(self) -> Assignment:
        """The best assignment so far."""
        return self.pool[0]

    def add(self, result: SearchResult) -> None:
        """Take in a partition that another search has found, with the evaluations it took."""
        cost = bottleneck(self._instance, result.partition)
        self._offer([Assignment(cost, _dense(result.partition, self._stages))], result.found_by)
        self.evaluations += result.evaluations

    def prove_first(self) -> None:
        """Let the prover have a small share of the budget: graphs that are chains of blocks need no more."""
        if self._only_one:  # nothing else is to be done
            self._prove(self._left())
        else:
            unlimited = self._limits.evaluations >= UNLIMITED
            self._prove(_FIRST_SWEEPS if unlimited else ceil(_FIRST_PROOF * self._left()))

    def improve(self) -> SearchResult:
        """Run rounds until the lower bound, the budget or the deadline is reached."""
        limits = self._limits
        self._start_coarse()
        length = self._first_length()
        seconds_per_move: float | None = None
        number = 0
        while (stopped := self._ended()) is None:
            length = min(length, self._affordable())
            if seconds_per_move is not None and limits.deadline.limit_s is not None:
                fitting = int(limits.deadline.remaining_s() / seconds_per_move)
                if fitting < 2 * length:  # one more round, not one and a stump
                    length = max(1, min(fitting, self._affordable()))
                if limits.deadline.remaining_s() < _TOO_SHORT_S:
                    stopped = StopReason.TIME_LIMIT
                    break
            begin = monotonic()
            before = self.evaluations
            self._anneal(number, length)
            if self._ended() is None and self._left() > 1:
                self._cut(length)
            if self._ended() is None:
                self._prove(ceil(self._proof_share * (self.evaluations - before)))
            seconds_per_move = max(monotonic() - begin, 1e-9) / length  # above 0 on the coarsest of clocks
            length = min(2 * length, _LONGEST_SWEEPS * self._instance.op_count)
            number += 1
        best = self.pool[0]
        partition = Partition.from_stages(self._instance, best.stage)
        return SearchResult(partition, best.bottleneck, self.found_by, self.evaluations, stopped)

    def _start_coarse(self) -> None:
        """Take in assignments of contractions, where a clock ends the search: the result may depend on it there."""
        limits = self._limits
        if limits.deadline.limit_s is None or limits.evaluations < UNLIMITED or self._ended() is not None:
            return
        part = replace(limits, deadline=limits.deadline.share(_COARSE_SHARE), lower_bound=self._lower)
        limits.observer.phase("contract")
        for found, proposals in coarse_start(self._instance, self._stages, part, self._annealer.threads):
            self._coarse = True
            self.spend(ceil(proposals / self._instance.op_count))
            self._offer(found, "anneal")

    def _ended(self) -> StopReason | None:
        if self.pool[0].bottleneck <= self._lower:
            return StopReason.OPTIMAL
        if self._only_one:
            return StopReason.FINISHED
        if self.evaluations >= self._limits.evaluations:
            return StopReason.BUDGET
        return self._limits.stop

    @property
    def _lower(self) -> int:
        return self._limits.lower_bound if self._prover is None else self._prover.lower

    def _left(self) -> int:
        return self._limits.evaluations - self.evaluations

    def _first_length(self) -> int:
        """Return the moves of a run in the first round."""
        limits = self._limits
        n = self._instance.op_count
        length = _FIRST_SWEEPS * n
        if limits.evaluations < UNLIMITED:
            length = min(length, self._left() * n // (self._runs * _ROUNDS_AIMED_AT))
        if limits.deadline.limit_s is not None:
            seconds_per_move = move_s(self._instance) * ceil(self._runs / limits.jobs)
            length = min(length, int(_FIRST_TIME_SHARE * limits.deadline.remaining_s() / seconds_per_move))
        return max(1, length)

    def _affordable(self) -> int:
        """Return the moves of a run that the evaluations left allow."""
        return max(
            1, int(_SPARE * min(self._left(), self._runs * _LONGEST_SWEEPS) * self._instance.op_count / self._runs)
        )

    def _offer(self, found: Iterable[Assignment], by: str) -> None:
        """Take assignments into the pool, the best first, each once."""
        best = self.pool[0].bottleneck
        self.pool = best_of([*self.pool, *found], _POOL)
        if self.pool[0].bottleneck < best:
            self.found_by = by
            self._limits.observer.incumbent(self.pool[0].bottleneck)
            self._keep(self.pool[0])

    def _keep(self, best: Assignment) -> None:
        keeper, instance = self._limits.keeper, self._instance
        keeper.offer(best.bottleneck, self.found_by, lambda: Partition.from_stages(instance, best.stage))

    def _prove(self, evaluations: int) -> None:
        """Let the prover work for about as many evaluations."""
        prover, upper = self._prover, self.pool[0].bottleneck
        evaluations = min(evaluations, self._left())
        if prover is None or evaluations < 1 or prover.exhausted(upper) or self._limits.stop:
            return
        self._limits.observer.phase("downset")
        steps, lower = prover.steps, prover.lower
        better = prover.close(upper, evaluations * self._instance.op_count)
        self.spend(min(evaluations, ceil((prover.steps - steps) / self._instance.op_count)))
        gained = better < upper or prover.lower > lower
        self._proof_share = _PROOF_SHARES[1] if gained else max(_PROOF_SHARES[0], self._proof_share / 2)
        if better < upper:
            assert prover.found is not None
            self._offer([Assignment(better, _dense(prover.found, self._stages))], "downset")

    def spend(self, evaluations: int) -> None:
        """Count evaluations."""
        self.evaluations += evaluations
        self._limits.observer.evaluated(evaluations)

    def _anneal(self, number: int, length: int) -> None:
        self._limits.observer.phase("anneal")
        schedules = self._schedules
        if schedules is None:
            schedules = _SCHEDULES if number > 0 else _FIRST_SCHEDULES if self._coarse else (HOT,)
        starts = [
            Start(self.pool[run % len(self.pool)].stage, schedules[run % len(schedules)]) for run in range(self._runs)
        ]
        found, proposals = self._annealer.round(starts, length)
        self.spend(min(self._left(), ceil(proposals / self._instance.op_count)))
        self._offer(found, "anneal")

    def _cut(self, length: int) -> None:
        """Cut the orders that the pool implies, and let them evolve."""
        self._limits.observer.phase("orders")
        n = self._instance.op_count
        size = min(_POPULATION, self._left())
        seeds = self._implied(max(1, size // 2))
        # The order of an assignment can be cut at no more than what the assignment costs.
        known = None if len(seeds) < elite_size(size) else self.pool[-1].bottleneck + 1
        if self._population is not None:
            seeds = np.concatenate([seeds, self._population.chromosomes[: elite_size(_POPULATION)]])
        if not self._order_share:
            seeds = seeds[: min(_POOL, self._left())]
            size = len(seeds)
        before = self._rate.rated
        population = first_population(size, n, self._stream, self._rate, seeds, known)
        self.spend(self._rate.rated - before)
        order_moves = order_s(self._instance) / move_s(self._instance)
        orders = int(self._order_share * self._runs * length / order_moves) - size
        while orders > 0 and self._ended() is None:
            before = self._rate.rated
            population, made = next_population(population, self._stream, self._rate, min(orders, self._left()))
            self.spend(self._rate.rated - before)
            orders -= made
        self._population = population
        best = int(population.fitness[0])
        if best < self.pool[-1].bottleneck:
            cut = segment_below(self._instance, order_of(self._instance, population.best), best + 1)
            self._offer([Assignment(best, cut.assignment)], "brkga" if self._order_share else "slice")

    def _implied(self, count: int) -> FloatArray:
        """Return *count* chromosomes whose orders run the pool's stages one after the other."""
        noise = self._stream.random((count, self._instance.op_count))
        for i in range(count):
            noise[i] += self._stages - 1 - self.pool[i % len(self.pool)].stage
        return noise / self._stages


def _dense(partition: Partition, stages: int) -> np.ndarray:
    """Return the assignment with stages below *stages*: there are no more busy ones than ops."""
    if int(partition.assignment.max()) < stages:
        return partition.assignment.copy()
    _, dense = np.unique(partition.assignment, return_inverse=True)
    return dense.astype(np.int32)
