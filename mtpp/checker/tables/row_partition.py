"""Partition of a row of a table: its stages added up again on their devices, and the objective that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.checks import check_assignment, check_edges, check_together, compare, hold, partition_bottleneck
from mtpp.checker.claim import LATENCY
from mtpp.checker.devices.replicas import DeviceList, ReplicatedStages
from mtpp.checker.goal import PlanGoal
from mtpp.checker.report import Check, complete
from mtpp.checker.stages import StageFigures
from mtpp.checker.tables.row_claims import RowClaims

_ROW = "the row"
UPPER = "upper"
"""Key of the objective, and name of its row."""


def rows_on_stages(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the rows of the report on a row's stages."""
    stated = (LATENCY, *PlanGoal.of(row).rows, UPPER) if LATENCY in row else PlanGoal.of(row).rows
    return ("edges", *stated, "stage memory", "bottleneck")


def derived_objective(claims: RowClaims, checks: list[Check]) -> int | None:
    """Add the rows on the partition; return its objective if it could be derived."""
    names = rows_on_stages(claims.row)
    if not hold(checks, ("devices",)):
        checks[:] = complete(checks, ("assignment", *names), "the devices are wrong")
        return None
    if claims.device_list is not None:
        return _on_several(claims, claims.device_list, checks, names)
    row, placed, found = dict(claims.row), claims.placed, []
    on, between = None, None
    if placed is not None:
        on = [(placed.by_device[i], placed.devices[i]) for i in row["devices"]]
        between = placed.between_stages(row["devices"])

    def rows(stages: dict[int, StageFigures]) -> list[Check]:
        costs = [stage.cost for stage in stages.values()]
        found.append(sum(costs) if claims.goal.objective == LATENCY else max(costs))
        return _figure_rows(claims, max(costs), sum(costs))

    key = "bottleneck" if "bottleneck" in row else UPPER
    reached = partition_bottleneck(row, key, claims.graph, checks, _ROW, names, rows, on, between)
    return None if reached is None else found[0]


def _figure_rows(claims: RowClaims, bottleneck: int, latency: int) -> list[Check]:
    """Return the rows on the latency, the limit and the objective, of rows that state more than a bottleneck."""
    row, goal, rows = claims.row, claims.goal, []
    if LATENCY in row:
        rows.append(compare(LATENCY, row[LATENCY], latency, "ticks", _ROW))
    rows += goal.limit_rows(bottleneck, latency)
    if UPPER in rows_on_stages(claims.row):
        value = latency if goal.objective == LATENCY else bottleneck
        rows.append(compare(UPPER, row[UPPER], value, "ticks", _ROW))
    return rows


def _on_several(claims: RowClaims, devices: DeviceList, checks: list[Check], names: tuple[str, ...]) -> int | None:
    """Add the rows on stages of several devices; return the bottleneck if it could be derived."""
    row, graph = claims.row, claims.graph
    assigned = check_assignment(row["assignment"], len(row["devices"]), graph)
    checks.append(assigned)
    if not assigned.passed:
        checks[:] = complete(checks, names, "the assignment is wrong")
        return None
    stage_of = [row["assignment"][name] for name in graph.op_names]
    found = ReplicatedStages.of(claims.as_plan(), stage_of, devices)
    bottleneck = max(stage.cost for stage in found.stages.values())
    checks += [
        check_edges(graph, stage_of),
        *check_together(row.get("together", []), row["assignment"]),
        *_figure_rows(claims, bottleneck, found.latency),
        found.memory_row(),
        *found.length_rows(),
        compare("bottleneck", row.get("bottleneck", row[UPPER]), bottleneck, "ticks", _ROW),
    ]
    return bottleneck
