"""The best partition over devices that differ, and its proof: a portfolio and an exhaustive search in turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.names import CAPACITY
from mtpp.solvers.best_so_far import Lifted
from mtpp.solvers.bounds.capacity.bound import Effort, capacity_bound
from mtpp.solvers.bounds.cheap import CHEAP, cheap_bound
from mtpp.solvers.bounds.device_prefixes import device_prefixes_bound
from mtpp.solvers.bounds.envelope import on_envelope
from mtpp.solvers.bounds.registry import WEAK_SHARE
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.device_portfolio import DevicePortfolio, DeviceResult, search_devices
from mtpp.solvers.local_search.multilevel import LARGE
from mtpp.solvers.orders.device_slicing import DeviceCut
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.relaxation.loop import MOST_OPS, RelaxationLoop
from mtpp.solvers.threads import Threads
from mtpp.solvers.turns import SearchTurns
from mtpp.solvers.unequal.chains.partition import partition_chain
from mtpp.solvers.unequal.neighbours import exhaustive_problem, relaxed_problem

_FIRST_STEPS = 1 << 17
"""Steps of the exhaustive search before the first round of annealing."""

_CAPACITY_LABELS = 1 << 22
"""Sets of ops that the capacity bound looks at: some seconds at most."""

_FIRST_MOVES = 400
"""Moves per op in a run of the first round; each round doubles it."""

_RELAXED = 4
"""Times the steps of a turn of the exhaustive search for relaxations, of which there are several."""

_FEWEST_OPS = 48
"""Of a graph whose relaxations are worth a look."""


def partition_unequal(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Search on the instance after merges that hold on devices of every class.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the memories of the devices; else because none was found.

    Notes
    -----
    Where devices have times of stages the graph is one chain: :mod:`mtpp.solvers.unequal.chains`.

    Exponential in the width of the graph at worst. Graphs of more than 8,000 ops are not searched exhaustively. Without
    a deadline the result depends on the seed and the number of evaluations alone, as long as the memory suffices.
    """
    if instance.cost.counts_ops:
        return partition_chain(instance, limits)
    reduced = reduce_instance(instance, ended=limits.ended)
    if reduced.instance.op_count > LARGE:
        inside = replace(limits, keeper=Lifted(limits.keeper, reduced.lift))
        return _told(reduced, search_devices(reduced.instance, inside, free=instance.machine.free), limits)
    with Threads(limits.jobs) as threads:
        return _Turns(reduced, limits, threads).run()


