"""Divisions of families against all stages of small graphs."""

from __future__ import annotations

import numpy as np
import pytest
from flow_proofs import claim_of
from graph_strategies import LINK, random_graph
from oracles import brute_force_optimum
from stage_sets import drawn_limit, stages_within

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.configuration.division import Division
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.proof import stage_proof
from mtpp.solvers.bounds.configuration.search import ConfigurationSearch
from mtpp.solvers.bounds.configuration.weights import WeightSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.threads import Threads


def running() -> bool:
    """Tell that there is time."""
    return False


@pytest.mark.parametrize("seed", range(60))
def test_a_division_is_complete_if_and_only_if_no_stage_holds_more(seed: int) -> None:
    """At random weights; a stage found instead is one, and holds more than 1."""
    instance, limit = drawn_limit(seed)
    stages = [sorted(stage) for stage in stages_within(instance, limit)]
    if not stages:
        return
    random = np.random.default_rng(seed)
    weight = random.uniform(0, 1, instance.op_count)
    fullest = max(weight[stage].sum() for stage in stages)
    with Threads(1) as threads:
        for most in (0.7, 0.999, 1.001, 1.5):
            search = WeightSearch.of(StageSets.of(instance), threads)
            search.begin(limit)
            search.weight = weight / fullest * most
            division = Division(search, search.fill())
            division.run(10**6, running)
            assert division.complete is (most < 1)
            for found in division.found:
                assert np.flatnonzero(found).tolist() in stages
                assert search.weight[found == 1].sum() > 1
            if most > 1:
                assert division.found


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 120), marks=pytest.mark.slow)])
def test_proofs_of_divisions_pass(seeds: range) -> None:
    """The checker accepts what the search ends with, at most the optimum and mostly close to it."""
    ratios = []
    for seed in seeds:
        graph = random_graph(seed, 6 + seed % 6, time_unit="ps", largest_cost=300, consumers_per_tensor=1.5)
        k = 2 + seed % 4
        limits = BoundLimits(int(sum(graph.work)))
        with Threads(1) as threads:
            search = ConfigurationSearch(Instance.build(graph, Machine.uniform(k, LINK)), limits, threads)
            search.run(limits)
        assert search.ended
        if search.proven is None:
            continue
        claimed = search.reached + 1
        passed, detail = CHECKERS["configuration"](claim_of(graph, LINK, k, [], claimed, search.document()))
        assert passed, (seed, detail)
        assert claimed <= brute_force_optimum(graph, LINK, k)
        ratios.append(claimed / brute_force_optimum(graph, LINK, k))
    assert len(ratios) > len(seeds) // 2
    assert np.mean(ratios) > 0.95


def test_a_division_by_other_weights_proves_nothing() -> None:
    """Trees that end with weights of which a stage holds more are not turned into a proof."""
    instance, limit = drawn_limit(3)
    with Threads(1) as threads:
        search = WeightSearch.of(StageSets.of(instance), threads)
        search.begin(limit)
        search.weight = search.weight * 1e-3
        division = Division(search, search.fill())
        division.run(10**6, running)
        assert division.complete
        search.weight = search.weight * 1e4
        assert stage_proof(search, division.trees) is None
