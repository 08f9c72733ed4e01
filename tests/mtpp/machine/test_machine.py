"""Machines: devices in order, their classes and envelope, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from graph_strategies import random_graph
from hypothesis import given
from hypothesis import strategies as st
from unequal_devices import FAST, SLOW, two_devices, unequal_instance

from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.problem import PlanningProblem


def test_devices_that_differ_in_their_names_are_of_one_class() -> None:
    """Classes and links stand in the order in which they come."""
    machine = Machine((DeviceGroup(FAST, 2), DeviceGroup(SLOW, 1), DeviceGroup(replace(FAST, name="x"), 1)), ())
    assert (list(machine.class_of), len(machine.classes)) == ([0, 0, 1, 0], 2)
    assert list(machine.links) == [FAST.link, SLOW.link]


def test_the_envelope_is_the_best_of_each_quantity() -> None:
    """Rates, bandwidth, speed and memory as large, latency and reserve as small as those of any device."""
    other = Device("o", 10**13, 10**10, Link(3, 7), None, 1, memory_bytes=10, speed=Fraction(3, 2))
    found = two_devices(replace(FAST, link=Link(2, 9)), other).device
    assert found == Device(
        "best of all devices", 10**13, 10**11, Link(3, 7), None, 1, memory_bytes=90, speed=Fraction(3, 2)
    )
    assert two_devices(FAST, FAST).device == FAST


@given(st.integers(0, 500))
def test_no_partition_costs_less_than_on_the_envelope(seed: int) -> None:
    """Costs of stages by class are the sums of their parts, and at least those on the envelope."""
    instance = unequal_instance(seed)
    least = replace(instance, cost=instance.cost.of_envelope(instance.work, instance.transfer, instance.param_bytes))
    for stages in product(range(2), repeat=instance.op_count):
        stage = np.array(stages, dtype=np.int32)
        if (stage[instance.edges[0]] > stage[instance.edges[1]]).any():
            continue
        partition = Partition.from_stages(instance, stage)
        costs, best = stage_costs(instance, partition), stage_costs(least, partition)
        assert (costs.cost >= best.cost).all()
        assert keeps_stage_memory(least, best) or not keeps_stage_memory(instance, costs)
        for j, device in enumerate((FAST, SLOW)):
            inside = stage == j
            held = int(instance.param_bytes[inside].sum()) + device.activation_reserve_bytes
            over = device.link.streaming_ps(max(0, held - (device.fast_memory_bytes or 0))) if inside.any() else 0
            cut = [0 < inside[pins].sum() < len(pins) for pins in np.split(instance.pins, instance.pin_offsets[1:-1])]
            due = (j + 1) * int(instance.work[inside].sum() + instance.transfer[np.array(cut, dtype=bool)].sum())
            assert costs.cost[j] == due + over


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_devices(FAST, replace(SLOW, peak="order")), "/device: devices differ in how they count"),
        (lambda: Link(1, -1), "latency: must be a whole number of at least 0, not -1"),
        (lambda: replace(FAST, speed=0), "speed: must be a number above zero, not 0"),
        (lambda: replace(FAST, speed="fast"), "speed: must be a number above zero, not 'fast'"),
        (lambda: Device("x", None, None, FAST.link).modelled_work_ps(1, 1), "x: has no rates"),
        (lambda: Device.from_document(FAST.to_document() | {"speed": 2}), "/system: not a system: unknown key"),
        (lambda: Device.from_document([1]), "/system: not a system"),  # type: ignore[arg-type]
        (lambda: Machine.of_devices(2, bandwidth_bytes_per_s=1, memory_bytes=[4, None]), "memory: is given for some"),
        (lambda: Machine.of_devices(3, bandwidth_bytes_per_s=1, speeds=[1, 1]), "speed: 2 values for 3 devices"),
        (lambda: built(Machine.of_levels((Level(2, Link(1)),) * 2)), "topology: there has to be one network here"),
        (lambda: PlanningProblem(None, machine=two_devices(), micro_batches=1), "devices: all devices have to be"),
        (lambda: GraphProblem.build(None, machine=two_devices(), mini_batch=1), "devices: all devices have to be"),
    ],
)
def test_refused(call: Any, message: str) -> None:
    """One line that names the parameter."""
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message)


def built(machine: Machine) -> Instance:
    """Return a graph on a machine."""
    return Instance.build(random_graph(0, 3), machine)
