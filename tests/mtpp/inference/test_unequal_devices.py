"""Ticks of ops and tensors on devices that differ, from the definition, and instances of some of the devices."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

import numpy as np
import pytest
from graph_strategies import random_graph

from mtpp.errors import InputError
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.language_models.set_cost import SetCost, cost_of_set
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine

PLAIN = Device("plain", 10**12, 10**11, Link(10**12))


def machine_of(*devices: Device, order: str = "fixed") -> Machine:
    """Return a machine of the devices, each a group of its own."""
    groups = tuple(DeviceGroup(device, 1, f"d{i}") for i, device in enumerate(devices))
    return Machine(groups, (Level(len(devices), devices[0].link),), order=order)


def pair(unit: str, work: tuple[Fraction | int, ...] = (1, 2), **tensor: Fraction | int) -> CostGraph:
    """Return two ops with a tensor between them."""
    ops = [Op(name, cost) for name, cost in zip("ab", work, strict=True)]
    return CostGraph.build(name="g", time_unit=unit, ops=ops, tensors=[Tensor("t", "a", ("b",), **tensor)])


def test_abstract_costs_get_digits_where_a_speed_is_not_one() -> None:
    """Work 1 on speed 3 is a third, not one tick: k · (Σ work + Σ transfer) < 2^53, in powers of ten."""
    instance = Instance.build(pair("1", transfer=1), machine_of(PLAIN, replace(PLAIN, speed=3)))
    scale = instance.ticks_per_unit
    assert scale == 10**15  # 2 · 4 · 10^15 < 2^53
    assert instance.cost.work.tolist() == [[scale, 2 * scale], [-(-scale // 3), -(-2 * scale // 3)]]
    slow = replace(PLAIN, link=replace(PLAIN.link, speed=Fraction(1, 2)))
    instance = Instance.build(pair("1", transfer=1), machine_of(PLAIN, slow))
    assert (instance.ticks_per_unit, instance.cost.transfer.tolist()) == (scale, [[scale], [2 * scale]])
    fewer = Instance.build(pair("1", transfer=1), machine_of(PLAIN, slow, slow), most_used=1)
    assert fewer.ticks_per_unit == 10**15
    assert Instance.build(pair("1", transfer=1), machine_of(PLAIN, PLAIN)).ticks_per_unit == 1


def test_times_are_rounded_once_from_the_exact_cost() -> None:
    """Work 1.5 ps on speed 3 is half a picosecond, one tick: not two ticks divided by three and rounded."""
    fast = replace(PLAIN, speed=3, link=Link(7, 100, Fraction(3, 2)))
    instance = Instance.build(pair("ps", (Fraction(3, 2), 3), bytes=5), machine_of(PLAIN, fast))
    assert instance.cost.work.tolist() == [[2, 3], [1, 1]]
    assert instance.cost.transfer.tolist() == [[5], [100 + ceil(Fraction(2 * 5 * 10**12, 21))]]
    given = Instance.build(pair("ps", bytes=5, transfer=4), machine_of(PLAIN, fast))
    assert given.cost.transfer.tolist() == [[4], [100 + 3]]


def test_overflow_takes_no_latency() -> None:
    """It streams over the link at its speed."""
    tight = replace(PLAIN, link=Link(10**12, 50, Fraction(1, 3)), fast_memory_bytes=4)
    graph = CostGraph.build(name="g", time_unit="ps", ops=[Op("a", 1, param_bytes=9)], tensors=[])
    instance = Instance.build(graph, machine_of(tight, PLAIN))
    costs = stage_costs(instance, Partition.from_stages(instance, [0]))
    assert (costs.overflow.tolist(), costs.cost.tolist()) == ([15, 0], [16, 0])


def test_given_times_take_the_place_of_work_and_speed() -> None:
    """Times of a class are its own: its speed is in them."""
    machine = machine_of(PLAIN, replace(PLAIN, speed=2))
    instance = Instance.build(pair("ps", transfer=1), machine, [None, [5, Fraction(7, 2)]])
    assert instance.cost.work.tolist() == [[1, 2], [5, 4]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Instance.build(pair("1", transfer=1), machine_of(replace(PLAIN, link=Link(1, 1)))), "a latency needs"),
        (lambda: Instance.build(pair("ps", transfer=1), machine_of(PLAIN), most_used=2), "must be from 1 to 1"),
        (lambda: Instance.build(pair("ps", transfer=1), machine_of(replace(PLAIN, speed=Fraction(1, 2**61)))), "the c"),
        (lambda: machine_of(PLAIN).on([0, 0]), "not different numbers from 0 to 0"),
        (lambda: machine_of(PLAIN).on([1]), "not different numbers from 0 to 0"),
        (lambda: machine_of(PLAIN).on([]), "not different numbers from 0 to 0"),
    ],
)
def test_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    """One line that tells the fault."""
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.problem.startswith(message)


def random_device(chance: Random) -> Device:
    """Return a device with random figures."""
    speeds = (1, 2, Fraction(3, 2), Fraction(1, 3))
    link = Link(chance.choice((7 * 10**10, 10**12)), chance.choice((0, 3)), chance.choice(speeds))
    sizes = (None, 20, 60)
    fast, limit = chance.choice(sizes), chance.choice(sizes)
    return Device("d", 1, 1, link, fast, chance.randrange(5), memory_bytes=limit, speed=chance.choice(speeds))


def brute_cost(graph: CostGraph, device: Device, inside: set[int]) -> tuple[int, int]:
    """Return f_j(S) in ticks of a picosecond, and the bytes that S needs, both from the definition."""
    if not inside:
        return 0, 0
    cost = sum(ceil(Fraction(graph.work[v]) / device.speed) for v in inside)
    rate = Fraction(device.link.bandwidth_bytes_per_s) * device.link.speed
    for t in range(graph.tensor_count):
        begin, end = graph.consumer_offsets[t : t + 2].tolist()
        pins = {int(graph.tensor_producer[t]), *graph.consumers[begin:end].tolist()}
        if pins & inside and pins - inside:
            given, size = graph.transfer[t], int(graph.tensor_bytes[t])
            assert given is not None or size != UNKNOWN_BYTES
            moved = Fraction(size * 10**12) / rate if given is None else Fraction(given) / device.link.speed
            cost += ceil(moved) + device.link.latency_ps
    held = sum(int(graph.param_bytes[v]) for v in inside) + device.activation_reserve_bytes
    over = 0 if device.fast_memory_bytes is None else max(0, held - device.fast_memory_bytes)
    return cost + ceil(Fraction(over * 10**12) / rate), held


@pytest.mark.parametrize("seed", range(200))
def test_costs_equal_the_definition_and_are_no_less_than_on_the_envelope(seed: int) -> None:
    """Every stage of a random partition, with devices in any order; its memory too."""
    chance = Random(seed)
    graph = random_graph(seed, 6, time_unit="ps", largest_cost=20)
    machine = machine_of(*(random_device(chance) for _ in range(chance.randint(1, 4))))
    instance = Instance.build(graph, machine)
    assert (instance.on(range(machine.count)).cost.work == instance.cost.work).all()
    for _ in range(4):
        devices = chance.sample(range(machine.count), chance.randint(1, machine.count))
        placed = instance.on(devices)
        stage = np.zeros(graph.op_count, dtype=np.int32)
        stage[instance.order] = np.sort([chance.randrange(len(devices)) for _ in range(graph.op_count)])
        partition = Partition.from_stages(placed, stage)
        costs, least = stage_costs(placed, partition), stage_costs(placed.envelope, partition)
        brute = [
            brute_cost(graph, machine.devices[d], set(np.flatnonzero(stage == i).tolist()))
            for i, d in enumerate(devices)
        ]
        assert costs.cost.tolist() == [cost for cost, _ in brute]
        assert (costs.cost >= least.cost).all()
        assert costs.bottleneck <= instance.most_ticks
        limits = [machine.devices[d].memory_bytes for d in devices]
        fits = all(limit is None or held <= limit for limit, (_, held) in zip(limits, brute, strict=True))
        assert keeps_stage_memory(placed, costs) == fits
        assert keeps_stage_memory(placed.envelope, least) or not fits


@pytest.mark.parametrize("seed", range(50))
def test_costs_of_sets_that_are_no_stages(seed: int) -> None:
    """Any ops on any device, whether or not others could be stages beside them."""
    chance = Random(seed)
    graph = random_graph(seed, 6, time_unit="ps", largest_cost=20)
    machine = machine_of(*(random_device(chance) for _ in range(chance.randint(1, 4))))
    instance = Instance.build(graph, machine)
    for _ in range(8):
        device, inside = chance.randrange(machine.count), {v for v in range(graph.op_count) if chance.random() < 0.5}
        found = cost_of_set(instance, inside, machine.class_of[device])
        assert (found.cost, found.held_bytes) == brute_cost(graph, machine.devices[device], inside)
        assert inside or found == SetCost()
