"""Orders along which few tensors are live, against counts of those tensors."""

from __future__ import annotations

import itertools
import random

import pytest
from graph_strategies import LINK, random_graph
from weight_searches import wide_graph

from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.kernels.layers import SLOTS
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder, narrow_order, scan_orders


def drawn_instance(seed: int) -> Instance:
    """Draw a graph of up to 40 ops with hyperedges."""
    pick = random.Random(seed)
    graph = random_graph(seed, pick.randint(1, 40), consumers_per_tensor=pick.choice((0.8, 1.5, 3.0)))
    return Instance.build(graph, Machine.uniform(2, LINK))


def live_counts(instance: Instance, order: list[int], forgotten: tuple[int, ...] = ()) -> list[int]:
    """Return how many tensors have been made and not yet read by all after each op, and that no edge goes back."""
    place = {v: i for i, v in enumerate(order)}
    assert sorted(place) == list(range(instance.op_count))
    ends = []
    for t, (begin, end) in enumerate(itertools.pairwise(instance.pin_offsets.tolist())):
        maker, *readers = instance.pins[begin:end].tolist()
        assert all(place[maker] < place[v] for v in readers)
        if readers and t not in forgotten:
            ends.append((place[maker], max(place[v] for v in readers)))
    return [sum(made <= i < last for made, last in ends) for i in range(len(order))]


def test_width_and_weight() -> None:
    """The most tensors that are live at once, and powers of two of their numbers; forgotten ones do not count."""
    for seed in range(60):
        instance, pick = drawn_instance(seed), random.Random(seed)
        forgotten = tuple(t for t in range(instance.tensor_count) if pick.random() < 0.1)
        for one in scan_orders(instance):
            order = ScanOrder(instance, one.order, forgotten)
            counts = live_counts(instance, order.order.tolist(), forgotten)
            assert order.width == max(counts)
            assert order.weight == sum(2.0**count for count in counts)


def test_exchanges_of_runs() -> None:
    """The narrowest depth-first order becomes no worse by them, stays an order, and is the same each time."""
    better = 0
    for seed in range(25):
        instance = drawn_instance(seed)
        narrow, first = narrow_order(instance), scan_orders(instance)[0]
        live_counts(instance, narrow.order.tolist())
        assert narrow.weight <= first.weight
        better += narrow.weight < first.weight
        assert narrow_order(instance).order.tolist() == narrow.order.tolist()
    assert better > 3


def test_chains_side_by_side() -> None:
    """Chains that meet are gone through one after the other."""
    instance = Instance.build(wide_graph(6, 8, 3), Machine.uniform(2, LINK))
    assert narrow_order(instance).width == 6


def test_more_tensors_than_a_state_has_room_for() -> None:
    """There are steps for as many live tensors as a state holds, not for more."""
    for branches in (SLOTS, SLOTS + 1, 30):
        instance = Instance.build(wide_graph(branches, 1, 1), Machine.uniform(2, LINK))
        order = narrow_order(instance)
        assert order.width == branches
        if branches <= SLOTS:
            order.steps(instance.work, instance.transfer)
        else:
            with pytest.raises(ValueError, match=f"^{branches} tensors are live at once, more than {SLOTS}$"):
                order.steps(instance.work, instance.transfer)
