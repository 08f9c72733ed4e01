"""Rows of a training plan on the model that it is for: its file, its sizes, and the unit of its times.

Part of the independent verifier (:mod:`mtpp.checker.plan`).
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.checks import check_file
from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.facts import counted
from mtpp.checker.report import Check, fact

_PLAN = "the plan"
_NO_FILE = fact("model file", "not given: nothing holds the plan to a file")


def model_rows(plan: dict[str, Any], sha256: str | None, layers: int, edges: int, unit: str) -> list[Check]:
    """Return the rows, given what the model has; *sha256* is of its file, None if it is in none."""
    return [
        _NO_FILE if sha256 is None else check_file(plan["model"]["sha256"], sha256, _PLAN),
        _check_counts(plan["model"], layers, edges),
        _check_ticks(plan, unit),
    ]


def _check_counts(stated: dict[str, Any], layers: int, edges: int) -> Check:
    name = "layer and edge counts"
    if (stated["layers"], stated["edges"]) != (layers, edges):
        claim = f"{_PLAN} says {stated['layers']} layers and {stated['edges']} edges"
        return Check(name, False, f"{claim}, the model has {layers} and {edges}")
    return Check(name, True, f"{counted(layers, 'layer')}, {counted(edges, 'edge')}")


def _check_ticks(plan: dict[str, Any], model_unit: str) -> Check:
    name, unit, stated = "ticks", plan["time_unit"], plan["ticks_per_unit"]
    if unit != model_unit:
        return Check(name, False, f"{_PLAN}'s time unit is {unit!r}, the model's {model_unit!r}")
    due = PICOSECONDS_PER_UNIT[unit]
    if stated != due:
        return Check(name, False, f"{_PLAN} says {stated} ticks per unit ({unit}), it is {due}")
    return Check(name, True, f"{stated} per unit ({unit})")
