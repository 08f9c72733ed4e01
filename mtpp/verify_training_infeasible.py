"""Documents that say that there is no training plan: what of them follows from the model without a search.

Part of the independent verifier (:mod:`mtpp.verify`). There is no plan where a layer alone needs more than the memory
in every way to run it, as s ≥ d for any stage that it could be in (see :mod:`mtpp.verify_training_bounds`), or where
data-parallel degrees have to come to more than there are devices. All else rests on a search.
"""

from __future__ import annotations

from typing import Any

from mtpp.verify_report import NO_TIER, Check
from mtpp.verify_training_bounds import usable_degrees, usable_ways
from mtpp.verify_training_model import TickModel

NO_PLAN = "no plan"
LEAST_MEMORY = "least memory"


def infeasible_checks(plan: dict[str, Any], model: TickModel) -> tuple[list[Check], str]:
    """Check what a document says of there being no plan, and return how far that can be trusted."""
    shown = _why_none(plan["system"], model)
    checks = [
        Check("stages", not plan["stages"], "none" if not plan["stages"] else "there is no plan, but there are stages"),
        _check_memory(plan, model),
    ]
    if shown is not None:
        return [Check(NO_PLAN, True, shown), *checks], "exact"
    if plan["proven"]:
        return [Check(NO_PLAN, None, "the search itself is not re-run: use --deep"), *checks], "enumerated"
    return [Check(NO_PLAN, None, "not proven, none was found"), *checks], NO_TIER


def _why_none(system: dict[str, Any], model: TickModel) -> str | None:
    if system["exact_micro_batches"] and system["max_micro_batches"] > system["devices"]:
        return "data-parallel degrees cannot come to more than there are devices"
    least, layer = _hungriest(system, model)
    if least is None:
        return f"layer {model.ids[layer]!r} has no configuration that may be used"
    if least > system["memory_bytes"]:
        return f"layer {model.ids[layer]!r} alone needs {least} bytes, a device has {system['memory_bytes']}"
    return None


def _hungriest(system: dict[str, Any], model: TickModel) -> tuple[int | None, int]:
    """Return the most that any layer needs in its leanest way, and that layer; None where one has no way at all."""
    worst = (0, 0)
    for layer in range(len(model.ids)):
        needs = [way.a + way.b for t in usable_degrees(model, system) for way in usable_ways(model, system, layer, t)]
        if not needs:
            return None, layer
        worst = max(worst, (min(needs), -layer))
    return worst[0], -worst[1]


def _check_memory(plan: dict[str, Any], model: TickModel) -> Check:
    stated, limit = plan["least_memory_bytes"], plan["system"]["memory_bytes"]
    if stated is None:
        return Check(LEAST_MEMORY, None, "none stated")
    least, layer = _hungriest(plan["system"], model)
    if least is None:
        return Check(LEAST_MEMORY, False, f"layer {model.ids[layer]!r} has no configuration that may be used")
    if stated < least:
        return Check(
            LEAST_MEMORY, False, f"the plan says {stated} bytes, layer {model.ids[layer]!r} alone needs {least}"
        )
    if stated <= limit:
        return Check(LEAST_MEMORY, False, f"the plan says {stated} bytes, devices have {limit} and it finds none")
    return Check(LEAST_MEMORY, None, f"{stated} bytes: not re-derived: use --deep")
