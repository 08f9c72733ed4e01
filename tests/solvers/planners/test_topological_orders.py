"""Topological orders are what they are called, and differ."""

from __future__ import annotations

import pytest
from training_models import random_model

from mtpp.solvers.planners.topological_orders import random_orders, topological_orders
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel


@pytest.mark.parametrize("seed", range(20))
def test_edges_lead_on(seed: int) -> None:
    """Every order holds every layer once, after those that it needs; none comes twice, the model's own is first."""
    model = random_model(seed, 3 + seed)
    orders = topological_orders(model)
    assert len(set(orders)) == len(orders) <= 13
    assert orders[0] == tuple(model.order)
    for order in orders:
        assert sorted(order) == list(range(len(model.layers)))
        place = {v: i for i, v in enumerate(order)}
        assert all(place[u] < place[v] for u, v in model.ends)


@pytest.mark.parametrize("seed", range(10))
def test_random_orders(seed: int) -> None:
    """So many as asked for, all topological, and the same ones every time."""
    model = random_model(seed, 12)
    orders = list(random_orders(model, 6))
    assert len(orders) == 6
    assert orders == list(random_orders(model, 6))
    for order in orders:
        assert sorted(order) == list(range(len(model.layers)))
        place = {v: i for i, v in enumerate(order)}
        assert all(place[u] < place[v] for u, v in model.ends)


def test_along_branches_and_across_them() -> None:
    """Two branches between a fork and a join are walked one by one, either first, and in turns."""
    run = {1: [Configuration("only", 1, 0, 0, 0)]}
    layers = [Layer(v, f"layer {v}", run) for v in range(6)]
    edges = [Edge(*ends, 0) for ends in ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5))]
    orders = topological_orders(TrainingModel("fork", "ps", layers, edges))
    assert orders[0] == (0, 1, 2, 3, 4, 5)
    assert set(orders) == {(0, 1, 2, 3, 4, 5), (0, 2, 1, 4, 3, 5), (0, 1, 3, 2, 4, 5), (0, 2, 4, 1, 3, 5)}
