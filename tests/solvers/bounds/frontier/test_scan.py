"""Scans with few live tensors against all labellings of small graphs: before, in and after a stage."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from graph_strategies import LINK, random_graph

from mtpp.array_types import Int64Array
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS
from mtpp.solvers.bounds.frontier.scan import Room, Scan, scan_layers
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder, scan_orders

_ALL = 1 << BEFORE | 1 << INSIDE | 1 << AFTER


def drawn_instance(seed: int) -> Instance:
    """Draw a graph of up to 7 ops with hyperedges, ties and costs of 0."""
    pick = random.Random(seed)
    graph = random_graph(
        seed,
        pick.randint(1, 7),
        largest_cost=pick.choice((1, 3, 20)),
        consumers_per_tensor=pick.choice((0.8, 1.5, 3.0)),
    )
    return Instance.build(graph, Machine.uniform(3, LINK))


def tensors_of(instance: Instance) -> list[list[int]]:
    """Return the ops of each tensor, the one that makes it first."""
    pins, offsets = instance.pins.tolist(), instance.pin_offsets.tolist()
    return [pins[begin:end] for begin, end in itertools.pairwise(offsets)]


def stage_cost(instance: Instance, inside: set[int], forgotten: tuple[int, ...] = ()) -> int:
    """Return the work of some ops and the transfers of the tensors that they cut, by the definition."""
    work = sum(int(instance.work[v]) for v in inside)
    tensors = [(t, pins) for t, pins in enumerate(tensors_of(instance)) if t not in forgotten]
    return work + sum(int(instance.transfer[t]) for t, pins in tensors if 0 < len(inside & set(pins)) < len(set(pins)))


def labellings(
    instance: Instance, allowed: list[int], forgotten: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield all labellings in which no label falls along an edge, and what the stage costs."""
    tensors = [pins for t, pins in enumerate(tensors_of(instance)) if t not in forgotten]
    for labels in itertools.product(range(LABELS), repeat=instance.op_count):
        if any(not allowed[v] >> label & 1 for v, label in enumerate(labels)):
            continue
        if all(labels[maker] <= labels[v] for maker, *readers in tensors for v in readers):
            inside = {v for v, label in enumerate(labels) if label == INSIDE}
            yield labels, stage_cost(instance, inside, forgotten)


def stair(pairs: list[tuple[int, int]], limit: int, floor: int) -> list[tuple[int, int]]:
    """Return the pairs of cost and worth within the limit that no other one beats, those worth the floor."""
    found: list[tuple[int, int]] = []
    for cost, worth in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
        if cost <= limit and (not found or worth > found[-1][1]):
            found.append((cost, worth))
    return [(cost, worth) for cost, worth in found if worth >= floor]


def orders_of(instance: Instance, seed: int) -> ScanOrder:
    """Return one of the orders, one of its tensors forgotten at times."""
    pick = random.Random(seed)
    order = pick.choice(scan_orders(instance))
    read = [t for t, pins in enumerate(tensors_of(instance)) if len(pins) > 1]
    if read and pick.random() < 0.3:
        return ScanOrder(instance, order.order, (pick.choice(read),))
    return order


@pytest.mark.parametrize("part", range(8))
def test_worths_by_label(part: int) -> None:
    """The last front is that of all labellings, whatever worths and labels allowed, down to any floor."""
    for seed in range(part, 320, 8):
        instance, pick = drawn_instance(seed), random.Random(seed)
        n = instance.op_count
        order = orders_of(instance, seed)
        allowed = [pick.choice((_ALL, _ALL, pick.randint(1, _ALL))) for _ in range(n)]
        largest = pick.choice((1, 4, 1000))
        worth = np.array([[pick.randint(-largest, largest) for _ in range(LABELS)] for _ in range(n)], dtype=np.int64)
        pairs = [
            (cost, sum(int(worth[v, label]) for v, label in enumerate(labels)))
            for labels, cost in labellings(instance, allowed, order.forgotten)
        ]
        whole = int(instance.work.sum() + instance.transfer.sum())
        limit, floor = pick.randint(0, whole), pick.randint(-n * largest, n * largest)
        steps = order.steps(instance.work, instance.transfer)
        along: Int64Array = np.array(allowed, dtype=np.int64)[order.order]
        scan = Scan.within(scan_layers(steps, along, Room(), lazy=False), limit)
        priced = scan.priced(worth[order.order], floor, Room())
        assert list(zip(priced.cost.tolist(), priced.worth.tolist(), strict=True)) == stair(pairs, limit, floor)


@pytest.mark.parametrize("part", range(8))
def test_weights_of_convex_sets(part: int) -> None:
    """With weights inside alone, ops outside are after a stage only where they must be; sets cost and hold as told."""
    for seed in range(part, 320, 8):
        instance, pick = drawn_instance(seed), random.Random(seed + 1)
        n = instance.op_count
        order = orders_of(instance, seed)
        weight = [pick.randint(0, pick.choice((1, 5, 100))) for _ in range(n)]
        pairs = [
            (cost, sum(weight[v] for v, label in enumerate(labels) if label == INSIDE))
            for labels, cost in labellings(instance, [_ALL] * n, order.forgotten)
        ]
        limit = pick.randint(0, int(instance.work.sum() + instance.transfer.sum()))
        floor = pick.randint(0, max(1, sum(weight)))
        worth = np.zeros((n, LABELS), dtype=np.int64)
        worth[:, INSIDE] = np.array(weight)[order.order]
        steps = order.steps(instance.work, instance.transfer)
        scan = Scan.within(scan_layers(steps, np.full(n, _ALL, dtype=np.int64), Room(), lazy=True), limit)
        priced = scan.priced(worth, floor, Room())
        assert list(zip(priced.cost.tolist(), priced.worth.tolist(), strict=True)) == stair(pairs, limit, floor)
        sets = scan.sets(worth, priced, max(1, floor))
        for inside, cost in zip(sets.inside, sets.cost.tolist(), strict=True):
            ops = set(order.order[inside].tolist())
            assert cost == stage_cost(instance, ops, order.forgotten) <= limit
            assert sum(weight[v] for v in ops) >= max(1, floor)
        best = max((worth for cost, worth in pairs if cost <= limit), default=0)
        if best >= max(1, floor):
            assert max(worth[inside, INSIDE].sum() for inside in sets.inside) == best


def test_orders_are_topological() -> None:
    """Each order has each op once, after all that it reads from."""
    for seed in range(100):
        instance = drawn_instance(seed)
        for order in scan_orders(instance):
            place = {v: i for i, v in enumerate(order.order.tolist())}
            assert len(place) == instance.op_count
            assert all(place[maker] < place[v] for maker, *readers in tensors_of(instance) for v in readers)
