"""``random``: many random topological orders, each cut optimally, the best kept (random-T)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.device_slicing import DeviceSlicer
from mtpp.solvers.orders.kernels.random_orders import best_random_order
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.orders.neighbour_slicing import slicer_of
from mtpp.solvers.orders.slicing import segment_below, slice_order
from mtpp.solvers.threads import Threads

_BATCHES_PER_ROUND = 8
_BATCH_OPS = 1 << 14
_BATCH_ORDERS = 64


class _Batch(NamedTuple):
    number: int
    orders: int


class _Found(NamedTuple):
    bottleneck: int
    order: Int32Array


def partition(instance: Instance, limits: SearchLimits, start: SearchResult | None = None) -> SearchResult:
    """Return the best of T = ``limits.evaluations`` random orders, each cut optimally.

    Parameters
    ----------
    start
        A partition to improve on; by default the first random order that can be cut is, whatever it costs.

    Notes
    -----
    Weights x ∈ [0, 1]^n are drawn independently, Kahn's algorithm with priorities x gives the order, slicing cuts it
    (Archer et al. 2024, section 4.2 and C.1). Orders are drawn in batches with a random stream each, and the cutoff
    moves only between rounds of a fixed number of batches, so the result is the same for any number of threads.
    O(n·log n + n·w + pins) per order that does not improve, O(n·w·k) more for one that does.
    """
    best = start or _first_cut(instance, limits)
    observer = limits.observer
    limits.tell(best)
    evaluations = best.evaluations
    search = _batch_search(instance, limits.seed)
    stopped = StopReason.OPTIMAL if best.bottleneck <= limits.lower_bound else None
    rounds = _rounds(instance.op_count, limits.evaluations - evaluations)
    with Threads(limits.jobs) as threads:
        while stopped is None and (batches := next(rounds, None)):
            results = _run_round(threads, search, batches, best.bottleneck, limits)
            done = sum(batch.orders for batch, _ in results)
            evaluations += done
            observer.evaluated(done)
            better = [found for _, found in results if found is not None]
            if better:
                leader = min(better, key=lambda found: found.bottleneck)  # the first batch wins a tie
                cut = segment_below(instance, leader.order, leader.bottleneck + 1)
                best = SearchResult(cut, leader.bottleneck, "random", evaluations, StopReason.BUDGET)
                limits.tell(best)
            stopped = StopReason.OPTIMAL if best.bottleneck <= limits.lower_bound else limits.stop
    return SearchResult(best.partition, best.bottleneck, best.found_by, evaluations, stopped or StopReason.BUDGET)


def _first_cut(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Cut random orders until one cut keeps to the stage memory: the first one, where there is no such limit."""
    stream = np.random.Generator(np.random.PCG64(limits.seed))
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    tried = 0
    while tried < max(1, limits.evaluations) and (tried == 0 or limits.stop is None):
        tried += 1
        found = slice_order(instance, kahn_order(ordering, stream.random(instance.op_count)), arrays=slicing)
        limits.observer.evaluated(1)
        if found is not None:
            return SearchResult(found.partition, found.bottleneck, "random", tried, StopReason.BUDGET)
    raise none_found(instance, f"{tried} random orders" if tried > 1 else "one random order")


def _rounds(op_count: int, orders: int) -> Iterator[list[_Batch]]:
    """Split *orders* into rounds of batches; a batch is a few milliseconds of work."""
    per_batch = max(1, min(_BATCH_ORDERS, _BATCH_OPS // op_count))
    number = 0
    while orders > 0:
        batches: list[_Batch] = []
        while orders > 0 and len(batches) < _BATCHES_PER_ROUND:
            size = min(per_batch, orders)
            batches.append(_Batch(number, size))
            orders -= size
            number += 1
        yield batches


def _batch_search(instance: Instance, seed: int) -> Callable[[_Batch, int], _Found | None]:
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    slicer = None if instance.equal_devices else slicer_of(instance, free=instance.machine.free)
    stages = min(instance.k, instance.op_count)  # more could only stay empty

    def search(batch: _Batch, cutoff: int) -> _Found | None:
        stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(batch.number,))))
        priorities = stream.random((batch.orders, instance.op_count))
        if slicer is not None:
            return _best_on_devices(slicer, (kahn_order(ordering, row) for row in priorities), cutoff)
        order = np.empty(instance.op_count, dtype=np.int32)
        bottleneck = int(best_random_order(priorities, stages, cutoff, ordering, slicing, order))
        return None if bottleneck == INFEASIBLE else _Found(bottleneck, order)

    return search


def _best_on_devices(slicer: DeviceSlicer, orders: Iterable[Int32Array], cutoff: int) -> _Found | None:
    """Return the first of the best orders below *cutoff*, cut on devices that differ."""
    best: _Found | None = None
    for order in orders:
        cut = slicer.best(order, cutoff if best is None else best.bottleneck)
        if cut is not None:
            best = _Found(cut.bottleneck, order)
    return best


def _run_round(
    threads: Threads,
    search: Callable[[_Batch, int], _Found | None],
    batches: list[_Batch],
    cutoff: int,
    limits: SearchLimits,
) -> list[tuple[_Batch, _Found | None]]:
    """Run the batches and return those that began in time, in order, with what they found."""

    def timed(batch: _Batch) -> tuple[_Batch, _Found | None] | None:
        return None if limits.stop else (batch, search(batch, cutoff))

    return [result for result in threads.map(timed, batches) if result is not None]
