"""The genetic algorithm, its decoders, and linear arrangements."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
from graph_strategies import graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.orders import evolution
from mtpp.solvers.orders.evolution import (
    FloatArray,
    Population,
    Rate,
    arrangement_edges,
    arrangement_rating,
    cut_rating,
    elite_size,
    first_population,
    next_population,
    order_of,
)
from mtpp.solvers.partitioners import brkga, mla, mla_weighted
from mtpp.solvers.registry import partitioner
from mtpp.solvers.threads import Threads

SYSTEM = load_device()


def _generations(rate: Rate, size: int, genes: int, count: int) -> list[Population]:
    stream = np.random.Generator(np.random.PCG64(3))
    populations = [first_population(size, genes, stream, rate)]
    for _ in range(count):
        population, rated = next_population(populations[-1], stream, rate, size)
        assert rated == size - elite_size(size)
        populations.append(population)
    return populations


@pytest.mark.parametrize("size", [2, 3, 10, 40])
def test_cutoffs_do_not_change_the_search(size: int) -> None:
    """Rating everything in full gives the same populations, gene by gene."""
    instance = Instance.build(random_graph(5, 25), Machine.uniform(4, SYSTEM))
    with Threads(2) as threads:
        short = cut_rating(instance, threads, lambda: False)

        def full(chromosomes: FloatArray, cutoff: Any) -> NDArray[Any]:
            return short(chromosomes, None)

        for one, other in zip(_generations(short, size, 25, 8), _generations(full, size, 25, 8), strict=True):
            assert one.fitness.tolist() == other.fitness.tolist() == sorted(one.fitness.tolist())
            assert np.array_equal(one.chromosomes, other.chromosomes)


def test_the_best_never_gets_worse_and_a_limit_cuts_a_generation() -> None:
    """The elite survives; with room for three more only three are rated."""
    instance = Instance.build(random_graph(6, 30), Machine.uniform(5, SYSTEM))
    with Threads(1) as threads:
        rate = cut_rating(instance, threads, lambda: False)
        best = [int(population.fitness[0]) for population in _generations(rate, 20, 30, 10)]
        assert best == sorted(best, reverse=True)
        assert best[-1] < best[0]
        stream = np.random.Generator(np.random.PCG64(0))
        population, rated = next_population(first_population(20, 30, stream, rate), stream, rate, 3)
        assert (rated, population.chromosomes.shape) == (3, (20, 30))


def test_seeds_come_first() -> None:
    """Chromosomes that are given are part of the first population."""
    instance = Instance.build(random_graph(6, 12), Machine.uniform(3, SYSTEM))
    seeds = np.full((2, 12), 0.25)
    with Threads(1) as threads:
        rate = cut_rating(instance, threads, lambda: False)
        stream = np.random.Generator(np.random.PCG64(0))
        population = first_population(6, 12, stream, rate, seeds)
    assert sum(np.array_equal(row, seeds[0]) for row in population.chromosomes) == 2


@settings(max_examples=60)
@given(graphs(max_ops=6), st.integers(1, 4), st.integers(0, 10**6))
def test_cut_rating_is_the_best_cut_of_the_order(graph: CostGraph, k: int, seed: int) -> None:
    """Kahn's order by priorities, cut optimally (Algorithm 2); at a cutoff or above it is not told apart."""
    instance = Instance.build(graph, Machine.uniform(k, SYSTEM))
    chromosomes = np.random.default_rng(seed).random((3, graph.op_count))
    with Threads(1) as threads:
        rate = cut_rating(instance, threads, lambda: False)
        rated = rate(chromosomes, None).tolist()
        expected = [
            oracles.best_segmentation(graph, SYSTEM, k, oracles.kahn_order(graph, row.tolist())) for row in chromosomes
        ]
        assert rated == expected
        cutoff = sorted(expected)[1]
        short = rate(chromosomes, cutoff).tolist()
    assert [value if value < cutoff else None for value in short] == [e if e < cutoff else None for e in expected]


def _topological_orders(graph: CostGraph) -> list[list[int]]:
    before = oracles.predecessors(graph)
    orders: list[list[int]] = [[]]
    for _ in range(graph.op_count):
        orders = [
            [*order, v] for order in orders for v in range(graph.op_count) if v not in order and before[v] <= set(order)
        ]
    return orders


