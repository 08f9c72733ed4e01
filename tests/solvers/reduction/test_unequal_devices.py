"""Merges on devices that differ leave the least bottleneck in fixed order as it is."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
from graph_strategies import merging_graph

from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine
from mtpp.solvers.reduction.reduction import reduce_instance


def test_the_optimum_on_unequal_devices_stays() -> None:
    """Merges hold in every class of devices: in fixed order the least bottleneck is as before."""
    merged = 0
    for seed in range(150):
        chance = Random(seed)
        graph = merging_graph(seed, 5, time_unit="ps", largest_params=chance.choice((0, 20)))
        groups = tuple(DeviceGroup(random_device(chance), 1) for _ in range(3))
        instance = Instance.build(graph, Machine(groups, (Level(3, groups[0].device.link),)))
        inner = reduce_instance(instance).instance
        merged += instance.op_count - inner.op_count
        assert least_bottleneck(instance) == least_bottleneck(inner)
    assert merged > 50


def random_device(chance: Random) -> Device:
    """Return a device with random figures."""
    link = Link(10**12, chance.choice((0, 3)), chance.choice((1, 2, Fraction(1, 3))))
    fast, limit = chance.choice((None, 40)), chance.choice((None, None, 80))
    return Device("d", 1, 1, link, fast, 3, memory_bytes=limit, speed=chance.choice((1, 2, Fraction(1, 3))))


def least_bottleneck(instance: Instance) -> int | None:
    """Return the least bottleneck of all partitions that keep the memory of each device, if there is any."""
    tails, heads = instance.edges
    found = []
    for stages in product(range(instance.k), repeat=instance.op_count):
        stage = np.array(stages, dtype=np.int32)
        if (stage[tails] <= stage[heads]).all():
            costs = stage_costs(instance, Partition.from_stages(instance, stage))
            found += [costs.bottleneck] if keeps_stage_memory(instance, costs) else []
    return min(found, default=None)
