"""The shape of training plans: whatever is malformed is named by its JSON pointer.

Part of the independent verifier (:mod:`mtpp.verify`).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any

from mtpp.verify_document import (
    PICOSECONDS_PER_UNIT,
    TIERS,
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
    | dict.fromkeys(STAGE_TIMES, number)
)

_HEAD: dict[str, Rule] = {
    "planner": text,
    "model": record({"name": text, "sha256": nullable(sha256), "layers": whole(), "edges": whole()}),
    "time_unit": choice(*PICOSECONDS_PER_UNIT),
    "ticks_per_unit": whole(1),
    "system": _SYSTEM,
    "feasible": flag,
    "stopped": text,
    "elapsed_s": number,
}

_check_feasible = tagged(
    FORMAT,
    {
        **_HEAD,
        "time_per_sample": number,
        "time_per_sample_ticks": fraction,
        "throughput_per_s": nullable(number),
        "lower_bound": record({"value": fraction, "method": text, "tier": choice(*TIERS), "proof": anything}),
        "ratio": nullable(number),
        "optimal": flag,
        "devices_used": whole(),
        "degrees_sum": whole(),
        "stages": array(_STAGE),
        "knapsack": record({"method": choice("exact", "heuristic"), "heuristic_differs": array(whole())}),
        "notes": array(text),
    },
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
    {"notes": array(text)},
)


def check_training_plan(value: Any, path: Path) -> None:
    """Take a training plan, or a document that says that there is none.

    Raises
    ------
    InputError
        If it is malformed.
    """
    infeasible = isinstance(value, dict) and value.get("feasible") is False
    (_check_infeasible if infeasible else _check_feasible)(value, path)
