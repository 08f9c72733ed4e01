"""A first partition, from which searches improve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from mtpp.errors import Infeasible, InputError
from mtpp.host.stop_reason import StopReason
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.stage_cost import StageCost
from mtpp.machine.machine import Machine
from mtpp.names import ENGINE_RULES
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.annealing import HOT, Annealer, Assignment, Start
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.registry import partitioner
from mtpp.solvers.threads import Threads

_ORDERS_BEFORE_BALANCING = 16
_SWEEPS = 500

_MOST_OPS_OF_RULES = 100_000
"""Ops of a graph that the rules of engines are tried on beforehand: one of them looks at it again and again."""

_RUNS = 4


def first_result(instance: Instance, limits: SearchLimits, threads: Threads) -> SearchResult:
    """Return what a :class:`FirstSearch` finds within the limits."""
    return FirstSearch(instance, limits.seed).go_on(limits, threads)


class FirstSearch:
    """Search for a first partition: a cut of the graph's own order, or where that is not to be had another one."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self._instance = instance
        self._slicing = slicing_arrays(instance)
        self._orders = _orders(instance, seed)
        self._tried = self._spent = 0

    def go_on(self, limits: SearchLimits, threads: Threads) -> SearchResult:
        """Go on until a partition keeps to the stage memory, or ``limits.evaluations`` were made from the beginning."""
        instance, observer = self._instance, limits.observer
        observer.phase("first partition")
        while self._tried == 0 or (self._spent < limits.evaluations and limits.stop is None):
            (cut,) = threads.map(lambda order: slice_order(instance, order, arrays=self._slicing), [next(self._orders)])
            self._tried += 1
            self._spent += 1
            observer.evaluated(1)
            if cut is not None:
                found_by = "slice" if self._tried == 1 else "random"
                return SearchResult(cut.partition, cut.bottleneck, found_by, self._spent, StopReason.BUDGET)
            if self._tried == _ORDERS_BEFORE_BALANCING:
                sweeps = min(_SWEEPS, limits.evaluations - self._spent)
                balanced = _balanced_memory(instance, sweeps, limits, threads)
                self._spent += sweeps
                observer.evaluated(sweeps)
                if balanced is not None:
                    cost = stage_costs(instance, balanced).bottleneck
                    return SearchResult(balanced, cost, "anneal", self._spent, StopReason.BUDGET)
        raise none_found(instance, f"{self._tried:,} orders" if self._tried > 1 else "the file's order")


def first_partition(instance: Instance) -> SearchResult | None:
    """Return a cut of the graph's own order into stages of about equal work, for searches that find nothing in time.

    Or with everything in one stage, where that is better. On devices that differ stages have work by the speeds, and
    the rules of engines are tried. None if a stage exceeds the stage memory, which proves nothing about others, or
    devices have times of stages. O(n + pins) for each device.
    """
    if instance.cost.counts_ops:  # not every stage is possible
        return None
    found: list[SearchResult] = []
    for stage in (_work_by_speed(instance), *_in_one_stage(instance)):
        partition = Partition.from_stages(instance, stage)
        costs = stage_costs(instance, partition)
        if keeps_stage_memory(instance, costs):
            found.append(SearchResult(partition, costs.bottleneck, "equal work", 1, StopReason.FINISHED))
    if not instance.equal_devices and instance.op_count <= _MOST_OPS_OF_RULES:
        for rule in ENGINE_RULES:
            with suppress(Infeasible, InputError):
                found.append(partitioner(rule).load()(instance, SearchLimits(evaluations=1)))
    return min(found, key=lambda one: one.bottleneck, default=None)


def _in_one_stage(instance: Instance) -> Iterator[Int32Array]:
    """Yield everything on the first device of each class."""
    class_of = instance.cost.class_of(instance.k).tolist()
    for c in sorted(set(class_of)):
        yield np.full(instance.op_count, class_of.index(c), dtype=np.int32)


def _work_by_speed(instance: Instance) -> Int32Array:
    """Return the stage of each op when the graph's own order is cut into stages that take about as long for their work.

    Where not all devices may be used, those that take longest for everything stay empty.
    """
    work = instance.work[instance.order].astype(np.float64)
    middle = np.cumsum(work) - work / 2
    total = max(1.0, float(work.sum()))
    if instance.equal_devices:
        stages = np.minimum(middle * (instance.k / total), instance.k - 1).astype(np.int32)
    else:
        whole = instance.cost.work.sum(axis=1)[instance.cost.class_of(instance.k)]
        speed = 1 / np.maximum(1.0, whole.astype(np.float64))
        speed[np.argsort(whole, kind="stable")[instance.most_used :]] = 0
        ends = np.cumsum(speed) * (total / speed.sum())
        last = int(np.flatnonzero(speed)[-1])
        stages = np.minimum(np.searchsorted(ends, middle, side="right"), last).astype(np.int32)
    stage = np.empty(instance.op_count, dtype=np.int32)
    stage[instance.order] = stages
    return stage


def has_one_order(instance: Instance) -> bool:
    """Tell whether the graph has but one topological order, so that its best cut is the best partition."""
    offsets, successors = instance.successors
    position = np.empty(instance.op_count, dtype=np.int64)
    position[instance.order] = np.arange(instance.op_count)
    tails = np.repeat(np.arange(instance.op_count), np.diff(offsets))
    return bool(np.count_nonzero(position[successors] == position[tails] + 1) == instance.op_count - 1)


def _orders(instance: Instance, seed: int) -> Iterator[Int32Array]:
    """Yield the graph's own order, then random ones for ever."""
    yield instance.order
    stream = np.random.Generator(np.random.PCG64(seed))
    ordering = order_arrays(instance)
    while True:
        yield kahn_order(ordering, stream.random(instance.op_count))


def _balanced_memory(instance: Instance, sweeps: int, limits: SearchLimits, threads: Threads) -> Partition | None:
    """Anneal the same problem with parameters for work and no transfer: its bottleneck is the fullest stage.

    Takes *sweeps* evaluations of n proposed moves each.
    """
    endless = replace(instance.device, fast_memory_bytes=None, memory_bytes=None)
    nothing = np.zeros((1, instance.tensor_count), dtype=np.int64)
    machine = Machine.uniform(instance.machine.count, endless)
    held = instance.cost.own_bytes + instance.cost.limited.shared_out(instance.op_count)
    twin = replace(instance, cost=StageCost(machine, held[np.newaxis], nothing, held))
    start = slice_order(twin, twin.order)
    assert start is not None  # without limits on memory there is always a segmentation
    annealer = Annealer(twin, instance.k, threads, limits.seed, limits.ended)
    starts = [Start(start.partition.assignment, HOT)] * _RUNS
    found, _ = annealer.round(starts, sweeps * instance.op_count // _RUNS)
    found.append(Assignment(start.bottleneck, start.partition.assignment))
    for assignment in sorted(found, key=lambda one: one.bottleneck):
        partition = Partition.from_stages(instance, assignment.stage)
        if keeps_stage_memory(instance, stage_costs(instance, partition)):
            return partition
    return None
