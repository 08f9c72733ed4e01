"""Claims that no plan by ``graphpipe`` fits the devices, and the plan that needs the least memory.

A bound of the memory that every plan needs shows that there is none if it is above what devices have; a plan that fits
into some more shows how far that bound is from it.
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.checks import check_memory, resting
from mtpp.checker.report import Check, complete, fact
from mtpp.checker.tier import Tier
from mtpp.checker.training.graphpipe.bounds import GraphSearch, check_graph_bound
from mtpp.checker.training.graphpipe.costs import GraphModel
from mtpp.checker.training.graphpipe.figures import check_stage_figures
from mtpp.checker.training.graphpipe.pipeline import memory_bytes, timed_stage
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.checker.training.graphpipe.validity import NO_STAGES, stages_of, validity_checks
from mtpp.checker.training.plan_rows import LEAST_MEMORY, NO_PLAN

MEMORY_BOUND = "memory bound"

CLAIMS = (LEAST_MEMORY, MEMORY_BOUND, NO_PLAN)
"""Rows on what a document says of there being no plan; one on stages of it comes before."""


def least_memory_checks(plan: dict[str, Any], model: GraphModel, setting: Setting) -> list[Check]:
    """Check the least memory that a plan was found with, and that plan."""
    nothing = not plan["stages"] and not plan["transfers"]
    checks = [Check("stages", nothing, "none" if nothing else "there is no plan, but there are stages or transfers")]
    least, rows = plan["least_memory_bytes"], plan["least_memory_stages"]
    if least is None:
        stated = fact(LEAST_MEMORY, "none stated")
        return [*checks, Check(LEAST_MEMORY, False, "none is stated, but there are stages") if rows else stated]
    if least <= setting.memory_bytes:
        text = f"the plan says {least} bytes, devices have {setting.memory_bytes} and it finds none"
        return [*checks, Check(LEAST_MEMORY, False, text)]
    shape = validity_checks(rows, model, setting)
    checks += shape
    derived = ("stage figures", "stage memory", LEAST_MEMORY)
    if not all(check.passed for check in shape):
        return list(complete(checks, derived, NO_STAGES))
    stages = stages_of(rows, model)
    held = max(memory_bytes(stage) for stage in stages)
    return [
        *checks,
        check_stage_figures(rows, stages, [timed_stage(stage, setting) for stage in stages]),
        check_memory(dict(enumerate(map(memory_bytes, stages))), least),
        Check(LEAST_MEMORY, True, f"there is a plan with {least} bytes")
        if held == least
        else Check(LEAST_MEMORY, False, f"the plan says {least} bytes, its fullest device needs {held}"),
    ]


def no_plan_checks(
    plan: dict[str, Any], model: GraphModel, setting: Setting, search: GraphSearch | None
) -> tuple[list[Check], Tier]:
    """Check the bound of the memory that every plan needs; return the rows that rest on it, and its tier."""
    stated, least, limit = plan["memory_bound"], plan["least_memory_bytes"], setting.memory_bytes
    value = stated["value"]
    if least is not None and value > least:
        bound = Check(MEMORY_BOUND, False, f"the bound {value} is above the {least} bytes of a plan")
        tier = Tier.NONE
    else:
        bound, tier = check_graph_bound(
            stated, "memory", model, setting, search, name=MEMORY_BOUND, path=("memory_bound",)
        )
    if plan["proven"] != (value > limit):
        above = "above" if value > limit else "not above"
        said = str(plan["proven"]).lower()
        row = Check(NO_PLAN, False, f"the plan says proven {said}, but its memory bound is {above} {limit} bytes")
    elif plan["proven"]:
        row = resting(NO_PLAN, f"every plan needs at least {value} bytes, a device has {limit}", [bound])
    else:
        row = fact(NO_PLAN, "not claimed: none was found")
    return [bound, row], tier if plan["proven"] else Tier.NONE
