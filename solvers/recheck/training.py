"""Exhaustive searches behind training plans, run again: that none is faster, or that there is none at all."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mtpp.checker.facts import counted
from mtpp.checker.report import BOUND_CHECK, Check, Outcome, Tier
from mtpp.checker.training.bounds import TrainingClaim
from mtpp.checker.training.graphpipe.bounds import CHAINS, EXHAUSTIVE, GraphClaim
from mtpp.checker.training.infeasible import infeasible_checks
from mtpp.checker.training.model import TickModel
from mtpp.checker.training.plan_rows import LEAST_MEMORY, NO_PLAN
from mtpp.solvers.recheck.graphpipe.chains import recheck_chains
from mtpp.solvers.recheck.graphpipe.exhaustive import recheck_exhaustive
from mtpp.solvers.recheck.levels import search_levels
from mtpp.solvers.recheck.pipelines import Searched, TooLarge, Watcher, search_all

_SEARCHES = {CHAINS: recheck_chains, EXHAUSTIVE: recheck_exhaustive}

METHOD = "downset"
"""Name of the search among the methods of lower bounds."""

LOOK_AT_SOME = ("equi", "pipedream-2bw")
"""Planners that look at some plans only: the least memory that they state would do, others' is the least there is."""


def search_plans(
    model: TickModel, system: dict[str, Any], below: Fraction | None, memory_bytes: int, watcher: Watcher
) -> Searched:
    """Tell whether there is any plan in which nothing takes as long as *below* ticks; None: whatever it takes.

    Parameters
    ----------
    system
        Of the plan; its memory counts for nothing, *memory_bytes* is what devices have.

    Raises
    ------
    TooLarge
        If the search is out of reach.
    """
    nested = (system.get("topology") or ())[1:]
    return (search_levels if nested else search_all)(model, system, below, memory_bytes, watcher)


def recheck_bound(claim: TrainingClaim, method: str, watcher: Watcher) -> Check:
    """Search all plans for one that takes less than a bound of tier ``enumerated``.

    Returns
    -------
    Whether there is none; *passed* is None if that is out of reach.
    """
    if method != METHOD:
        return Check(BOUND_CHECK, False, f"no search is known by the name of {method[:60]!r}")
    try:
        searched = search_plans(claim.model, claim.system, claim.value, claim.system["memory_bytes"], watcher)
    except TooLarge as error:
        return Check(BOUND_CHECK, None, f"{method}: the search cannot be run again: {error}")
    if searched.found:
        return Check(BOUND_CHECK, False, f"{method}: there is a plan that takes less than {claim.value} ticks")
    return Check(BOUND_CHECK, True, f"{method}: no plan takes less than {claim.value} ticks: {_looked_at(searched)}")


def recheck_no_plan(plan: dict[str, Any], model: TickModel, watcher: Watcher) -> list[Check]:
    """Search for any plan at all, with the memory that there is and with the least that is said to do.

    Returns
    -------
    Checks of what the document says; *passed* is None for what is out of reach. Where it does not claim to have looked
    at all plans, only that there is one with the least memory that it states. No search where single layers show that
    there is none.
    """
    checks = []
    if plan["proven"]:
        found, tier = infeasible_checks(plan, model)
        shown = next(check for check in found if check.name == NO_PLAN)
        checks.append(shown if tier is Tier.EXACT else _recheck_none(model, plan, watcher))
    if plan["least_memory_bytes"] is not None:
        checks.append(_recheck_least(plan["least_memory_bytes"], model, plan, watcher))
    return checks


def _recheck_none(model: TickModel, plan: dict[str, Any], watcher: Watcher) -> Check:
    try:
        searched = search_plans(model, plan["system"], None, plan["system"]["memory_bytes"], watcher)
    except TooLarge as error:
        return Check(NO_PLAN, None, f"the search cannot be run again: {error}")
    return Check(NO_PLAN, not searched.found, "there is one" if searched.found else f"none: {_looked_at(searched)}")


def _recheck_least(least: int, model: TickModel, plan: dict[str, Any], watcher: Watcher) -> Check:
    try:
        if not search_plans(model, plan["system"], None, least, watcher).found:
            return Check(LEAST_MEMORY, False, f"there is no plan with {least} bytes either")
        if not plan["proven"]:
            return Check(LEAST_MEMORY, True, f"there is a plan with {least} bytes; less is not ruled out")
        if search_plans(model, plan["system"], None, least - 1, watcher).found:
            of_all = plan["planner"] not in LOOK_AT_SOME
            return Check(LEAST_MEMORY, not of_all, f"there is a plan with {least} bytes, and one with less as well")
    except TooLarge as error:
        return Check(LEAST_MEMORY, None, f"the search cannot be run again: {error}")
    return Check(LEAST_MEMORY, True, f"there is a plan with {least} bytes, and none with less")


def _looked_at(searched: Searched) -> str:
    return f"{counted(searched.downsets, 'downset')} and {counted(searched.stages, 'stage')} looked at"


def recheck_graph_bound(claim: GraphClaim, watcher: Watcher) -> Outcome:
    """Run the search behind a bound again.

    Returns
    -------
    Whether the bound holds, and that in words; None if that is out of reach.
    """
    return _SEARCHES[claim.method](claim, watcher)
