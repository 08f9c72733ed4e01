"""Chromosomes of node priorities rated in threads: by the best cut of their order, or by its linear arrangement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.orders.evolution import FloatArray, Rate
from mtpp.solvers.orders.kernels.decoders import arrangement_fitness, cut_fitness
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.threads import Threads

_OPS_PER_CHUNK = 1 << 12


def cut_rating(instance: Instance, threads: Threads, stopped: Callable[[], bool]) -> Rate:
    """Return the rating by bottleneck in ticks, int64: Algorithm 2 of Archer et al. (2024).

    Once *stopped* says so, all but the first chromosome are rated as useless.
    """
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    stages = min(instance.k, instance.op_count)  # more could only stay empty
    floor = simple_bound(instance).value
    ceiling = instance.most_ticks + 1

    def rate(chromosomes: FloatArray, cutoff: Any) -> NDArray[Any]:
        fitness = np.full(len(chromosomes), INFEASIBLE, dtype=np.int64)
        limit = INFEASIBLE if cutoff is None else int(cutoff)

        def chunk(rows: slice) -> None:
            if rows.start == 0 or not stopped():
                cut_fitness(chromosomes[rows], stages, floor, ceiling, limit, ordering, slicing, fitness[rows])

        threads.map(chunk, _chunks(chromosomes))
        return fitness

    return rate


def arrangement_rating(instance: Instance, threads: Threads, stopped: Callable[[], bool], *, weighted: bool) -> Rate:
    """Return the rating by h(π), float64: C.1 of Archer et al. (2024), mla-weighted or mla.

    An edge joins a producer and each of its consumers. Its weight is 1, or io(u, v): the transfer, in ticks, of the
    tensors that go that way.
    """
    ordering = order_arrays(instance)
    tails, heads, weights = arrangement_edges(instance, weighted=weighted)

    def rate(chromosomes: FloatArray, cutoff: Any) -> NDArray[Any]:
        fitness = np.full(len(chromosomes), np.inf)
        limit = np.inf if cutoff is None else float(cutoff)

        def chunk(rows: slice) -> None:
            if rows.start == 0 or not stopped():
                arrangement_fitness(chromosomes[rows], limit, ordering, tails, heads, weights, fitness[rows])

        threads.map(chunk, _chunks(chromosomes))
        return fitness

    return rate


def arrangement_edges(instance: Instance, *, weighted: bool) -> tuple[Int32Array, Int32Array, FloatArray]:
    """Return tails and heads of the distinct edges, int32, and their weights, float64."""
    sources, targets = instance.edges
    pairs, place = np.unique(sources.astype(np.int64) * instance.op_count + targets, return_inverse=True)
    weights = np.ones(len(pairs))
    if weighted:
        moved = np.repeat(instance.transfer, np.diff(instance.pin_offsets) - 1).astype(np.float64)
        weights[:] = np.bincount(place, weights=moved, minlength=len(pairs))
    tails = (pairs // instance.op_count).astype(np.int32)
    return tails, (pairs % instance.op_count).astype(np.int32), weights


def order_of(instance: Instance, chromosome: FloatArray) -> Int32Array:
    """Return the topological order that a chromosome stands for, int32, shape (n,)."""
    order: Int32Array = kahn_order(order_arrays(instance), np.ascontiguousarray(chromosome))
    return order


def _chunks(chromosomes: FloatArray) -> list[slice]:
    count, genes = chromosomes.shape
    size = max(1, _OPS_PER_CHUNK // max(1, genes))
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]
