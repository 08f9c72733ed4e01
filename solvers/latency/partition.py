"""The best partition for a goal in which latency counts: cuts of orders and exhaustive search in turns, with proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.goal import Goal
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.arrays import order_arrays
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.latency.chains import cut_order
from mtpp.solvers.latency.infeasible import no_plan
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.device_portfolio import DevicePortfolio
from mtpp.solvers.local_search.multilevel import LARGE
from mtpp.solvers.orders.device_labels import label_rules
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.threads import Threads
from mtpp.solvers.turns import SearchTurns
from mtpp.solvers.unequal.chains.goals import chain_for_goal
from mtpp.solvers.unequal.chains.labels import TooManyLabels
from mtpp.solvers.unequal.latency import latency_problem

_FIRST_STEPS = 1 << 19
"""Steps of the exhaustive search before the first round of annealing."""

_FIRST_MOVES = 200
"""Moves per op in a run of the first round; each round doubles it."""

_ONE_DEVICE = "one device"


def partition_for(
    instance: Instance,
    goal: Goal,
    limits: SearchLimits,
    lower: LowerBound | None = None,
    starts: Sequence[tuple[PlacedPartition, str]] = (),
) -> SearchResult:
    """Search for the best partition for a goal; ``bottleneck`` of the result is its objective.

    Parameters
    ----------
    lower
        On the objective, known before; ``limits.lower_bound`` is its value.
    starts
        Partitions at hand, whose stages in pipeline order stand on the devices that they name, and what found them.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the limits; else because none was found.

    Notes
    -----
    Where devices have times of stages the graph is one chain: :mod:`mtpp.solvers.unequal.chains.goals`.

    Moves of :mod:`mtpp.solvers.reduction.reduction` make no stage more expensive on its device, so neither the sum of
    all. Exponential in the width of the graph at worst. Without a deadline the result depends on the seed and the
    number of evaluations alone, as long as the memory suffices.
    """
    if instance.cost.counts_ops:
        return _of_chain(instance, goal, limits, lower)
    reduced = reduce_instance(instance, ended=limits.ended)
    with Threads(limits.jobs) as threads:
        return _Turns(reduced, goal, limits, threads).run(lower, starts)


def _of_chain(instance: Instance, goal: Goal, limits: SearchLimits, lower: LowerBound | None) -> SearchResult:
    """Search for the best plan of a chain on devices with times of stages."""
    try:
        found = chain_for_goal(instance, goal, limits, lower)
    except TooManyLabels:
        raise no_plan(instance, goal, proven=False) from None
    if found is None:
        raise no_plan(instance, goal, proven=True)
    return found


class _Turns(SearchTurns):
    """One search: exhaustive and local steps, each turn twice as long as the one before."""

    def __init__(self, reduced: ReducedInstance, goal: Goal, limits: SearchLimits, threads: Threads) -> None:
        self._goal, self._threads = goal, threads
        self._problem = latency_problem(reduced.instance, goal)
        super().__init__(reduced, limits, Prover(reduced, limits, self._problem))
        self._searched = (
            self._inner.op_count <= LARGE
            and label_rules(self._inner, self._inner.most_used, free=self._inner.machine.free) is not None
        )
        self._inside: Partition | None = None
        self._stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(limits.seed, spawn_key=(3,))))

    def run(self, lower: LowerBound | None, starts: Sequence[tuple[PlacedPartition, str]]) -> SearchResult:
        """Search until nothing better exists, or the limits say so."""
        prover = self._prover
        if lower is not None:
            prover.bound = lower
        self._begin(starts)
        steps, moves = _FIRST_STEPS, _FIRST_MOVES * self._inner.op_count
        portfolio: DevicePortfolio | None = None
        while (stopped := self._stop) is None:
            before = prover.steps
            if self._searched:
                self._search(steps)
            worth = prover.steps > before
            if self._stop is not None:
                continue
            if portfolio is None:
                portfolio = self._portfolio()
            if portfolio is not None:
                self._anneal(portfolio, moves)
                self._take(portfolio)
            elif not worth:
                return self._ended(StopReason.BUDGET)
            steps, moves = 2 * steps, 2 * moves
        return self._ended(stopped)

    @property
    def _upper(self) -> int:
        """Objective of the best partition, or more than that of any."""
        return self._problem.most_ticks + 1 if self._best is None else self._best.bottleneck

    @property
    def _stop(self) -> StopReason | None:
        stopped = super()._stop
        if stopped != StopReason.OPTIMAL and self._prover.lower > self._problem.most_ticks:
            raise no_plan(self._reduced.original, self._goal, proven=True)
        return stopped

    def _begin(self, starts: Sequence[tuple[PlacedPartition, str]]) -> None:
        """Try all ops on one device, the partitions at hand, and cuts of the file's order."""
        self._limits.observer.phase("first partition")
        classes = self._inner.cost.class_of(self._inner.k)
        for device in np.unique(classes, return_index=True)[1].tolist():
            self._offer(self._on_one(device), _ONE_DEVICE)
        for one, found_by in starts:
            self._offer(PlacedPartition.on(self._inner, self._reduced.carry(one).assignment, one.devices), found_by)
        if self._stop is None:
            self._cut(self._inner.order)

    def _on_one(self, device: int) -> PlacedPartition:
        """Return all ops on one device."""
        inner = self._inner
        if not inner.machine.free:
            return PlacedPartition.on(inner, np.full(inner.op_count, device, dtype=np.int32), range(inner.k))
        devices = (device, *(i for i in range(inner.k) if i != device))
        return PlacedPartition.on(inner, np.zeros(inner.op_count, dtype=np.int32), devices)

    def _search(self, steps: int) -> None:
        """Go on with the exhaustive search."""
        prover, upper = self._prover, self._close(self._upper, steps)
        if prover.found is not None and upper < self._upper:
            assert isinstance(prover.found, PlacedPartition)
            self._offer(prover.found, "downset")

    def _portfolio(self) -> DevicePortfolio | None:
        """Return a pool of partitions with small bottlenecks, None if none keeps to the memory limits."""
        inside = SearchLimits(
            evaluations=UNLIMITED,
            seed=self._limits.seed,
            deadline=self._limits.deadline,
            interrupted=self._limits.interrupted,
            jobs=self._limits.jobs,
        )
        inner = self._inner
        try:
            return DevicePortfolio(inner, inside, self._threads, inner.most_used, free=inner.machine.free)
        except Infeasible:
            return None

    def _take(self, portfolio: DevicePortfolio) -> None:
        """Take partitions of the pool, and the best cuts of orders that run their stages one after the other."""
        self._limits.observer.phase("orders")
        inner = self._inner
        ordering = order_arrays(inner)
        stages = [one.stage for one in portfolio.pool]
        for one in portfolio.pool:
            if inner.machine.free:
                left = [i for i in range(inner.k) if i not in set(one.seats)]
                self._offer(PlacedPartition.on(inner, one.stage, (*one.seats, *left)), one.found_by)
            else:
                seated = np.array(one.seats, dtype=np.int32)[one.stage]
                self._offer(PlacedPartition.on(inner, seated, range(inner.k)), one.found_by)
        if self._inside is not None:
            stages.insert(0, self._inside.assignment)
        for stage in stages:
            if self._stop is not None:
                return
            noise = self._stream.random(inner.op_count)
            last = int(stage.max())
            self._cut(kahn_order(ordering, (noise + last - stage) / (last + 1)))

    def _cut(self, order: Int32Array) -> None:
        """Cut an order as well as it can be."""
        limits = replace(self._limits, lower_bound=self._prover.lower)
        found = cut_order(self._inner, self._goal, order, self._upper, limits)
        self._spent += 1
        self._limits.observer.evaluated(1)
        if found is not None:
            self._offer(found[0], "slice")

    def _offer(self, partition: PlacedPartition, found_by: str) -> None:
        """Take a partition of the reduced instance, if it keeps to the limits and is better than the best."""
        placed = self._inner.on(partition.devices)
        costs = stage_costs(placed, partition)
        value = self._goal.value(costs)
        if value >= self._upper or not self._goal.keeps(costs) or not keeps_stage_memory(placed, costs):
            return
        lifted: Partition = self._reduced.lift(partition)
        if not self._inner.machine.free:
            lifted = Partition(lifted.assignment, lifted.k)
        self._inside = partition
        self._best = SearchResult(lifted, value, found_by, max(1, self._spent), StopReason.BUDGET)
        self._limits.tell(self._best)

    def _ended(self, stopped: StopReason) -> SearchResult:
        if self._best is None:
            raise no_plan(self._reduced.original, self._goal, proven=False)
        return super()._ended(stopped)
