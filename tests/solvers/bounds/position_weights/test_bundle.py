"""Weights from mixtures of labellings, against all labellings of small graphs."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from graph_strategies import LINK, random_graph

from mtpp.array_types import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS
from mtpp.solvers.bounds.position_weights.bundle import Bundle


def labellings(instance: Instance, limit: int) -> Int32Array:
    """Return all labellings of a stage that cost at most *limit* ticks, int32, shape (count, n)."""
    labels = np.array(list(itertools.product(range(LABELS), repeat=instance.op_count)), dtype=np.int32)
    inside = labels == INSIDE
    cost = inside @ instance.work
    for ticks, (begin, end) in zip(
        instance.transfer.tolist(), itertools.pairwise(instance.pin_offsets.tolist()), strict=True
    ):
        maker, *readers = ends = instance.pins[begin:end].tolist()
        cost = cost + ticks * (inside[:, ends].any(axis=1) & ~inside[:, ends].all(axis=1))
        for reader in readers:
            cost[labels[:, maker] > labels[:, reader]] = limit + 1
    kept: Int32Array = labels[cost <= limit]
    return kept


def worths(labels: Int32Array, weight: Int64Array, j: int) -> Int64Array:
    """Return what each labelling of stage j is worth by weights a[j, v]."""
    worth: Int64Array = (labels == INSIDE) @ weight[j] + (labels == BEFORE) @ (weight[j] - weight[j - 1])
    return worth


@pytest.mark.parametrize("count", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_better_weights(count: int) -> None:
    """The slack is that of the weights, lower than at the beginning, and 0 or more where there is a partition."""
    improved = less = 0
    for seed in range(count):
        pick = random.Random(seed)
        k = pick.randint(2, 4)
        graph = random_graph(seed, pick.randint(2, 6), largest_cost=20, consumers_per_tensor=1.5)
        instance = Instance.build(graph, Machine.uniform(k, LINK))
        limit = pick.randint(
            int(instance.work.max()), max(int(instance.work.max()), int(1.3 * instance.work.sum() / k))
        )
        labels = labellings(instance, limit)

        def price(j: int, weight: Int64Array, labels: Int32Array = labels) -> tuple[int, Int32Array]:
            worth = worths(labels, weight, j)
            return int(worth.max()), labels[int(worth.argmax())]

        weight = np.zeros((k + 1, instance.op_count), dtype=np.int64)
        weight[1:] = [[pick.randint(0, 10_000) for _ in range(instance.op_count)] for _ in range(k)]
        if len(labels) == 0:
            continue
        first = sum(int(worths(labels, weight, j).max()) for j in range(1, k + 1)) - int(weight[k].sum())
        if first <= 0:
            continue
        bundle = Bundle(k)
        found = bundle.improved(weight, price, 40, lambda: False)
        if found is None:
            continue
        improved += 1
        slack = sum(int(worths(labels, found.weight, j).max()) for j in range(1, k + 1)) - int(found.weight[k].sum())
        assert found.slack == slack < first
        chains = itertools.product(range(1, k + 1), repeat=instance.op_count)
        known = {tuple(row) for row in labels.tolist()}
        possible = any(
            all(
                tuple(BEFORE if s < j else INSIDE if s == j else AFTER for s in chain) in known for j in range(1, k + 1)
            )
            for chain in chains
        )
        assert not (possible and slack < 0)
        less += 10 * slack < first
        assert bundle.improved(found.weight, lambda j, weight: None, 12, lambda: False) is None
    assert improved > count / 2
    assert less > count / 2


def test_labellings_that_windows_rule_out_are_forgotten() -> None:
    """After that, weights of the same labellings are found without those."""
    k, ops = 2, 3
    met: list[Int32Array] = []

    def price(j: int, weight: Int64Array) -> tuple[int, Int32Array]:
        labels: Int32Array = np.array(met[j - 1], dtype=np.int32)
        return int(worths(labels[None], weight, j)[0]), labels

    bundle = Bundle(k)
    met[:] = [np.array([INSIDE, AFTER, AFTER]), np.array([BEFORE, INSIDE, INSIDE])]
    weight = np.ones((k + 1, ops), dtype=np.int64)
    weight[0] = 0
    bundle.improved(weight, price, 1, lambda: False)
    allowed = {1: np.full(ops, 1 << INSIDE), 2: np.full(ops, 1 << INSIDE | 1 << BEFORE)}
    bundle.keep_to(lambda j: allowed[j])
    kept = [0 if side is None else len(side.here) for side in bundle._known]
    assert kept == [0, 1]
