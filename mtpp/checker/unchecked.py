"""Reports on plans whose model was looked for and not found: nothing in them holds but what they say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.capacity.claim import ROWS as CAPACITY_ROWS
from mtpp.checker.capacity.shape import CAPACITY
from mtpp.checker.checks import PARTITION, gap_rows, proven_words, rows_named
from mtpp.checker.document import check_plan
from mtpp.checker.facts import dims_rows, groups_row, system_rows
from mtpp.checker.frontier import FRONTIER_ROWS
from mtpp.checker.goal import PlanGoal
from mtpp.checker.intervals.degree_graphs import DEGREES, ROW, STAGES
from mtpp.checker.intervals.first_token import FIRST_TOKEN
from mtpp.checker.intervals.first_token import ROW as FIRST_ROW
from mtpp.checker.names import any_training_name_rows, plan_name_rows
from mtpp.checker.report import BOUND_CHECK, Check, Report, Tier, complete
from mtpp.checker.training.plan_rows import BANDWIDTH, bandwidth_row
from mtpp.checker.training.versions import check_any_training_plan

MODEL_FILE = "model file"

_PLAN = "the plan"
_WHY = "its model was not found"
_OF_PLAN = (
    *("op and tensor counts", "ticks", "assignment", "edges", "stage costs", "stage memory", "bottleneck"),
    BOUND_CHECK,
)
_OF_TRAINING_PLAN = ("stages and times", BOUND_CHECK, "ratio", "optimal")
_OF_NO_PLAN = ("no plan",)


def unchecked_plan(
    plan: Any,
    why: str,
    *,
    system_due: Mapping[str, Any] | None = None,
    dims_due: Mapping[str, int] | None = None,
) -> Report:
    """Return the report on a plan without its model.

    Its figures are compared with each other all the same, and held to what the user asks for.

    Parameters
    ----------
    why
        The model was not found.

    Raises
    ------
    InputError
        If the plan is malformed.
    """
    check_plan(plan, ())
    goal, stated = PlanGoal.of(plan), plan["lower_bound"]
    reached = goal.value(plan)
    tier = Tier(stated["tier"])
    checks = [
        *system_rows(plan["system"], system_due or {}, _PLAN, plan["model"]),
        *dims_rows(plan["model"], dims_due, _PLAN),
        groups_row(plan["together"], plan["model"]["ops"]),
        Check(MODEL_FILE, None, why),
        *plan_name_rows(plan, None),
    ]
    if stated["value"] > reached:
        checks.append(
            Check(BOUND_CHECK, False, f"{stated['value']} is above the {goal.objective} {reached} of the plan")
        )
        tier = Tier.NONE
    of_frontier = FRONTIER_ROWS if "frontier" in plan else ()
    of_degrees: tuple[str, ...] = (ROW, STAGES) if DEGREES in plan else ()
    of_degrees += (FIRST_ROW,) if FIRST_TOKEN in plan else ()
    of_capacity = CAPACITY_ROWS if CAPACITY in plan else ()
    checks = list(complete(checks, (*_OF_PLAN, *goal.rows, *of_frontier, *of_degrees, *of_capacity), _WHY))
    rests_on = rows_named(checks, (*PARTITION, BOUND_CHECK))
    checks += gap_rows(plan, reached, stated["value"], Tier(stated["tier"]), rests_on, _PLAN)
    words = proven_words(
        reached,
        stated["value"],
        plan["k"],
        together=bool(plan["together"]),
        embedded=False,
        objective=goal.objective,
        within=goal.words,
    )
    return Report(tuple(checks), tier, None, bound_rechecked=False, proven=words)


def unchecked_training_plan(plan: Any, why: str, *, system_due: Mapping[str, Any] | None = None) -> Report:
    """Return the report on a training plan of any version without its model, held to the bandwidth asked for.

    Raises
    ------
    InputError
        If the plan is malformed.
    """
    check_any_training_plan(plan, ())
    due, system = system_due or {}, plan["system"]
    held = [bandwidth_row(system, system.get("topology") or [], due, _PLAN)] if BANDWIDTH in due else []
    feasible = plan["feasible"]
    claims = _OF_TRAINING_PLAN if feasible else _OF_NO_PLAN
    checks = complete([*held, Check(MODEL_FILE, None, why), *any_training_name_rows(plan)], claims, _WHY)
    tier = Tier(plan["lower_bound"]["tier"]) if feasible else Tier.NONE
    subject = "the lower bound" if feasible else "that there is no plan"
    return Report(checks, tier, None, bound_rechecked=False, proven="", subject=subject)
