"""``mla``: the order with the shortest edges that evolution finds, cut optimally."""

from __future__ import annotations

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.orders.evolution import arrangement_rating, first_population, next_population, order_of
from mtpp.solvers.orders.slicing import slice_order
from mtpp.solvers.partitioners.brkga import POPULATION, generations_of
from mtpp.solvers.threads import Threads


def partition_by_arrangement(instance: Instance, limits: SearchLimits, name: str, *, weighted: bool) -> SearchResult:
    """Evolve one order for its linear arrangement, then cut it optimally.

    Notes
    -----
    Archer et al. (2024), C.1: minimum linear arrangement by BRKGA, population and generations as in ``brkga``. Kahn's
    algorithm decodes, so that every chromosome is a topological order. O(n·log n + edges) per evaluation.
    """
    stream = np.random.Generator(np.random.PCG64(limits.seed))
    size = limits.population or POPULATION
    with Threads(limits.jobs) as threads:
        rate = arrangement_rating(instance, threads, limits.ended, weighted=weighted)
        population = first_population(min(size, limits.evaluations), instance.op_count, stream, rate)
        evaluations = rate.rated
        limits.observer.evaluated(evaluations)
        for _ in range(generations_of(limits) - 1):
            if limits.stop or evaluations >= limits.evaluations:
                break
            population, _ = next_population(population, stream, rate, limits.evaluations - evaluations)
            limits.observer.evaluated(rate.rated - evaluations)
            evaluations = rate.rated
    found = slice_order(instance, order_of(instance, population.best))
    if found is None:
        raise none_found(instance, "the order found")
    limits.observer.incumbent(found.bottleneck)
    stopped = StopReason.OPTIMAL if found.bottleneck <= limits.lower_bound else limits.stop or StopReason.BUDGET
    return SearchResult(found.partition, found.bottleneck, name, evaluations, stopped)


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Evolve the order with the least Σ |π⁻¹(u) − π⁻¹(v)| over all edges, and cut it."""
    return partition_by_arrangement(instance, limits, "mla", weighted=False)