class _Turns(SearchTurns):
    """One search: exhaustive and local steps, each turn twice as long as the one before."""

    def __init__(self, reduced: ReducedInstance, limits: SearchLimits, threads: Threads) -> None:
        super().__init__(reduced, limits, Prover(reduced, limits, exhaustive_problem(reduced.instance)))
        self._threads = threads
        self._relaxations: RelaxationLoop | None = None
        most, free = self._inner.most_used, self._inner.machine.free
        inside = replace(limits, keeper=Lifted(limits.keeper, reduced.lift))
        try:
            self._portfolio: DevicePortfolio | None = DevicePortfolio(self._inner, inside, threads, most, free=free)
        except Infeasible:
            self._portfolio = None

    def run(self) -> SearchResult:
        """Search until nothing better exists, or the limits say so."""
        prover = self._prover
        steps, moves = _FIRST_STEPS, _FIRST_MOVES * self._inner.op_count
        self._take()
        if self._best is None:
            self._take_any()
        while (stopped := self._stop) is None:
            assert self._best is not None
            before = prover.steps
            upper = self._close(self._best.bottleneck, steps)
            if upper < self._best.bottleneck:
                assert isinstance(prover.found, PlacedPartition)
                self._found(prover.found, upper)
            if self._stop is None and prover.steps == before and self._portfolio is None:
                return self._ended(StopReason.BUDGET)
            if self._stop is None and steps == _FIRST_STEPS:
                self._bound_envelope()
            if self._stop is None:
                self._relax(min(_RELAXED * steps, self._steps_left))
            if self._stop is None and self._portfolio is not None:
                self._anneal(self._portfolio, moves)
                self._take()
            steps, moves = 2 * steps, 2 * moves
        return self._ended(stopped)

    def _take(self) -> None:
        """Take the best of the portfolio, if it is better than what there is."""
        if self._portfolio is None:
            return
        best = self._portfolio.best
        if self._best is None or best.bottleneck < self._best.bottleneck:
            self._best = _told(self._reduced, self._portfolio.result(StopReason.BUDGET), self._limits)

    def _take_any(self) -> None:
        """Search for any partition that keeps to the memories of the devices."""
        found = self._any_partition()
        assert isinstance(found, PlacedPartition)
        self._found(found, bottleneck(self._inner.on(found.devices), found))

    def _found(self, partition: PlacedPartition, ticks: int) -> None:
        """Take a partition that the exhaustive search has found."""
        lifted = self._reduced.lift(partition)
        self._best = SearchResult(lifted, ticks, "downset", max(1, self._spent), StopReason.BUDGET)
        self._limits.tell(self._best)
        if self._portfolio is not None:
            self._portfolio.add(DeviceCut(partition, partition.devices, ticks), "downset")

    def _relax(self, steps: int) -> None:
        """Let bounds and partitions of the graph without some ops help, where ops may be left out."""
        assert self._best is not None
        original, lower, upper = self._reduced.original, self._prover.lower, self._best.bottleneck
        if not _FEWEST_OPS <= original.op_count <= MOST_OPS:
            return
        self._limits.observer.phase("relaxation")
        loop = self._relaxations
        if loop is None:
            loop = RelaxationLoop(self._reduced, lower, upper, self._limits, self._threads, upper, relaxed_problem)
            self._relaxations = loop
        if loop.finished:
            return
        loop.renew(lower, upper, self._limits, self._threads, upper)
        before = loop.steps
        loop.run(steps)
        self._spend(loop.steps - before)
        if loop.bound is not None:
            self._prover.accept(loop.bound)
        if loop.partition is not None:
            self._take_relaxed(loop.partition, loop.upper)

    def _take_relaxed(self, partition: Partition, ticks: int) -> None:
        """Take a partition with ops put back, if it is better than what there is."""
        assert self._best is not None
        assert isinstance(partition, PlacedPartition)
        if ticks >= self._best.bottleneck:
            return
        self._best = SearchResult(partition, ticks, "relaxation", max(1, self._spent), StopReason.BUDGET)
        self._limits.tell(self._best)
        if self._portfolio is not None:
            inner = self._reduced.carry(partition)
            assert isinstance(inner, PlacedPartition)
            least = bottleneck(self._inner.on(inner.devices), inner)
            self._portfolio.add(DeviceCut(inner, inner.devices, least), "relaxation")

    def _bound_envelope(self) -> None:
        """Try the cheap bounds on equal devices with the best figures of any."""
        assert self._best is not None
        original = self._reduced.original
        if not self._limits.cheap_bounds or original.equal_devices:
            return
        self._bound_prefixes()
        self._bound_capacity()
        if self._stop is not None:
            return
        envelope = original.envelope
        stages = np.unique(self._best.partition.assignment, return_inverse=True)[1].astype(np.int32)
        plain = reduce_instance(envelope, ended=self._limits.ended)
        start = plain.carry(Partition.from_stages(envelope, stages))
        upper = bottleneck(plain.instance, start)
        for name in CHEAP:
            if self._stop is None:
                found = cheap_bound(name, plain, start, upper, self._prover.lower, self._limits)
                if found is not None:
                    self._prover.accept(on_envelope(found, original))
                    self._limits.observer.bound(found.value)

    def _bound_prefixes(self) -> None:
        """Look for devices that cannot come first, for the memories of the others do not hold the rest."""
        assert self._best is not None
        limits, original = self._limits, self._reduced.original
        if original.machine.neighbours:
            return
        limits.observer.phase("crossings")
        share = limits.deadline.share(2 * WEAK_SHARE)
        found = device_prefixes_bound(
            original, self._prover.lower, self._best.bottleneck, lambda: share.expired() or limits.ended()
        )
        if found is not None:
            self._prover.accept(found)
            limits.observer.bound(found.value)

    def _bound_capacity(self) -> None:
        """Add up the most work that a stage within some time has on each device."""
        assert self._best is not None
        limits, original = self._limits, self._reduced.original
        limits.observer.phase(CAPACITY)
        share = limits.deadline.share(2 * WEAK_SHARE)
        effort = Effort(lambda: share.expired() or limits.ended(), _CAPACITY_LABELS, limits.memory_bytes)
        found = capacity_bound(original, self._prover.lower, self._best.bottleneck, effort).lower
        if found is not None and found.value > self._prover.lower:
            self._prover.accept(found)
            limits.observer.bound(found.value)


def _told(reduced: ReducedInstance, found: DeviceResult, limits: SearchLimits) -> SearchResult:
    """Return what was found on the reduced instance, and tell of it."""
    inner = found.partition
    if reduced.original.machine.free:
        inner = PlacedPartition.on(reduced.instance, inner.assignment, found.devices)
    partition = reduced.lift(inner)
    result = SearchResult(partition, found.bottleneck, found.found_by, max(1, found.evaluations), found.stopped)
    limits.tell(result)
    return result
