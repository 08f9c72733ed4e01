"""Machines of planning problems, by the figures of their devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from mtpp.machine.machine import Machine

P = TypeVar("P")

_FIGURES = ("memory_bytes", "bandwidth_bytes_per_s", "latency_ps", "speeds")


def on_machine(**asked: Any) -> dict[str, Any]:
    """Return keywords of a planning problem, those of its devices joined to one machine."""
    figures = {name: asked.pop(name) for name in _FIGURES if name in asked}
    return {"machine": Machine.of_devices(asked.pop("devices"), **figures), **asked}


def on_other_devices(problem: P, **changes: Any) -> P:
    """Return a planning problem with other devices: their number, or figures of each."""
    machine: Machine = problem.machine  # type: ignore[attr-defined]
    link = machine.device.link
    figures = {
        "devices": machine.count,
        "memory_bytes": [device.memory_bytes for device in machine.devices],
        "bandwidth_bytes_per_s": link.bandwidth_bytes_per_s,
        "latency_ps": link.latency_ps,
        "speeds": [device.speed for device in machine.devices],
    }
    if "devices" in changes:
        figures |= {"memory_bytes": machine.device.memory_bytes, "speeds": None}
    return replace(problem, **on_machine(**figures | changes))  # type: ignore[type-var]
