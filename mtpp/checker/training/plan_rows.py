"""Rows that reports on training plans of all planners have: the model, layers in stages, memory, and no plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mtpp.checker.checks import check_model_ticks, file_row
from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.facts import counted, one_of
from mtpp.checker.report import Check, Report
from mtpp.checker.tier import Tier
from mtpp.checker.training.model import LayerId

_PLAN = "the plan"

Rows = Sequence[dict[str, Any]]
"""Stages, as a document has them."""


def model_rows(plan: dict[str, Any], sha256: str | None, layers: int, edges: int, unit: str) -> list[Check]:
    """Return the rows on the model, given what it has; *sha256* is of its file, None if it is in none."""
    return [
        file_row(plan["model"]["sha256"], sha256, _PLAN),
        _check_counts(plan["model"], layers, edges),
        check_model_ticks(plan["time_unit"], plan["ticks_per_unit"], unit, PICOSECONDS_PER_UNIT[unit], _PLAN),
    ]


def _check_counts(stated: dict[str, Any], layers: int, edges: int) -> Check:
    name = "layer and edge counts"
    if (stated["layers"], stated["edges"]) != (layers, edges):
        claim = f"{_PLAN} says {stated['layers']} layers and {stated['edges']} edges"
        return Check(name, False, f"{claim}, the model has {layers} and {edges}")
    return Check(name, True, f"{counted(layers, 'layer')}, {counted(edges, 'edge')}")


def layers_row(rows: Rows, ids: Sequence[LayerId]) -> Check:
    """Return the row on every layer being in one stage."""
    name = "layers"
    known = set(ids)
    stage_of: dict[LayerId, int] = {}
    for i, stage in enumerate(rows):
        if stage["index"] != i:
            return Check(name, False, f"stage {i}: the plan says index {stage['index']}, it is {i}")
        if not stage["layers"]:
            return Check(name, False, f"stage {i} has no layers")
        for layer in stage["layers"]:
            if layer not in known:
                return Check(name, False, f"stage {i}: the model has no layer {str(layer)[:60]!r}")
            if layer in stage_of:
                return Check(name, False, f"layer {layer!r} is in stage {stage_of[layer]} and in stage {i}")
            stage_of[layer] = i
    missing = [layer for layer in ids if layer not in stage_of]
    if missing:
        return Check(name, False, f"{len(missing)} layers are in no stage, the first is {missing[0]!r}")
    return Check(name, True, f"each of {len(ids)} in {one_of(len(rows))}")


def stages_of_layers(rows: Rows, ids: Sequence[LayerId]) -> dict[int, int]:
    """Return the stage of each layer by its position, of stages that passed :func:`layers_row`."""
    place = {name: i for i, name in enumerate(ids)}
    return {place[layer]: s for s, row in enumerate(rows) for layer in row["layers"]}


def edges_row(
    edges: Sequence[tuple[int, int, int]], ids: Sequence[LayerId], stage_of: Mapping[int, int], more: str = ""
) -> Check:
    """Return the row on no edge going back; *more* is said where none does."""
    for u, v, _ in edges:
        if stage_of[u] > stage_of[v]:
            edge = f"layer {ids[u]!r} (stage {stage_of[u]}) to {ids[v]!r} (stage {stage_of[v]})"
            return Check("edges", False, f"one goes back from {edge}")
    return Check("edges", True, f"none of {len(edges)} goes to an earlier stage{more}")


CONFIGURATIONS = "configurations"

Names = Callable[[int, int], Collection[str]]
"""Names of configurations of a layer, by its position, on some devices."""


def configurations_row(rows: Rows, ids: Sequence[LayerId], known: Names, usable: Names, on: str) -> Check:
    """Return the row on every layer having a configuration that is there, and may be used; *on* how many devices."""
    place = {layer: i for i, layer in enumerate(ids)}
    for i, stage in enumerate(rows):
        chosen, t = stage[CONFIGURATIONS], stage["tensor_parallel"]
        for layer in stage["layers"]:
            if str(layer) not in chosen:
                return Check(CONFIGURATIONS, False, f"stage {i}: layer {layer!r} has none")
            named = chosen[str(layer)]
            what = f"stage {i}: {named[:60]!r} of layer {layer!r}, {on.format(t)},"
            if named not in known(place[layer], t):
                return Check(CONFIGURATIONS, False, f"{what} is not in the model")
            if named not in usable(place[layer], t):
                return Check(CONFIGURATIONS, False, f"{what} recomputes activations, which is not allowed")
        outside = set(chosen) - {str(layer) for layer in stage["layers"]}
        if outside:
            return Check(CONFIGURATIONS, False, f"stage {i}: {min(outside)[:60]!r} is not one of its layers")
    return Check(CONFIGURATIONS, True, f"one for each of {counted(len(ids), 'layer')}")


NO_PLAN = "no plan"
LEAST_MEMORY = "least memory"


def no_plan_report(
    checks: Sequence[Check], tier: Tier, *, proven: bool, otherwise: str = "no plan was found"
) -> Report:
    """Return the report on a document that says that there is no plan."""
    words = "proven that there is no plan within the memory of the devices"
    if not proven:
        words = f"but all it says is that {otherwise}"
    return Report(tuple(checks), tier, None, proven, words, subject="that there is no plan")
