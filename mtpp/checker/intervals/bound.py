"""The bound of plans whose stages are intervals: the decision that none is below it, repeated from the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mtpp.checker.claim import LATENCY
from mtpp.checker.facts import counted
from mtpp.checker.goal import PlanGoal
from mtpp.checker.intervals.decision import Line, Stages, plan_exists
from mtpp.checker.intervals.degree_graphs import NONE_EMPTY, ONE_DEGREE, DegreeGraphs
from mtpp.checker.intervals.first_token import Prompts
from mtpp.checker.intervals.interval_costs import Costs, cuts_allowed, interval_costs
from mtpp.checker.machine import PlacedGraph
from mtpp.checker.report import BOUND_CHECK, Check, Tier
from mtpp.document_shape import array, choice, record, whole

RULE = "intervals"

MOST_WAYS = 2**18
"""Ways to have used some devices of each class that are looked through."""


def check_interval_bound(
    plan: Mapping[str, Any],
    whole_model: PlacedGraph,
    degrees: DegreeGraphs,
    goal: PlanGoal,
    reached: int | None,
    prompts: Prompts | None = None,
) -> tuple[Check, Tier]:
    """Check the lower bound of a plan with degrees, and return the tier that it has then.

    Parameters
    ----------
    reached
        Objective of the plan as derived; None where it could not be.
    prompts
        Graphs of a prefill, where the plan is for both phases: the latency that is limited is its, not of decoding.

    Raises
    ------
    InputError
        If the proof is malformed.

    Notes
    -----
    For each device class and degree O(n · pins); the decision O(n² · classes) operations on integers with a bit for
    each way to have used devices, and with a limit on the latency as many labels as the limit leaves.
    """
    stated = plan["lower_bound"]
    value, proof, tier = stated["value"], stated["proof"], Tier(stated["tier"])
    if reached is not None and value > reached:
        return Check(BOUND_CHECK, False, f"the lower bound {value} is above the {goal.objective} {reached}"), Tier.NONE
    if tier is not Tier.EXACT or stated["method"] != "downset" or not isinstance(proof, dict):
        return Check(
            BOUND_CHECK, False, "a plan with degrees of tensor parallelism has a proof over intervals"
        ), Tier.NONE
    record(
        {"rule": choice(RULE), "cutoff": whole(), "k": whole(1), "order": choice("fixed", "free")},
        {"prices": array(whole()), "price_of_any": whole()},
    )(proof, ("lower_bound", "proof"))
    fault = _fault(plan, proof)
    if fault is not None:
        return Check(BOUND_CHECK, False, f"intervals: {fault}"), Tier.NONE
    line = Line(
        whole_model.class_of, plan["machine"]["order"] == "free", plan["k"], plan["k"] if plan.get(NONE_EMPTY) else 1
    )
    if line.ways > MOST_WAYS:
        return Check(BOUND_CHECK, None, "intervals: there are too many ways to use the devices"), tier
    classes = max(whole_model.class_of) + 1
    prices = proof.get("prices", [])
    if prices and len(prices) != classes:
        return Check(BOUND_CHECK, False, "intervals: there is not one price for each class of devices"), Tier.NONE
    if value == 0:
        return Check(BOUND_CHECK, True, f"intervals: no {goal.objective} is below 0 ticks"), tier
    of_latency = goal.objective == LATENCY
    limit = goal.limit if prompts is None else prompts.limit
    most, latency = (goal.limit, value - 1) if of_latency else (value - 1, limit)
    limits = {"most": most, "latency": latency, "price_of_any": proof.get("price_of_any", 0)}
    one_degree = plan.get(ONE_DEGREE, False)
    considered = [[degree] for degree in degrees.placed] if one_degree else [list(degrees.placed)]
    parts = (_stages(plan, whole_model, degrees, part, prompts) for part in considered)
    if any(plan_exists(stages, line, prices=prices, **limits) for stages in parts):
        return Check(
            BOUND_CHECK, False, f"intervals: there is a plan with a {goal.objective} below {value} ticks"
        ), Tier.NONE
    where = f"{counted(line.most, 'device')} in {'any order' if line.free else 'order'}"
    detail = f"intervals: no plan of consecutive ops{degrees.at_words(plan)} on {where}{_within(goal, prompts)}"
    detail += f", stays below {value} ticks"
    if plan["together"]:
        detail += "; among partitions that keep the groups together"
    return Check(BOUND_CHECK, True, detail), tier


def _within(goal: PlanGoal, prompts: Prompts | None) -> str:
    return (goal.words if prompts is None else prompts.words).rstrip(",")


def _fault(plan: Mapping[str, Any], proof: Mapping[str, Any]) -> str | None:
    value = plan["lower_bound"]["value"]
    if proof["k"] != plan["k"]:
        return f"the proof is for k = {proof['k']}, the claim for k = {plan['k']}"
    if proof["cutoff"] != value:
        return f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {value}"
    if proof["order"] != plan["machine"]["order"]:
        return "its proof is not for the machine's order of devices"
    return None


def _stages(
    plan: Mapping[str, Any],
    whole_model: PlacedGraph,
    degrees: DegreeGraphs,
    considered: Sequence[int],
    prompts: Prompts | None,
) -> Stages:
    """Return what stages cost on each class of devices, as each of its alternatives of the degrees considered."""
    of_device = [[degree for degree in row if degree in considered] for row in degrees.of_device]
    ticks = _ticks(plan, whole_model, of_device, degrees.placed)
    latency = ticks if prompts is None else _ticks(plan, whole_model, of_device, prompts.placed)
    return Stages(whole_model.by_device[0].op_count, ticks, latency)


def _ticks(
    plan: Mapping[str, Any],
    whole_model: PlacedGraph,
    of_device: Sequence[Sequence[int]],
    placed: Mapping[int, PlacedGraph],
) -> list[list[Costs]]:
    allowed = cuts_allowed(whole_model.by_device[0], plan["together"])
    ticks: list[list[Costs]] = []
    for c in range(max(whole_model.class_of) + 1):
        device = whole_model.class_of.index(c)
        sequences = plan["system"].get("sequences", 1)
        ticks.append(
            [
                interval_costs(placed[degree].by_device[device], whole_model.devices[device], sequences, allowed)
                for degree in of_device[device]
            ]
        )
    return ticks
