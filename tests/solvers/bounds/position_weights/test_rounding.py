"""Partitions from the labels that stages are worth most with."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import oracles
from graph_strategies import LINK, random_graph

from mtpp.array_types import Int64Array
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS
from mtpp.solvers.bounds.frontier.scan_order import scan_orders
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.position_weights.rounding import Rounding


def through_values(stages: tuple[int, ...], k: int, order: list[int]) -> list[Int64Array]:
    """Return values by which each stage is worth most with the labels of a partition."""
    rows = []
    for j in range(k):
        labels = [BEFORE if stages[v] < j else INSIDE if stages[v] == j else AFTER for v in order]
        rows.append(np.eye(LABELS, dtype=np.int64)[labels])
    return rows


def drawn(seed: int, *, memory: bool = False) -> tuple[CostGraph, Instance, int, tuple[int, ...]]:
    """Draw a graph with its optimum, in one partition."""
    pick = random.Random(seed)
    graph = random_graph(seed, pick.randint(2, 7), largest_cost=20, time_unit="ps")
    system = replace(LINK, memory_bytes=pick.randint(60, 250)) if memory else LINK
    instance = Instance.build(graph, Machine.uniform(pick.randint(2, 4), system))
    return graph, instance, *oracles.best_partition(graph, system, instance.k)


def test_labels_of_a_partition_give_no_worse_one() -> None:
    """Those of the best partition give the optimum; where that is known, nothing."""
    for seed in range(40):
        graph, instance, optimum, stages = drawn(seed)
        order = scan_orders(instance)[0].order
        values = through_values(stages, instance.k, order.tolist())
        found = Rounding(instance, order, BoundLimits(optimum + 1)).best(values, None, lambda: False)
        assert found is not None
        partition, bottleneck = found
        assert bottleneck == optimum
        assert oracles.bottleneck(graph, LINK, partition.assignment.tolist(), instance.k) == optimum
        assert Rounding(instance, order, BoundLimits(optimum)).best(values, None, lambda: False) is None


def test_mixtures_of_the_best_partition_give_it() -> None:
    """Stages that are worth most with labels of no partition do not stand in the way."""
    for seed in range(40):
        _, instance, optimum, stages = drawn(seed)
        order = scan_orders(instance)[0].order
        nothing = [np.zeros((instance.op_count, LABELS), dtype=np.int64)] * instance.k
        shares = np.array([[0.6 * (stage <= j) for stage in stages] for j in range(instance.k - 1)])
        rounding = Rounding(instance, order, BoundLimits(optimum + 1))
        found = rounding.best(nothing, shares, lambda: False)
        assert found is not None
        assert found[1] == optimum
        assert rounding.best(nothing, shares, lambda: False) is None


def test_any_values_give_partitions_better_than_known() -> None:
    """Also from labels that no partition has; each one is better than the last, and keeps to the memory."""
    found_some = 0
    for seed in range(60):
        _, instance, optimum, _ = drawn(seed, memory=True)
        if optimum >= oracles.NEVER:
            continue
        pick, order = random.Random(seed), scan_orders(instance)[0].order
        known = 2 * optimum + 2
        rounding = Rounding(instance, order, BoundLimits(known))
        for _ in range(4):
            shape = (instance.k, instance.op_count, LABELS)
            values = list(np.array([pick.randint(-9, 9) for _ in range(int(np.prod(shape)))]).reshape(shape))
            shares = np.random.default_rng(seed).random((instance.k - 1, instance.op_count))
            found = rounding.best(values, shares, lambda: False)
            if found is not None:
                partition, bottleneck = found
                costs = stage_costs(instance, partition)
                assert optimum <= bottleneck == costs.bottleneck < known
                assert keeps_stage_memory(instance, costs)
                known = bottleneck
                found_some += 1
            assert rounding.best(values, shares, lambda: False) is None
    assert found_some > 30
