"""Devices of a machine file as planners of training take them: their number, memory, speed and link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError
from mtpp.names import FREE, PFEIFE

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.options.machine import Devices
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine
    from mtpp.units import Exact


@dataclass(frozen=True)
class MachineDevices:
    """Devices of a machine.

    Attributes
    ----------
    machine
        As it was given.
    devices
        With number, memory and bandwidth in place of the machine.
    speeds
        Of each device; None where all have speed 1.
    latency_ps
        Of each message.
    system
        Device of speed 1 with the rates and the link of all; models without times are read for it.
    """

    machine: Machine
    devices: Devices
    speeds: tuple[Exact, ...] | None
    latency_ps: int
    system: Device


def equal_devices(devices: Devices, planner: str) -> tuple[Devices, Machine | None]:
    """Return the devices with figures in place of a machine, and the machine, for planners that take equal ones alone.

    Raises
    ------
    InputError
        If devices differ; names the planner that takes them.
    """
    if devices.machine is None:
        return devices, None
    machine = _read(devices)
    if len(machine.classes) > 1 or machine.classes[0].speed != 1 or machine.links[0].latency_ps:
        what = "devices differ" if len(machine.classes) > 1 else "devices have a speed or latency of their own"
        raise InputError(
            f"its {what}, and the planner {planner} takes equal ones alone",
            parameter="machine",
            remedy=f"use ‹planner› {PFEIFE}",
        )
    return _figures(devices, machine).devices, machine


def machine_devices(devices: Devices, observer: Observer) -> MachineDevices | None:
    """Return the devices of a machine, each with its speed and memory; None where there is no machine.

    Raises
    ------
    InputError
        If devices differ in more than that.
    """
    if devices.machine is None:
        return None
    machine = _read(devices)
    if machine.order == FREE:
        observer.warn("‹machine›: a planner of training keeps devices in the order of the file")
    return _figures(devices, machine)


def machine_figures(devices: Devices) -> dict[str, Any]:
    """Return the figures of a machine's devices as a training plan by ``pfeife`` states them.

    Raises
    ------
    InputError
        If devices differ in more than memory and speed: no training plan is for such a machine.
    """
    from mtpp.formats.results.split_plan import exact_text

    found = _figures(devices, _read(devices))
    speeds = [exact_text(speed) for speed in found.speeds or (1,)]
    memory: Any = found.devices.memory
    return {
        "devices": found.devices.devices,
        "memory_bytes": list(memory) if isinstance(memory, tuple) else memory,
        "bandwidth_bytes_per_s": found.devices.bandwidth,
        "latency_ticks": found.latency_ps,
        "speed": speeds[0] if len(set(speeds)) == 1 else speeds,
        "peak_flops_per_s": found.system.peak_flops_per_s,
        "memory_bandwidth_bytes_per_s": found.system.memory_bandwidth_bytes_per_s,
    }


def _read(devices: Devices) -> Machine:
    from mtpp.api.options.machine import OnMachine, System

    for name in ("devices", "memory", "topology"):
        if getattr(devices, name) is not None:
            raise InputError("is a figure of the machine", parameter=name, remedy="leave it out")
    given = OnMachine(machine=devices.machine)
    machine = given.placed_for(System(bandwidth=devices.bandwidth))
    assert machine is not None
    return machine


def _figures(devices: Devices, machine: Machine) -> MachineDevices:
    classes = machine.classes
    for what, values in (
        ("rates of their systems", [device.rates for device in classes]),
        ("links", [(device.link.rate, device.link.latency_ps) for device in classes]),
        ("whether they have a memory", [device.memory_bytes is None for device in classes]),
    ):
        if len(set(values)) > 1:
            remedy = "give the memory of each" if what.startswith("whether") else "give their speeds instead"
            problem = f"its devices differ in {what}; speed and memory may differ"
            raise InputError(problem, parameter="machine", remedy=remedy)
    if any(device.costs or device.stage_times_ps for device in classes):
        raise InputError("times of its own for a device are not planned for", parameter="machine", remedy="give speeds")
    if any(device.tensor for device in classes):
        raise InputError("tensor_parallel is of layers of language models", parameter="machine", remedy="leave it out")
    rate = classes[0].link.rate
    if rate.denominator != 1:
        raise InputError("its bandwidth · link_speed is no whole number of bytes a second", parameter="machine")
    sizes = [device.memory_bytes for device in machine.devices]
    memory: Any = None if None in sizes else sizes
    if memory is not None and len(set(memory)) == 1:
        memory = memory[0]
    plain = replace(devices, machine=None, devices=machine.count, memory=memory, bandwidth=int(rate))
    speeds = tuple(device.speed for device in machine.devices)
    system = replace(
        classes[0],
        name=machine.name or "machine",
        speed=1,
        memory_bytes=None,
        fast_memory_bytes=None,
        activation_reserve_bytes=0,
        link=replace(classes[0].link, bandwidth_bytes_per_s=int(rate), speed=1, latency_ps=0),
    )
    equal = all(speed == 1 for speed in speeds)
    return MachineDevices(machine, plain, None if equal else speeds, classes[0].link.latency_ps, system)
