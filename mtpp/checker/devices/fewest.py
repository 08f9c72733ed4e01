"""The claim that a plan has the fewest stages, or devices of a machine, that keep every stage to a bottleneck.

Devices that may be used but are not cost nothing: where one device fewer does not do, no smaller number does. So a
lower bound above the limit, of all plans on one device fewer, is the whole proof.
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.checks import check_bound
from mtpp.checker.claim import BOTTLENECK
from mtpp.checker.facts import counted
from mtpp.checker.goal import PlanGoal, claim_of_bound
from mtpp.checker.graph import TickGraph
from mtpp.checker.intervals.bound import check_interval_bound
from mtpp.checker.intervals.degree_graphs import DegreeGraphs
from mtpp.checker.machine import PlacedGraph
from mtpp.checker.report import OUT_OF_TIME, Check, Interrupts, Search, Tier

FEWEST = {"stage": "fewest stages", "device": "fewest devices"}
"""Name of the row: of devices where a machine lists them."""

KEY = "fewest_devices"


def check_fewest(
    plan: dict[str, Any],
    graph: TickGraph,
    placed: PlacedGraph | None,
    ended_by: Interrupts,
    search: Search | None,
    *,
    ended: bool,
    degrees: DegreeGraphs | None = None,
) -> list[Check]:
    """Return the row on the fewest stages or devices; none where the plan does not claim it.

    Parameters
    ----------
    ended
        Whether the time is over already.
    degrees
        Graphs of a plan whose stages have degrees.
    """
    if KEY not in plan:
        return []
    late = Check(_row(plan), None, OUT_OF_TIME)
    try:
        return [late if ended else _checked(plan, graph, placed, search, degrees)]
    except ended_by:
        return [late]


def _row(plan: dict[str, Any]) -> str:
    return FEWEST[_what(plan)]


def _what(plan: dict[str, Any]) -> str:
    return "device" if "machine" in plan else "stage"


def _checked(
    plan: dict[str, Any],
    graph: TickGraph,
    placed: PlacedGraph | None,
    search: Search | None,
    degrees: DegreeGraphs | None,
) -> Check:
    stated, k = plan[KEY], plan["k"]
    most, bound = stated["max_bottleneck"], stated.get("lower_bound")
    name, fewer, on = _row(plan), counted(k - 1, _what(plan)), "on" if "machine" in plan else "in"
    if plan.get("objective", BOTTLENECK) != BOTTLENECK or "max_latency" in plan:
        return Check(name, False, "they are those of the least bottleneck, whatever the latency")
    if plan["bottleneck"] > most:
        return Check(name, False, f"the bottleneck is {plan['bottleneck']} ticks, the limit {most}")
    if k == 1:
        return Check(
            name, bound is None, "one, and fewer is none" if bound is None else f"a bound for no {_what(plan)}"
        )
    if bound is None:
        return Check(name, False, f"there is no bound for {fewer}")
    if bound["value"] <= most:
        said = f"the bound for {fewer} is {bound['value']} ticks, within the {most} ticks"
        return Check(name, False, said)
    path = (KEY, "lower_bound", "proof")
    if degrees is not None and placed is not None:
        one_fewer = {**plan, "k": k - 1, "lower_bound": bound}
        row, _ = check_interval_bound(one_fewer, placed, degrees, PlanGoal(BOTTLENECK, None), None)
        return Check(name, row.passed, f"{k} for {most} ticks; {on} {fewer} {row.detail}")
    claim = claim_of_bound({**plan, "k": k - 1}, graph, placed, bound, PlanGoal(BOTTLENECK, None), path)
    if not isinstance(claim, Check):
        claim, _ = check_bound(claim, bound["method"], Tier(bound["tier"]), None, search)
    return Check(name, claim.passed, f"{k} for {most} ticks; {on} {fewer} {claim.detail}")