def _arrangement(graph: CostGraph, order: list[int], *, weighted: bool) -> int:
    """Return h(π) from its definition: C.1 of Archer et al. (2024), an edge for each producer and consumer."""
    place = {v: i for i, v in enumerate(order)}
    weights: dict[tuple[int, int], int] = {}
    transfer = oracles.to_ticks(graph, SYSTEM, 2).transfer
    for t, (producer, consumers) in enumerate(oracles.tensors_of(graph)):
        for v in consumers:
            weights[producer, v] = weights.get((producer, v), 0) + transfer[t] if weighted else 1
    return sum(weight * (place[v] - place[u]) for (u, v), weight in weights.items())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_arrangements_reach_the_optimum_of_small_graphs(seed: int, weighted: bool) -> None:
    """Rating follows the definition, and evolution finds the least h over all topological orders of seven ops."""
    graph = random_graph(seed, 7)
    instance = Instance.build(graph, Machine.uniform(2, SYSTEM))
    with Threads(1) as threads:
        rate = arrangement_rating(instance, threads, lambda: False, weighted=weighted)
        chromosomes = np.random.default_rng(seed).random((8, 7))
        expected = [_arrangement(graph, order_of(instance, row).tolist(), weighted=weighted) for row in chromosomes]
        assert rate(chromosomes, None).tolist() == expected
        best = _generations(rate, 60, 7, 30)[-1]
    assert best.fitness[0] == min(_arrangement(graph, o, weighted=weighted) for o in _topological_orders(graph))


def test_parallel_tensors_are_one_edge() -> None:
    """Two tensors from a to b: one edge of weight 1, or of both transfers."""
    ops = [Op("a", 1), Op("b", 1)]
    tensors = [Tensor("s", "a", ("b",), transfer=3), Tensor("t", "a", ("b",), transfer=4)]
    graph = CostGraph.build(name="two", time_unit="1", ops=ops, tensors=tensors)
    instance = Instance.build(graph, Machine.uniform(2, SYSTEM))
    assert [part.tolist() for part in arrangement_edges(instance, weighted=False)] == [[0], [1], [1.0]]
    assert [part.tolist() for part in arrangement_edges(instance, weighted=True)] == [[0], [1], [7.0]]


@pytest.mark.parametrize("name", ["brkga", "mla", "mla-weighted"])
def test_chromosomes_that_come_too_late_are_not_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations are those that were made before the search had to end, as the observer was told."""
    instance = Instance.build(random_graph(5, 600), Machine.uniform(4, SYSTEM))
    rows: list[int] = []
    for kernel in ("cut_fitness", "arrangement_fitness"):
        rate = getattr(evolution, kernel)

        def counted(chromosomes: FloatArray, *arguments: Any, rate: Any = rate) -> None:
            rows.append(len(chromosomes))
            rate(chromosomes, *arguments)

        monkeypatch.setattr(evolution, kernel, counted)
    limits = SearchLimits(10_000, population=100, interrupted=lambda: sum(rows) > 120)
    found = partitioner(name).load()(instance, limits)
    assert found.stopped == "interrupted"
    assert found.evaluations == sum(rows)
    assert sum(rows) < 150


@pytest.mark.parametrize("solver", [brkga, mla, mla_weighted], ids=["brkga", "mla", "mla-weighted"])
def test_evaluations_are_counted_and_limited(solver: Any) -> None:
    """P chromosomes at first, then those outside the elite; the paper's 100 × 100 by default; limits are kept."""
    instance = Instance.build(random_graph(7, 20), Machine.uniform(3, Device("s", 1, 1, Link(10**9))))
    small = solver.partition(instance, SearchLimits(UNLIMITED, population=10, generations=10))
    assert small.evaluations == 10 + 9 * (10 - elite_size(10))
    assert solver.partition(instance, SearchLimits(UNLIMITED)).evaluations == 100 + 99 * (100 - elite_size(100)) == 8515
    assert solver.partition(instance, SearchLimits(57, population=10)).evaluations == 57
