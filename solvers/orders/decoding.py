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
from mtpp.solvers.orders.evolution import FloatArray
from mtpp.solvers.orders.kernels.decoders import arrangement_fitness, cut_fitness
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.threads import Threads

_OPS_PER_CHUNK = 1 << 12


class Rating:
    """A rating of chromosomes in threads; once it is told to stop, all but the first are rated as useless.

    Parameters
    ----------
    rate_rows
        Given chromosomes, a cutoff or None, and the array that receives their ratings.
    useless
        The largest rating, of the dtype of all.
    stopped
        Tells whether to stop.

    Attributes
    ----------
    rated
        Chromosomes rated so far, without those that came too late.
    """

    def __init__(
        self,
        rate_rows: Callable[[FloatArray, Any, NDArray[Any]], None],
        useless: np.int64 | np.float64,
        threads: Threads,
        stopped: Callable[[], bool],
    ) -> None:
        self._rate_rows = rate_rows
        self._useless = useless
        self._threads = threads
        self._stopped = stopped
        self.rated = 0

    def __call__(self, chromosomes: FloatArray, cutoff: Any) -> NDArray[Any]:
        """Return the rating of each row; see :data:`~mtpp.solvers.orders.evolution.Rate`."""
        fitness = np.full(len(chromosomes), self._useless)

        def rate_chunk(rows: slice) -> int:
            if rows.start > 0 and self._stopped():
                return 0
            self._rate_rows(chromosomes[rows], cutoff, fitness[rows])
            return len(fitness[rows])

        self.rated += sum(self._threads.map(rate_chunk, _chunks(chromosomes)))
        return fitness


def cut_rating(instance: Instance, threads: Threads, stopped: Callable[[], bool]) -> Rating:
    """Return the rating by bottleneck in ticks, int64: Algorithm 2 of Archer et al. (2024)."""
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    stages = min(instance.k, instance.op_count)  # more could only stay empty
    floor = simple_bound(instance).value
    ceiling = instance.most_ticks + 1

    def rate_rows(chromosomes: FloatArray, cutoff: Any, fitness: NDArray[Any]) -> None:
        limit = INFEASIBLE if cutoff is None else int(cutoff)
        cut_fitness(chromosomes, stages, floor, ceiling, limit, ordering, slicing, fitness)

    return Rating(rate_rows, np.int64(INFEASIBLE), threads, stopped)


def arrangement_rating(instance: Instance, threads: Threads, stopped: Callable[[], bool], *, weighted: bool) -> Rating:
    """Return the rating by h(π), float64: C.1 of Archer et al. (2024), mla-weighted or mla.

    An edge joins a producer and each of its consumers. Its weight is 1, or io(u, v): the transfer, in ticks, of the
    tensors that go that way.
    """
    ordering = order_arrays(instance)
    tails, heads, weights = arrangement_edges(instance, weighted=weighted)

    def rate_rows(chromosomes: FloatArray, cutoff: Any, fitness: NDArray[Any]) -> None:
        limit = np.inf if cutoff is None else float(cutoff)
        arrangement_fitness(chromosomes, limit, ordering, tails, heads, weights, fitness)

    return Rating(rate_rows, np.float64(np.inf), threads, stopped)


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
