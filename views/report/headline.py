"""Headlines of plans: the verdict in a sentence, with the rules that bound what it is proven over, and its sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mtpp.names import CONTEXT_OBJECTIVE
from mtpp.views.report.claims import HELD, NO_PLAN, OPTIMAL, WITHIN
from mtpp.views.report.stated import StatedPlan, ratio_text
from mtpp.wording import one_of

Headline = tuple[str, str]
"""Sentence, and the sign before it."""


def plan_headline(stated: StatedPlan, document: Mapping[str, Any]) -> Headline:
    """Return the verdict on a plan for inference, if every claim holds."""
    cut = f"cut {_scope(stated, document)}"
    better = "has a smaller latency" if stated.of_latency else "is faster"
    if stated.optimal:
        first, capacity = document.get("first_token", {}), document.get("capacity", {})
        if first.get("max_latency") is not None:
            cut += f" with a first token within {stated.describe(first['max_latency'])}"
        if capacity.get("next_infeasible") is not None:
            what = "tokens" if capacity["objective"] == CONTEXT_OBJECTIVE else "sequences"
            return f"Proven optimal: no {cut} holds more {what}, and none that holds as many {better}", OPTIMAL
        return f"Proven optimal: no other {cut} {better}", OPTIMAL
    if stated.ratio is None or not stated.lower:
        return "Verified; nothing is proven about other cuts", HELD
    ratio = Fraction(stated.latency if stated.of_latency else stated.bottleneck, stated.lower)
    best = "the least latency of a" if stated.of_latency else "the fastest"
    return f"Proven to be within a factor of {ratio_text(ratio)} of {best} {cut}", WITHIN


def _scope(stated: StatedPlan, document: Mapping[str, Any]) -> str:
    """Return the rules that every cut keeps to that counts."""
    scope = f"{'for' if stated.on_devices else 'into'} {stated.seats}"
    if "degrees" in document:
        several = document["degrees"] != [1]
        shared = f", of {one_of([str(one) for one in document['degrees']])} GPUs each," if several else ""
        scope = f"of consecutive ops {scope}{shared}"
    if document["together"]:
        scope += " that keeps the groups together"
    if stated.limit is not None:
        other = "bottleneck" if stated.of_latency else "latency"
        scope += f" with a {other} of at most {stated.describe(stated.limit)}"
    if any(one.memory_bytes is not None for one in stated.devices):
        scope += " within the memory limits"
    return scope


def training_headline(document: Mapping[str, Any]) -> Headline:
    """Return the verdict on a training plan, if every claim holds."""
    if not document["feasible"]:
        return ("Proven: no plan fits" if document.get("proven") else "No plan was found"), NO_PLAN
    if document["optimal"]:
        return f"Proven optimal: no {_kind_of_plans(document)} is faster", OPTIMAL
    ratio = document.get("family_ratio", document["ratio"])
    if ratio is None:
        return "Verified; nothing is proven about other plans", HELD
    kind = _kind_of_plans(document).rstrip(",")
    return f"Proven to be within a factor of {ratio_text(float(ratio))} of the fastest {kind}", WITHIN


def _kind_of_plans(document: Mapping[str, Any]) -> str:
    """Return the plans that bounds of a planner are of, with the rules that they keep to."""
    system, rules = document["system"], document.get("rules", {})
    if document["planner"] == "pfeife":
        along = "along this order of ops" if rules["order"] == "search" else "along the file's order"
        return f"split {along} under {_schedules(rules)}"
    if document["planner"] == "graphpipe":
        kind = "line of stages" if system["sequential"] else "stage graph"
        orders = one_of([f"{k}F{k}B" for k in rules["forwards_backwards"]])
        sizes = one_of([f"{size:,}" for size in rules["micro_batch_sizes"]])
        return f"{kind} in {orders} order of whole backward passes with micro-batches of {sizes} samples"
    ways = {
        "data_parallel": "data parallelism",
        "tensor_parallel": "tensor parallelism",
        "recompute": "recomputation",
    }
    allowed = [name for key, name in ways.items() if system.get(key)]
    using = f"with or without {one_of(allowed)}" if allowed else f"without {one_of(list(ways.values()))}"
    return f"pipeline of stages in a line, {using},"


def _schedules(rules: Mapping[str, Any]) -> str:
    """Return the schedules of a plan by ``pfeife`` that count."""
    if rules["schedule"] is not None:
        return "the schedule asked for"
    loops: Sequence[int] = rules["loops"]
    return f"a looped schedule of whole backward passes with {one_of([str(one) for one in loops])} stages a device"
