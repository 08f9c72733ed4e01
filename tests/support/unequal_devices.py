"""Instances on two devices that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from graph_strategies import random_graph

from mtpp.inference.instance import Instance
from mtpp.inference.stage_cost import StageCost
from mtpp.machine.device import Device
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import DeviceGroup, Machine

FAST = Device("fast", 10**12, 10**11, Link(2 * 10**12), 60, 5, memory_bytes=90)
SLOW = Device("slow", 10**12, 10**11, Link(10**12), 40, 9, memory_bytes=120)


def two_devices(one: Device = FAST, other: Device = SLOW) -> Machine:
    """Return a machine of two devices in one network."""
    return Machine((DeviceGroup(one, 1), DeviceGroup(other, 1)), (Level(2, one.link),))


def unequal_instance(seed: int) -> Instance:
    """Return an instance in which the second device takes twice the time, with other memory and half the bandwidth."""
    plain = Instance.build(random_graph(seed, 5, time_unit="ps", largest_cost=20), Machine.uniform(2, FAST))
    rows = np.vstack([plain.work, 2 * plain.work]), np.vstack([plain.transfer, 2 * plain.transfer])
    return replace(plain, cost=StageCost(two_devices(), *rows, plain.param_bytes))
