"""Frontier of a plan: partitions that no other one beats in both bottleneck and latency, each derived anew.

The points stand in increasing bottleneck and decreasing latency, and the first one is the plan itself. The lower bound
of a point is on the latency of all partitions whose bottleneck is below the next point's; of all, for the last. Where
each bound meets its point's latency, and the plan's own lower bound its bottleneck, no partition is missing: some point
is as small as any partition in both figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from mtpp.checker.checks import check_assignment, check_bound, check_edges, check_memory, check_together
from mtpp.checker.claim import LATENCY
from mtpp.checker.facts import counted
from mtpp.checker.goal import PlanGoal, claim_of_bound
from mtpp.checker.graph import TickGraph
from mtpp.checker.machine import PlacedGraph
from mtpp.checker.report import OUT_OF_TIME, Check, Interrupts, Search, Tier
from mtpp.checker.stages import stage_figures

POINTS, BOUNDS = FRONTIER_ROWS = ("frontier", "frontier bounds")
"""Names of the rows."""


def check_frontier(
    plan: dict[str, Any],
    graph: TickGraph,
    placed: PlacedGraph | None,
    ended_by: Interrupts,
    search: Search | None,
    *,
    ended: bool,
) -> list[Check]:
    """Return the rows on a frontier; none where the plan has none.

    Parameters
    ----------
    ended
        Whether the time is over already.
    """
    if "frontier" not in plan:
        return []
    if ended:
        return [Check(name, None, OUT_OF_TIME) for name in (POINTS, BOUNDS)]
    points = plan["frontier"]
    rows: list[Check] = []
    try:
        fault = _fault_in_order(plan, points)
        for i, point in enumerate(points):
            fault = fault or _fault_in_point(plan, graph, placed, point, i)
        rows.append(Check(POINTS, fault is None, fault or f"{counted(len(points), 'partition')}, none beats another"))
        rows.append(_check_bounds(plan, graph, placed, search))
    except ended_by:
        rows += [Check(name, None, OUT_OF_TIME) for name in (POINTS, BOUNDS)[len(rows) :]]
    return rows


def _fault_in_order(plan: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> str | None:
    if not points:
        return "it has no point"
    for i, (one, other) in enumerate(pairwise(points)):
        if one["bottleneck"] >= other["bottleneck"] or one["latency"] <= other["latency"]:
            return f"point {i + 1} is beaten by point {i}, or the other way round"
    first = points[0]
    for key in ("bottleneck", "latency", "assignment"):
        if first[key] != plan.get(key):
            return f"the {key} of the first point is not the plan's"
    if "machine" in plan and first["devices"] != [stage["device"]["index"] for stage in plan["stages"]]:
        return "the devices of the first point are not the plan's"
    return None


def _fault_in_point(
    plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None, point: Mapping[str, Any], i: int
) -> str | None:
    """Return the first thing that is wrong with a point, by its number; None if nothing is."""
    devices, count = point["devices"], plan["k"] if placed is None else len(placed.devices)
    fixed = placed is None or plan["machine"]["order"] == "fixed"
    if sorted(devices) != list(range(count)) or (fixed and devices != list(range(count))):
        return f"point {i}: its stages do not stand on the devices as they may"
    assigned = check_assignment(point["assignment"], count, graph)
    if not assigned.passed:
        return f"point {i}: {assigned.detail}"
    stage_of = [point["assignment"][name] for name in graph.op_names]
    on = None if placed is None else [(placed.by_device[d], placed.devices[d]) for d in devices]
    between = None if placed is None else placed.between_stages(devices)
    stages = stage_figures(graph, stage_of, plan["system"], on, between)
    if len(stages) > plan["k"]:
        return f"point {i}: {counted(len(stages), 'stage')} have ops, k is {plan['k']}"
    needs = {s: figures.param_bytes + figures.state_bytes + figures.peak_bytes for s, figures in stages.items()}
    limits = None if on is None else {s: on[s][1]["stage_memory_bytes"] for s in stages}
    checks = [
        check_edges(graph, stage_of),
        *check_together(plan["together"], point["assignment"]),
        check_memory(needs, plan["system"].get("stage_memory_bytes"), limits),
    ]
    wrong = next((check for check in checks if check.passed is False), None)
    if wrong is not None:
        return f"point {i}: {wrong.detail}"
    costs = [stage.cost for stage in stages.values()]
    for key, derived in (("bottleneck", max(costs)), ("latency", sum(costs))):
        if point[key] != derived:
            return f"point {i}: the plan says a {key} of {point[key]} ticks, it is {derived}"
    return None


def _check_bounds(
    plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None, search: Search | None
) -> Check:
    """Check the lower bound of each point."""
    points, unchecked, met = plan["frontier"], [], 0
    for i, point in enumerate(points):
        bound = point["lower_bound"]
        limit = points[i + 1]["bottleneck"] - 1 if i + 1 < len(points) else None
        path = ("frontier", i, "lower_bound", "proof")
        claim = claim_of_bound(plan, graph, placed, bound, PlanGoal(LATENCY, limit), path)
        row = claim
        if not isinstance(claim, Check):
            row, _ = check_bound(claim, bound["method"], Tier(bound["tier"]), point["latency"], search)
        assert isinstance(row, Check)
        if row.passed is False:
            return Check(BOUNDS, False, f"point {i}: {row.detail}")
        if row.passed is None:
            unchecked.append(f"point {i}: {row.detail}")
        met += bound["value"] == point["latency"]
    if unchecked:
        return Check(BOUNDS, None, unchecked[0])
    of_all = " and its least bottleneck is proven: it is complete" if met == len(points) and plan["optimal"] else ""
    return Check(BOUNDS, True, f"{met} of {len(points)} meet the latency of their point{of_all}")
