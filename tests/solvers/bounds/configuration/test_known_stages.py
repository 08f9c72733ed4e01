"""Stages that are grown, against all stages of small graphs, and against paths and pins of larger ones."""

from __future__ import annotations

import numpy as np
import pytest
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum
from stage_sets import drawn_limit, stages_within

from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.known_stages import KnownStages
from mtpp.solvers.bounds.configuration.search import ConfigurationSearch
from mtpp.solvers.bounds.configuration.weights import WeightSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.threads import Threads


@pytest.mark.parametrize("seed", range(60))
def test_grown_stages_are_stages(seed: int) -> None:
    """Each costs no more than the limit and is convex; the cost and the rest that are kept of it are its own."""
    instance, limit = drawn_limit(seed)
    stages = {tuple(sorted(stage)) for stage in stages_within(instance, limit)}
    begun = [sorted(stage) for stage in stages_within(instance, 2 * limit)][::7]
    around = np.zeros((len(begun), instance.op_count), dtype=np.int8)
    for row, ops in zip(around, begun, strict=True):
        row[ops] = 1
    with Threads(1) as threads:
        search = WeightSearch.of(StageSets.of(instance), threads)
        search.begin(limit)
        for _ in range(8):
            search.known.grow(search.weight, -1.0)
        if len(around):
            search.known.grow(search.weight, -1.0, around=around)
    for row, cost, rest in zip(search.known.inside, search.known.cost, search.known.rest, strict=True):
        assert tuple(np.flatnonzero(row).tolist()) in stages
        assert cost <= search.sets.most
        assert rest >= search.sets.least
    assert len(search.known.inside) == len({row.tobytes() for row in search.known.inside})
    assert stages or not len(search.known.inside)


def test_the_fullest_stages_of_small_graphs_are_grown() -> None:
    """A few growths find a stage that holds most of random weights, on nearly all graphs that have any."""
    found = tried = 0
    for seed in range(100):
        instance, limit = drawn_limit(seed)
        stages = [sorted(stage) for stage in stages_within(instance, limit)]
        if not stages:
            continue
        weight = np.random.default_rng(seed).uniform(0, 1, instance.op_count)
        with Threads(1) as threads:
            known = WeightSearch.of(StageSets.of(instance), threads).known
            known.sets.within(limit)
            for _ in range(4):
                known.grow(weight, -1.0)
        tried += 1
        found += known.fullest(weight) >= max(weight[stage].sum() for stage in stages) - 1e-9
    assert tried > 50
    assert found >= 0.95 * tried


def grown(instance: Instance, limit: int, jobs: int) -> KnownStages:
    """Return stages of a larger graph, grown by weights of which every third one is 0."""
    weight = np.random.default_rng(1).uniform(0, 1, instance.op_count)
    weight[::3] = 0
    with Threads(jobs) as threads:
        search = WeightSearch.of(StageSets.of(instance), threads)
        search.begin(limit)
        for _ in range(4):
            search.known.grow(weight, -1.0)
    return search.known


def test_stages_of_more_ops_than_a_word_has_bits() -> None:
    """They are convex and keep to their limits by sums over the graph's own edges and pins; threads change nothing."""
    graph = random_graph(5, 150, consumers_per_tensor=1.3)
    instance = Instance.build(graph, Machine.uniform(4, LINK))
    limit = int(instance.work.sum()) // 3
    known = grown(instance, limit, 1)
    assert len(known.inside) > 100
    assert np.array_equal(known.inside, grown(instance, limit, 2).inside)
    sources, targets = instance.edges
    for row, cost in zip(known.inside, known.cost.tolist(), strict=True):
        below = np.zeros(150, dtype=bool)
        for v in instance.order.tolist():
            before = sources[targets == v]
            below[v] = bool((below[before] | (row[before] == 1)).any())
            assert row[v] == 0 or not (below[before] & (row[before] == 0)).any()
        held = np.add.reduceat(row[instance.pins].astype(np.int64), instance.pin_offsets[:-1])
        cut = (held > 0) & (held < np.diff(instance.pin_offsets))
        assert cost == int(instance.work[row == 1].sum()) + int(instance.transfer[cut].sum())
        assert cost <= known.sets.most


def test_graphs_without_tensors() -> None:
    """Stages are any ops within the limit, as every set is convex and cuts nothing."""
    ops = [Op(f"op{v}", 1 + v % 3) for v in range(70)]
    graph = CostGraph.build(name="apart", time_unit="ps", ops=ops, tensors=[])
    instance = Instance.build(graph, Machine.uniform(3, LINK))
    limit = int(instance.work.sum()) // 3 + 1
    known = grown(instance, limit, 1)
    costs = known.inside.astype(np.int64) @ instance.work
    assert np.array_equal(costs, known.cost)
    assert costs.max() == limit


def test_a_limit_that_no_stage_keeps_to() -> None:
    """Weights may then be as large as one likes: their sum is above k, so that the limit is not given up."""
    instance, _ = drawn_limit(7)
    with Threads(1) as threads:
        search = WeightSearch.of(StageSets.of(instance), threads)
        search.begin(1)
        total = search.fit_stages(Deadline(), lambda: False)
    assert total is not None
    assert total > instance.k


@pytest.mark.parametrize("seed", range(12))
def test_a_partition_with_empty_stages_is_begun_with(seed: int) -> None:
    """It is known as stages of its ops alone; the bound stays at the optimum or below."""
    graph = random_graph(seed, 3 + seed % 3, consumers_per_tensor=1.3)
    k = 6
    optimum = brute_force_optimum(graph, LINK, k)
    instance = Instance.build(graph, Machine.uniform(k, LINK))
    start = Partition.from_stages(instance, [0] * instance.op_count)
    with Threads(1) as threads:
        limits = BoundLimits(int(instance.work.sum()), start, deadline=Deadline(2.0))
        search = ConfigurationSearch(instance, limits, threads)
        search.run(limits)
    assert search.lower <= optimum
    assert search._weights.known.inside.any(axis=1).all()
