"""Claims that there is no training plan, as far as they follow from the model without a search.

There is no plan where data-parallel degrees have to come to more than they can, D in
:mod:`mtpp.checker.training.bounds`. Nor is there where memory is less than what every plan needs. In any stage s ≥ d,
so that each of its d·t devices holds at least Σ (X(v).a + X(v).b) over its layers v. Hence M is at least the least a +
b of any layer; and, as in those bounds, K·M ≥ Σ_v min t·(a + b) and D·M ≥ Σ_v min (a + b), minima over all ways that
the schemes allow. All else rests on a search.
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.report import SHALLOW, Check, Tier, fact
from mtpp.checker.training.bounds import most_degrees, usable_degrees, usable_options
from mtpp.checker.training.model import TickModel
from mtpp.checker.training.plan_rows import LEAST_MEMORY, NO_PLAN


def infeasible_checks(plan: dict[str, Any], model: TickModel) -> tuple[list[Check], Tier]:
    """Check what a document says of there being no plan, and return how far that can be trusted."""
    shown = _why_none(plan["system"], model)
    checks = [
        Check("stages", not plan["stages"], "none" if not plan["stages"] else "there is no plan, but there are stages"),
        _check_memory(plan, model),
    ]
    if shown is not None:
        return [Check(NO_PLAN, True, shown), *checks], Tier.EXACT
    if plan["proven"]:
        return [Check(NO_PLAN, None, SHALLOW), *checks], Tier.ENUMERATED
    return [fact(NO_PLAN, "not claimed: none was found"), *checks], Tier.NONE


def _why_none(system: dict[str, Any], model: TickModel) -> str | None:
    most = most_degrees(model, system)
    if system["exact_micro_batches"] and system["max_micro_batches"] > most:
        return f"data-parallel degrees cannot come to {system['max_micro_batches']}, only to {most}"
    least, why = _needed(system, model)
    if least is None:
        return why
    if least > system["memory_bytes"]:
        return f"{why} at least {least} bytes, a device has {system['memory_bytes']}"
    return None


def _needed(system: dict[str, Any], model: TickModel) -> tuple[int | None, str]:
    """Return what memory every plan needs at least, and what for; None where some layer cannot be run at all."""
    worst, why = 0, "any plan needs"
    by_device = by_degree = 0
    for layer, name in enumerate(model.ids):
        needs = [
            (t, option.a + option.b)
            for t in usable_degrees(model, system)
            for option in usable_options(model, system, layer, t)
        ]
        if not needs:
            return None, f"layer {name!r} has no configuration that may be used"
        alone = min(need for _, need in needs)
        if alone > worst:
            worst, why = alone, f"layer {name!r} alone needs"
        by_device += min(t * need for t, need in needs)
        by_degree += alone
    shared = max(-(-by_device // system["devices"]), -(-by_degree // most_degrees(model, system)))
    return (shared, "layers together need") if shared > worst else (worst, why)


def _check_memory(plan: dict[str, Any], model: TickModel) -> Check:
    stated, limit = plan["least_memory_bytes"], plan["system"]["memory_bytes"]
    if stated is None:
        return fact(LEAST_MEMORY, "none stated")
    least, why = _needed(plan["system"], model)
    if least is None:
        return Check(LEAST_MEMORY, False, why)
    if stated < least:
        return Check(LEAST_MEMORY, False, f"the plan says {stated} bytes, {why} at least {least}")
    if stated <= limit:
        return Check(LEAST_MEMORY, False, f"the plan says {stated} bytes, devices have {limit} and it finds none")
    return Check(LEAST_MEMORY, None, f"{stated} bytes: {SHALLOW}")
