"""Figures that a plan states of its pipeline beside its costs: throughput, speed-up, tensors between stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.checks import resting
from mtpp.checker.devices.one_device import ticks_alone
from mtpp.checker.graph import TICKS_PER_S, TickGraph
from mtpp.checker.machine import PlacedGraph
from mtpp.checker.report import OUT_OF_TIME, Check, Interrupts
from mtpp.checker.stages import stage_figures

THROUGHPUT, SPEED_UP, CROSSING = "throughput_per_s", "speed_up", "crossing"
_NAMES = {THROUGHPUT: "throughput", SPEED_UP: "speed-up", CROSSING: "crossing tensors"}


def check_figures(
    plan: Mapping[str, Any],
    graph: TickGraph,
    placed: PlacedGraph | None,
    rests_on: Sequence[Check],
    ended_by: Interrupts,
    *,
    hindered: str,
) -> list[Check]:
    """Return a row for each of these figures that a plan states; none for plans without them.

    Parameters
    ----------
    placed
        The graph on each device of a machine; None for equal devices.
    rests_on
        Rows on the stages and their costs.
    hindered
        Why stages could not be derived; empty where they were.
    """
    stated = [key for key in _NAMES if key in plan]
    if hindered:
        return [Check(_NAMES[key], None, hindered) for key in stated]
    try:
        return [_checked(key, plan, graph, placed, rests_on) for key in stated]
    except ended_by:
        return [Check(_NAMES[key], None, OUT_OF_TIME) for key in stated]


def _checked(
    key: str, plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None, rests_on: Sequence[Check]
) -> Check:
    said, due = plan[key], _due(key, plan, graph, placed)
    if key != CROSSING and said is not None:
        said = float(said)
    if said != due:
        whole = _text(key, said) == _text(key, due)
        told = f"the plan says {_text(key, said, whole=whole)}, it is {_text(key, due, whole=whole)}"
        return Check(_NAMES[key], False, told)
    rows = [row for row in rests_on if key != CROSSING or row.name != "bottleneck"]
    return resting(_NAMES[key], _text(key, due), rows)


def _due(key: str, plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None) -> Any:
    if key == CROSSING:
        return crossing(graph, [plan["assignment"][name] for name in graph.op_names])
    bottleneck = plan["bottleneck"]
    if key == THROUGHPUT:
        timed = plan["time_unit"] != "1"
        return float(Fraction(TICKS_PER_S, bottleneck)) if timed and bottleneck else None
    alone = _fastest_alone(plan, graph, placed)
    return None if alone is None or not bottleneck else float(Fraction(alone, bottleneck))


def crossing(graph: TickGraph, stage_of: Sequence[int]) -> dict[str, int]:
    """Return the number of tensors whose producer and readers are in several stages, and the bytes of them all."""
    tensors = [
        t
        for t, readers in enumerate(graph.consumers)
        if any(stage_of[v] != stage_of[graph.producer[t]] for v in readers)
    ]
    return {"tensors": len(tensors), "bytes": sum(graph.tensor_bytes[t] or 0 for t in tensors)}


def _fastest_alone(plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None) -> int | None:
    """Return the ticks of the whole graph on the fastest device that holds it; None if none does."""
    if "degrees" in plan:
        return None
    if placed is not None:
        alone = [ticks_alone(plan, graph, placed, i) for i in range(len(placed.devices))]
        return min((ticks for ticks in alone if ticks is not None), default=None)
    figures = stage_figures(graph, [0] * graph.op_count, dict(plan["system"]))[0]
    limit = plan["system"].get("stage_memory_bytes")
    held = figures.param_bytes + figures.state_bytes + figures.peak_bytes
    return None if limit is not None and held > limit else figures.cost


def _text(key: str, value: Any, *, whole: bool = False) -> str:
    """Write a figure for people, with all its digits where *whole*."""
    if value is None:
        return "none"
    if key == CROSSING:
        return f"{value['tensors']} tensor{'' if value['tensors'] == 1 else 's'}, {value['bytes']} bytes"
    return f"{value!r}" if whole else f"{value:.4g}{'×' if key == SPEED_UP else ' inferences/s'}"
