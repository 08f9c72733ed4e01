"""The shape of training plans: whatever is malformed is named by its JSON pointer."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, prod
from typing import Any

from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.report import STATED_TIERS
from mtpp.document_shape import (
    Path,
    Rule,
    anything,
    array,
    choice,
    flag,
    mapping,
    nullable,
    number,
    record,
    refuse,
    sha256,
    signed,
    tagged,
    text,
    whole,
)

FORMAT = "mtpp-training-plan"
CONVENTIONS = ("paper", "program")

STAGE_TIMES = ("compute", "communication", "edges", "gradients", "time")
"""Times of a stage that are written as numbers in the model's unit."""


SUPERSTAGE_TIMES = ("edges", "gradients", "time")
"""The same of a superstage."""

MOST_LEVELS = 20
"""Of devices within devices."""


_SIZE_LIMIT = 2**62


def size(minimum: int = 0) -> Rule:
    """Make the rule of a size, or of a number of ticks, in plans of version 2."""
    return whole(minimum, _SIZE_LIMIT)


BOUND: dict[str, Rule] = {"value": size(), "method": text, "tier": choice(*STATED_TIERS), "proof": anything}
"""Keys of a bound in plans of version 2."""


def fraction(value: Any, path: Path) -> None:
    """Take ``[numerator, denominator]`` in lowest terms, at least zero."""
    array(signed)(value, path)
    if len(value) != 2:
        refuse(f"expected a numerator and a denominator, found {len(value)} numbers", path)
    if value[0] < 0 or value[1] < 1:
        refuse("a fraction of this kind is at least zero and its denominator at least one", path)
    if gcd(*value) != 1:
        refuse("the fraction is not in lowest terms", path)


def as_fraction(value: Any) -> Fraction:
    """Return what a value that :func:`fraction` took stands for."""
    return Fraction(value[0], value[1])


def layer_id(value: Any, path: Path) -> None:
    """Take what a file calls a layer: a number or a name."""
    if isinstance(value, str):
        return
    if isinstance(value, bool) or not isinstance(value, int):
        refuse("expected a layer's id, a whole number or a string", path)


_SYSTEM = record(
    {
        "devices": whole(1),
        "memory_bytes": whole(1),
        "bandwidth_bytes_per_s": whole(1),
        "max_micro_batches": whole(1),
        "exact_micro_batches": flag,
        "convention": choice(*CONVENTIONS),
        "data_parallel": flag,
        "tensor_parallel": flag,
        "recompute": flag,
        "topology": nullable(array(record({"devices": whole(1), "bandwidth_bytes_per_s": whole(1)}))),
    }
)

_STAGE = record(
    {
        "index": whole(),
        "layers": array(layer_id),
        "data_parallel": whole(1),
        "tensor_parallel": whole(1),
        "devices": whole(1),
        "in_flight": whole(1),
        "memory_bytes": whole(),
        "time_ticks": fraction,
        "utilization": nullable(number),
        "configurations": mapping(text),
    }
    | dict.fromkeys(STAGE_TIMES, number),
    {"replicas": whole(1)},
)


def _superstage(value: Any, path: Path) -> None:
    if len(path) > 2 * MOST_LEVELS:
        refuse(f"superstages are nested more than {MOST_LEVELS} deep", path)
    _SUPERSTAGE(value, path)


_SUPERSTAGE = record(
    {
        "level": whole(2),
        "data_parallel": whole(1),
        "stages": array(whole()),
        "time_ticks": fraction,
        "utilization": nullable(number),
        "superstages": array(_superstage),
    }
    | dict.fromkeys(SUPERSTAGE_TIMES, number)
)

_HEAD: dict[str, Rule] = {
    "planner": text,
    "model": record({"name": text, "sha256": nullable(sha256), "layers": whole(), "edges": whole()}, {"path": text}),
    "time_unit": choice(*PICOSECONDS_PER_UNIT),
    "ticks_per_unit": whole(1),
    "system": _SYSTEM,
    "feasible": flag,
    "stopped": text,
    "elapsed_s": number,
}

BATCH: dict[str, Rule] = {
    "batch": record({"samples": whole(1), "micro_batch_size": whole(1), "gradient_accumulation": whole(1)})
}
"""Batch that a plan is for, where its number of micro-batches follows from one."""

_check_feasible = tagged(
    FORMAT,
    {
        **_HEAD,
        "time_per_sample": number,
        "time_per_sample_ticks": fraction,
        "throughput_per_s": nullable(number),
        "lower_bound": record({"value": fraction, "method": text, "tier": choice(*STATED_TIERS), "proof": anything}),
        "ratio": nullable(number),
        "optimal": flag,
        "devices_used": whole(),
        "degrees_sum": whole(),
        "stages": array(_STAGE),
        "knapsack": record({"method": choice("exact", "heuristic"), "heuristic_differs": array(whole())}),
        "notes": array(text),
    },
    {"superstages": array(_superstage), **BATCH},
)

_check_infeasible = tagged(
    FORMAT,
    {
        **_HEAD,
        "proven": flag,
        "least_memory_bytes": nullable(whole()),
        "reason": text,
        "stages": array(_STAGE),
    },
    {"notes": array(text), **BATCH},
)


def check_training_plan(value: Any, path: Path) -> None:
    """Take a training plan, or a document that says that there is none."""
    infeasible = isinstance(value, dict) and value.get("feasible") is False
    (_check_infeasible if infeasible else _check_feasible)(value, path)
    levels = value["system"]["topology"]
    if levels is not None:
        _check_levels(value["system"], levels, (*path, "system"))
    if not infeasible:
        _check_nesting(value, path, nested=levels is not None)


def _check_levels(system: dict[str, Any], levels: Any, path: Path) -> None:
    if not 1 <= len(levels) <= MOST_LEVELS:
        refuse(f"a topology has 1 to {MOST_LEVELS} levels, not {len(levels)}", (*path, "topology"))
    if system["devices"] != prod(level["devices"] for level in levels):
        refuse("is not the product of the devices of all levels", (*path, "devices"))
    if system["bandwidth_bytes_per_s"] != levels[0]["bandwidth_bytes_per_s"]:
        refuse("is not that of the innermost level", (*path, "bandwidth_bytes_per_s"))
    if system["convention"] != "paper" and len(levels) > 1:
        refuse("has no rule for several levels of devices", (*path, "convention"), "it must be paper")


def _check_nesting(plan: dict[str, Any], path: Path, *, nested: bool) -> None:
    for place, owner, key in [
        (path, plan, "superstages"),
        *(((*path, "stages", i), stage, "replicas") for i, stage in enumerate(plan["stages"])),
    ]:
        if (key in owner) != nested:
            refuse("missing key" if nested else "is only known of several levels of devices", (*place, key))
    for i, row in enumerate(plan.get("superstages", ())):
        _check_stage_numbers(row, len(plan["stages"]), (*path, "superstages", i))


def _check_stage_numbers(row: dict[str, Any], count: int, path: Path) -> None:
    for i, stage in enumerate(row["stages"]):
        if stage >= count:
            refuse(f"there is no stage {stage}", (*path, "stages", i))
    for i, inner in enumerate(row["superstages"]):
        _check_stage_numbers(inner, count, (*path, "superstages", i))
