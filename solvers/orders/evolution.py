"""A biased random-key genetic algorithm (Gonçalves and Resende, Journal of Heuristics 17, 2011).

Chromosomes are vectors in [0, 1]^n. Each generation keeps the elite, adds mutants (new random chromosomes) and fills up
with children: each gene comes from an elite parent with a fixed probability above one half, else from one outside the
elite. What a chromosome means is the decoder's affair: here the best cut of the order of its priorities, or its linear
arrangement, rated in threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.solvers.arrays import order_arrays, slicing_arrays
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.orders.kernels.decoders import arrangement_fitness, cut_fitness
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE
from mtpp.solvers.orders.kernels.topological import kahn_order
from mtpp.solvers.orders.neighbour_slicing import slicer_of
from mtpp.solvers.threads import Threads

FloatArray = NDArray[np.float64]
Rate = Callable[[FloatArray, Any], NDArray[Any]]
"""Rates chromosomes, shape (p, n): the lower, the better. The second argument is a cutoff, or None: ratings that reach
it may all be given as the dtype's largest value."""

ELITE_SHARE = 0.15
MUTANT_SHARE = 0.15
ELITE_GENE = 0.7
"""Probability that a child takes a gene from its elite parent. All three within the ranges of the authors."""

_OPS_PER_CHUNK = 1 << 12


class Population(NamedTuple):
    """Chromosomes, the elite first and sorted.

    Attributes
    ----------
    chromosomes
        float64, shape (p, n).
    fitness
        Ratings of the elite, shape (e,).
    """

    chromosomes: FloatArray
    fitness: NDArray[Any]

    @property
    def best(self) -> FloatArray:
        """The best chromosome, shape (n,)."""
        return np.asarray(self.chromosomes[0])


def elite_size(size: int) -> int:
    """Return the number of elite chromosomes in a population of *size*."""
    return max(1, round(ELITE_SHARE * size))


def first_population(
    size: int,
    genes: int,
    stream: np.random.Generator,
    rate: Rate,
    seeds: FloatArray | None = None,
    cutoff: Any = None,
) -> Population:
    """Rate *seeds*, shape (s, genes), and random chromosomes to make up a population.

    Ratings at or above *cutoff* may be inexact; enough chromosomes must be known to rate below it.
    """
    seeds = np.empty((0, genes)) if seeds is None else seeds[:size]
    chromosomes = np.concatenate([seeds, stream.random((size - len(seeds), genes))])
    elite = elite_size(size)
    # The others have to be told apart only from the worst of the first ones.
    fitness = rate(chromosomes[:elite], cutoff)
    fitness = np.concatenate([fitness, rate(chromosomes[elite:], fitness.max())])
    return _ranked(chromosomes, fitness, elite)


def next_population(
    population: Population, stream: np.random.Generator, rate: Rate, most: int
) -> tuple[Population, int]:
    """Return the next generation and the number of new chromosomes that were to be rated, at most *most* (above 0).

    A new chromosome matters only if it enters the elite, so it is rated up to the worst of the elite; the search is
    the same as with full ratings.
    """
    chromosomes, fitness = population
    size, genes = chromosomes.shape
    elite = len(fitness)
    mutants = round(MUTANT_SHARE * size) if size > 2 else 0
    children = size - elite - mutants
    better = chromosomes[stream.integers(0, elite, children)]
    worse = chromosomes[stream.integers(min(elite, size - 1), size, children)]
    fresh = np.concatenate(
        [np.where(stream.random((children, genes)) < ELITE_GENE, better, worse), stream.random((mutants, genes))]
    )[:most]
    rated = rate(fresh, fitness[-1])
    everyone = np.concatenate([chromosomes[:elite], fresh, chromosomes[elite + len(fresh) :]])
    worst = np.full(size - elite - len(fresh), _largest(rated.dtype), dtype=rated.dtype)
    return _ranked(everyone, np.concatenate([fitness, rated, worst]), elite), len(fresh)


def _ranked(chromosomes: FloatArray, fitness: NDArray[Any], elite: int) -> Population:
    """Move the elite to the front; of equals the first stays first, and the others keep their order."""
    first = np.argsort(fitness, kind="stable")[:elite]
    others = np.ones(len(fitness), dtype=bool)
    others[first] = False
    return Population(np.concatenate([chromosomes[first], chromosomes[others]]), fitness[first])


def _largest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


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
    if not instance.equal_devices:
        return _device_cut_rating(instance, threads, stopped)
    ordering, slicing = order_arrays(instance), slicing_arrays(instance)
    stages = min(instance.k, instance.op_count)  # more could only stay empty
    floor = simple_bound(instance).value
    ceiling = instance.most_ticks + 1

    def rate_rows(chromosomes: FloatArray, cutoff: Any, fitness: NDArray[Any]) -> None:
        limit = INFEASIBLE if cutoff is None else int(cutoff)
        cut_fitness(chromosomes, stages, floor, ceiling, limit, ordering, slicing, fitness)

    return Rating(rate_rows, np.int64(INFEASIBLE), threads, stopped)


def _device_cut_rating(instance: Instance, threads: Threads, stopped: Callable[[], bool]) -> Rating:
    """Return the rating by bottleneck in ticks on devices that differ."""
    ordering, slicer = order_arrays(instance), slicer_of(instance, free=instance.machine.free)

    def rate_rows(chromosomes: FloatArray, cutoff: Any, fitness: NDArray[Any]) -> None:
        for i, chromosome in enumerate(chromosomes):
            cut = slicer.best(kahn_order(ordering, chromosome), None if cutoff is None else int(cutoff))
            fitness[i] = INFEASIBLE if cut is None else cut.bottleneck

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
