"""The best partition whose stages may stand on several devices, and its proof."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.partition import ReplicatedPartition, with_single_devices
from mtpp.solvers.arrays import order_arrays
from mtpp.solvers.best_so_far import Forgetful
from mtpp.solvers.bounds.replica_room import whole_devices
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.device_portfolio import DevicePortfolio
from mtpp.solvers.local_search.initial_partition import first_result
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.threads import Threads
from mtpp.solvers.turns import SearchTurns
from mtpp.solvers.unequal.chains.partition import partition_chain
from mtpp.solvers.unequal.replica_enumeration import replica_problem
from mtpp.solvers.unequal.replica_slicing import ReplicaSlicer

WHOLE = "whole"
"""Found by: the whole graph on all devices that hold it."""

_ORDERS = 8
"""Cut after each turn of the exhaustive search."""

_MOST_ORDERS = 400

_FIRST_EVALUATIONS = 600
"""For a first partition, where cuts of a few orders are none."""

_FIRST_STEPS = 1 << 22
"""Of the first turn of the exhaustive search."""


def partition_replicated(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Search on the instance after merges that hold on devices of every class.

    Merges hold for stages with several devices: no f_j(S) of any device grows.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the memories of the devices; else because none was found.
    """
    if instance.cost.counts_ops:
        return partition_chain(instance, limits)
    return _Turns(reduce_instance(instance, ended=limits.ended), limits).run()


class _Turns(SearchTurns):
    """One search: exhaustive steps, each turn twice as many as before."""

    def __init__(self, reduced: ReducedInstance, limits: SearchLimits) -> None:
        super().__init__(reduced, limits, Prover(reduced, limits, replica_problem(reduced.instance)))
        self._plan: Partition = Partition(np.zeros(self._inner.op_count, dtype=np.int32), self._inner.k)
        self._slicer = ReplicaSlicer.of(self._inner)
        self._ordering = order_arrays(self._inner)
        self._stream = np.random.Generator(np.random.PCG64(limits.seed))
        self._orders_cut = 0

    def run(self) -> SearchResult:
        """Search until nothing better exists, or the limits say so."""
        prover = self._prover
        self._take_whole()
        self._slice()
        if self._best is None:
            self._take_single()
        if self._best is None:
            self._take_any()
        steps = _FIRST_STEPS
        while (stopped := self._stop) is None:
            assert self._best is not None
            before = prover.steps
            upper = self._close(self._best.bottleneck, steps)
            if upper < self._best.bottleneck:
                assert isinstance(prover.found, ReplicatedPartition)
                self._found(prover.found, upper, "downset")
            searched = prover.steps > before
            if self._stop is None and not self._cut_orders() and not searched:
                return self._ended(StopReason.BUDGET)
            steps *= 2
        return self._ended(stopped)

    def _take_whole(self) -> None:
        """Take the whole graph on all devices that hold it, if any does."""
        alone = whole_devices(self._inner)
        if alone is not None:
            nothing = np.zeros(self._inner.op_count, dtype=np.int32)
            self._found(ReplicatedPartition.on(self._inner, nothing, [alone[1]]), alone[0], WHOLE)

    def _slice(self) -> None:
        """Take a good cut of the graph's order, or where there is none of one of a few more."""
        if self._stop is None and not self._inner.peaks_in_order:
            self._limits.observer.phase("orders")
            self._cut(self._inner.order)
            tried = 0
            while self._best is None and tried < _ORDERS and self._limits.stop is None:
                self._cut(kahn_order(self._ordering, self._stream.random(self._inner.op_count)))
                tried += 1

    def _cut_orders(self) -> bool:
        """Cut orders that run the stages of the best plan one after the other; return whether there were any."""
        if self._best is None or self._inner.peaks_in_order or self._orders_cut >= _MOST_ORDERS:
            return False
        self._limits.observer.phase("orders")
        for _ in range(_ORDERS):
            if self._stop is not None:
                break
            stage = self._plan.assignment
            noise = self._stream.random(self._inner.op_count)
            far = 1 + 3 * (self._orders_cut % 3)  # how far an op may leave the place of its stage
            priorities = (int(stage.max()) - stage + far * noise) / self._inner.k
            self._cut(kahn_order(self._ordering, priorities))
            self._orders_cut += 1
        return True

    def _cut(self, order: Int32Array) -> None:
        """Take the best cut of an order, if it is better than what there is."""
        upper = None if self._best is None else self._best.bottleneck
        cut = self._slicer.best(order, self._prover.lower, upper)
        self._spent += 1
        if cut is not None:
            self._found(cut.partition, cut.bottleneck, "slice")

    def _take_single(self) -> None:
        """Take a partition with a device for each stage, as it is found without replicas."""
        inner, free = self._inner, self._inner.machine.free
        part = replace(self._limits, evaluations=min(_FIRST_EVALUATIONS, self._limits.evaluations), keeper=Forgetful())
        try:
            with Threads(self._limits.jobs) as threads:
                if inner.equal_devices:
                    found = first_result(inner, part, threads)
                else:
                    portfolio = DevicePortfolio(inner, part, threads, inner.most_used, free=free)
                    found = portfolio.result(StopReason.BUDGET).placed(inner, free=free)
        except Infeasible:
            return
        self._spent += found.evaluations
        self._found(with_single_devices(inner, found.partition), found.bottleneck, found.found_by)

    def _take_any(self) -> None:
        """Search for any partition that keeps to the memories of the devices."""
        found = self._any_partition()
        assert isinstance(found, ReplicatedPartition)
        self._found(found, replica_problem(self._inner).bottleneck(found), "downset")

    def _found(self, partition: ReplicatedPartition, ticks: int, found_by: str) -> None:
        """Take a partition of the reduced instance."""
        if self._best is None or ticks < self._best.bottleneck:
            lifted, self._plan = self._reduced.lift(partition), partition
            self._best = SearchResult(lifted, ticks, found_by, max(1, self._spent), StopReason.BUDGET)
            self._limits.tell(self._best)
