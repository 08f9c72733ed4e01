"""The whole graph on one device of a machine, which a plan compares its bottleneck with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.graph import TickGraph
from mtpp.checker.machine import STAGE_TIMES, PlacedGraph
from mtpp.checker.report import OUT_OF_TIME, Check, Interrupts
from mtpp.checker.stages import stage_figures

KEY, ROW = "one_device", "one device"


def check_one_device(plan: dict[str, Any], graph: TickGraph, placed: PlacedGraph, ended_by: Interrupts) -> list[Check]:
    """Return the row on the fastest device that holds the whole graph; none where the plan does not name it."""
    if KEY not in plan:
        return []
    try:
        return [_checked(plan, graph, placed)]
    except ended_by:
        return [Check(ROW, None, OUT_OF_TIME)]


def _checked(plan: dict[str, Any], graph: TickGraph, placed: PlacedGraph) -> Check:
    alone = [ticks_alone(plan, graph, placed, i) for i in range(len(placed.devices))]
    least = min((ticks for ticks in alone if ticks is not None), default=None)
    stated = plan[KEY]
    if stated is None or least is None:
        said = "no device holds the whole graph" if least is None else f"one does, in {least} ticks"
        return Check(ROW, stated is None and least is None, said)
    first = alone.index(least)
    if (stated["index"], stated["cost"]) != (first, least):
        said = f"device {stated['index']} in {stated['cost']} ticks, it is device {first} in {least}"
        return Check(ROW, False, f"the plan says {said}")
    return Check(ROW, True, f"device {first} takes {least} ticks for the whole graph, no other one less")


def ticks_alone(plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph, i: int) -> int | None:
    """Return the ticks of the whole graph on a device; None if it does not hold it."""
    device = placed.devices[i]
    if STAGE_TIMES in device and graph.op_count > len(device[STAGE_TIMES]):
        return None
    on = [(placed.by_device[i], device)]
    figures = stage_figures(graph, [0] * graph.op_count, plan["system"], on)[0]
    held = figures.param_bytes + figures.state_bytes + figures.peak_bytes
    limit = device["stage_memory_bytes"]
    return None if limit is not None and held > limit else figures.cost
