"""Machine that a training plan is held to: number, memory, speed and link of its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mtpp.checker.report import Check, Report

_ONE = {"speed": "1", "latency_ticks": 0}
"""Figures of devices of plans that do not state them: such planners take equal devices alone."""

_RATES = ("peak_flops_per_s", "memory_bandwidth_bytes_per_s")

_NAMES = {
    "devices": "devices",
    "memory_bytes": "memory in bytes",
    "bandwidth_bytes_per_s": "bandwidth in bytes per second",
    "latency_ticks": "ticks of latency",
    "speed": "speed",
    "peak_flops_per_s": "FLOP per second",
    "memory_bandwidth_bytes_per_s": "bytes of memory per second",
}


def held_to_machine(report: Report, plan: Mapping[str, Any], due: Mapping[str, Any] | None) -> Report:
    """Return a report on a well-formed training plan with a row on the machine that the plan has to be for.

    Parameters
    ----------
    due
        Figures of the machine by the names of :data:`_NAMES`, as the planner ``pfeife`` states them; None: the plan's
        own choice, and no row.
    """
    return report if due is None else replace(report, checks=(_machine_row(plan, due), *report.checks))


def _machine_row(plan: Mapping[str, Any], due: Mapping[str, Any]) -> Check:
    stated = {**_ONE, **plan["system"]}
    if "speed" not in plan["system"]:
        stated |= _ONE  # such a planner's latency is an option of its own, and not the machine's
    rates = plan["model"].get("system") or {}
    stated |= {key: rates.get(key, due[key]) for key in _RATES}
    if len(stated.get("topology") or ()) > 1:
        return Check("machine", False, "the plan is for networks within networks")
    for key, name in _NAMES.items():
        if stated[key] != due[key]:
            return Check(
                "machine", False, f"{name}: the plan says {_text(stated[key])}, it has to be {_text(due[key])}"
            )
    return Check("machine", True, "devices, memory, speed and link as asked for")


def _text(value: Any) -> str:
    if value is None:
        return "no limit"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
