"""Cuts into series-parallel pieces on devices that differ: the best there are, by trying every partition and place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import oracles
import pytest
from cut_shapes import best_on_devices
from random_devices import NEVER, RandomCase, composed_case, random_case

from mtpp.errors import Infeasible
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.partitioners import series_parallel
from mtpp.solvers.series_parallel.components import Components
from mtpp.solvers.series_parallel.cuts import Cutter
from mtpp.solvers.series_parallel.decomposition import decompose
from mtpp.solvers.series_parallel.device_groups import DeviceGroups


def best_cut(case: RandomCase, instance: Instance) -> int:
    """Improve on any cut at all until there is none, and return the last one's bottleneck; checks each on the way."""
    components = Components(instance, decompose(instance))
    best, upper = oracles.NEVER, instance.most_ticks + 1
    cutter = Cutter(components, components.groups.terms(upper, 20_000))
    while (found := cutter.cut(components.groups.terms(upper, 20_000), lambda: None)) is not None:
        devices = found.devices if isinstance(found, PlacedPartition) else range(instance.k)
        ticks = case.bottleneck(found, devices)
        assert ticks < upper
        assert len(set(found.assignment.tolist())) <= instance.most_used
        best = upper = ticks
    assert cutter.coverage() == ""
    return best


def least_of_the_shape(case: RandomCase, most: int, *, free: bool) -> tuple[int, int]:
    """Return the least bottleneck of partitions into series-parallel pieces, and of all."""
    groups: list[int] = []
    for i, device in enumerate(case.devices):
        groups.append(groups[-1] if i and case.devices[i - 1] == device else i)

    @cache
    def cost(stage: frozenset[int], device: int) -> int:
        ticks = case.cost(sorted(stage), device)
        return oracles.NEVER if ticks >= NEVER else ticks

    graph = case.graph()
    return best_on_devices(
        graph, decompose(graph), lambda stage, device: cost(frozenset(stage), device), groups, most, free=free
    )


@pytest.mark.parametrize("first", range(0, 100, 20))
@pytest.mark.parametrize("family", ["series-parallel", "any"])
def test_best_of_the_shape(family: str, first: int) -> None:
    """In both orders, with memories, latencies, and devices that are left out."""
    for seed in range(first, first + 20):
        case = composed_case(seed)
        if family == "any":
            case = replace(random_case(seed), weights=(), peak="reserve")
        count, free = len(case.devices), Random(seed).random() < 0.5
        most = max(1, count - Random(seed).choice([0, 0, 1]))
        best, optimum = least_of_the_shape(case, most, free=free)
        assert best_cut(case, case.instance(most, free=free)) == best >= optimum


@pytest.mark.parametrize("order", ["fixed", "free"])
def test_never_worse_than_the_cut_of_the_file_order(order: str) -> None:
    """And never below what is possible at all."""
    better = 0
    for seed in range(60):
        case = composed_case(seed, most_ops=12)
        instance = case.instance(free=order == "free")
        try:
            found = series_parallel.partition(instance, SearchLimits(UNLIMITED))
        except Infeasible:
            continue
        assert found.bottleneck == case.bottleneck(found.partition, found.devices or range(instance.k))
        plain = case.cut_optimum(instance.order.tolist(), instance.k, free=False)
        assert found.bottleneck <= plain
        better += found.bottleneck < plain
    assert better >= 5


def test_shared_weights_count_at_each_reader() -> None:
    """Where memory is limited a piece may hold less than is counted, never more."""
    for seed in range(40):
        case = replace(random_case(seed), peak="reserve")
        if not case.weights:
            continue
        best, _ = least_of_the_shape(case, len(case.devices), free=True)
        assert best_cut(case, case.instance(free=True)) >= best


def test_devices_too_many_to_count() -> None:
    """Where no word holds the counts of all kinds of devices, the file's order is cut, and the result says so."""
    count = 32
    devices = [Device("d", 10**12, 10**12, Link(10**12), speed=i + 1) for i in range(count)]
    machine = Machine(tuple(DeviceGroup(one, 1) for one in devices), (Level(count, Link(10**12)),))
    graph = CostGraph.build(name="g", time_unit="ps", ops=[Op(f"o{v}", 100 + v) for v in range(40)], tensors=[])
    instance = Instance.build(graph, machine)
    assert not DeviceGroups.of(instance).countable
    found = series_parallel.partition(instance, SearchLimits(UNLIMITED))
    assert (found.found_by, found.coverage) == (
        "slice",
        "the file's order alone was cut: too many devices differ for counts of them",
    )
    assert DeviceGroups.of(Instance.build(graph, machine.on(range(31)))).countable
