"""A biased random-key genetic algorithm (Gonçalves and Resende, Journal of Heuristics 17, 2011).

Chromosomes are vectors in [0, 1]^n. Each generation keeps the elite, adds mutants (new random chromosomes) and fills up
with children: each gene comes from an elite parent with a fixed probability above one half, else from one outside the
elite. What a chromosome means is the decoder's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Rate = Callable[[FloatArray, Any], NDArray[Any]]
"""Rates chromosomes, shape (p, n): the lower, the better. The second argument is a cutoff, or None: ratings that reach
it may all be given as the dtype's largest value."""

ELITE_SHARE = 0.15
MUTANT_SHARE = 0.15
ELITE_GENE = 0.7
"""Probability that a child takes a gene from its elite parent. All three within the ranges of the authors."""


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
