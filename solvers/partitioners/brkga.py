"""``brkga``: node priorities evolved by a biased random-key genetic algorithm, each order cut optimally."""

from __future__ import annotations

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.orders.evolution import Population, cut_rating, first_population, next_population, order_of
from mtpp.solvers.orders.kernels.slicing import INFEASIBLE
from mtpp.solvers.orders.slicing import segment_below
from mtpp.solvers.threads import Threads

POPULATION = 100
GENERATIONS = 100


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Return the best cut met while evolving ``limits.population`` orders for ``limits.generations`` generations.

    Notes
    -----
    BrkgaSortAndSliceDecoder (Archer et al. 2024, Algorithm 2) in the algorithm of Gonçalves and Resende (2011). By
    default 100 chromosomes and, without a limit on evaluations or time, 100 generations: the paper's brkga-10000. The
    elite need not be rated again, so that is 8,515 evaluations. Each costs O(n·log n + n·w + pins), and O(n·w·k) more
    if it enters the elite. Memory O(p·n).
    """
    size = limits.population or POPULATION
    observer = limits.observer
    stream = np.random.Generator(np.random.PCG64(limits.seed))
    with Threads(limits.jobs) as threads:
        rate = cut_rating(instance, threads, limits.ended)
        population = first_population(min(size, limits.evaluations), instance.op_count, stream, rate)
        evaluations = rate.rated
        best = int(population.fitness[0])
        observer.evaluated(evaluations)
        if best < INFEASIBLE:
            _tell(instance, population, best, limits)
        stopped = _ended(best, evaluations, limits)
        for _ in range(generations_of(limits) - 1):
            if stopped:
                break
            population, _ = next_population(population, stream, rate, limits.evaluations - evaluations)
            observer.evaluated(rate.rated - evaluations)
            evaluations = rate.rated
            if population.fitness[0] < best:
                best = int(population.fitness[0])
                _tell(instance, population, best, limits)
            stopped = _ended(best, evaluations, limits)
    if best == INFEASIBLE:
        raise none_found(instance, f"{evaluations:,} orders")
    cut = segment_below(instance, order_of(instance, population.best), best + 1)
    return SearchResult(cut, best, "brkga", evaluations, stopped or StopReason.BUDGET)


def _tell(instance: Instance, population: Population, best: int, limits: SearchLimits) -> None:
    chromosome = population.best.copy()
    limits.observer.incumbent(best)
    limits.keeper.offer(best, "brkga", lambda: segment_below(instance, order_of(instance, chromosome), best + 1))


def generations_of(limits: SearchLimits) -> int:
    """Return how many generations may be made, the first included."""
    if limits.generations is not None:
        return limits.generations
    bounded = limits.evaluations < UNLIMITED or limits.deadline.limit_s is not None
    return UNLIMITED if bounded else GENERATIONS


def _ended(best: int, evaluations: int, limits: SearchLimits) -> StopReason | None:
    if best <= limits.lower_bound:
        return StopReason.OPTIMAL
    return limits.stop or (StopReason.BUDGET if evaluations >= limits.evaluations else None)
