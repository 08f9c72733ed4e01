"""Rows that reports on training plans of all planners have: setting, model, layers in stages, memory, and no plan.

Those on the setting, which the document chose, have no verdict, except where the user says what they have to be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mtpp.checker.checks import check_model_ticks, file_row
from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.facts import counted, memory, one_of, quantity
from mtpp.checker.report import Check, Report, Tier, fact
from mtpp.checker.training.model import LayerId

BANDWIDTH = "bandwidth_bytes_per_s"


def training_rows(system: Mapping[str, Any], due: Mapping[str, Any], said_by: str) -> list[Check]:
    """Return the rows on what a model is trained on; *due* may hold the bandwidth that the user says it has."""
    levels = system["topology"] or []
    devices = f"{system['devices']}, {memory(system['memory_bytes'])} each"
    if len(levels) > 1:
        devices += f"; {' x '.join(str(level['devices']) for level in reversed(levels))} in {len(levels)} levels"
    return [
        fact("devices at hand", devices),
        bandwidth_row(system, levels, due, said_by),
        fact("micro-batches", f"{'exactly' if system['exact_micro_batches'] else 'at most'} {_most(system)}"),
        fact("plans that count", _kinds(system)),
    ]


def batch_rows(plan: Mapping[str, Any], times_of: int | None) -> list[Check]:
    """Return the row on the batch that a plan is for, if it says one: N = ⌊B / (g · b)⌋.

    Parameters
    ----------
    times_of
        Samples that the times of the model are of, where it says that.
    """
    if "batch" not in plan:
        return []
    name, batch, most = "batch", plan["batch"], plan["system"]["max_micro_batches"]
    samples, size, steps = batch["samples"], batch["micro_batch_size"], batch["gradient_accumulation"]
    due = samples // (steps * size)
    text = f"{samples} samples in micro-batches of {size}"
    text += f", over {steps} steps of accumulation" if steps > 1 else ""
    if due != most:
        return [Check(name, False, f"{text} allow {due} micro-batches at once, the plan says {most}")]
    if times_of not in (None, size):
        return [Check(name, False, f"{text}, but times of the model are of {times_of}")]
    return [Check(name, True, f"{text}: at most {due} micro-batches at once")]


def _most(system: Mapping[str, Any]) -> str:
    return f"{system['max_micro_batches']} in flight, by the rules of the {system['convention']}"


def _kinds(system: Mapping[str, Any]) -> str:
    kinds = {
        "data_parallel": "data parallelism",
        "tensor_parallel": "tensor parallelism",
        "recompute": "recomputation",
    }
    used = [name for key, name in kinds.items() if system[key]]
    left_out = [name for key, name in kinds.items() if not system[key]]
    text = f"pipelines with {', '.join(used)}" if used else "plain pipelines"
    return f"{text}; not with {', '.join(left_out)}" if left_out else text


def bandwidth_row(system: Mapping[str, Any], levels: Any, due: Mapping[str, Any], said_by: str) -> Check:
    """Return the row on the bandwidth; *levels* of devices, if any, have one each."""
    name, stated = "bandwidth", system[BANDWIDTH]
    text = ", ".join(quantity(level[BANDWIDTH], "B/s") for level in levels) or quantity(stated, "B/s")
    if BANDWIDTH not in due:
        return fact(name, f"{text} from the innermost level outwards" if len(levels) > 1 else text)
    if due[BANDWIDTH] == stated:
        innermost, _, outer = text.partition(", ")
        if outer:
            outer = f"; further out {outer}, the plan's own choice"
        return Check(name, True, f"{innermost}, as asked for{outer}")
    asked = quantity(due[BANDWIDTH], "B/s")
    return Check(name, False, f"{said_by} says {quantity(stated, 'B/s')}, it has to be {asked}")


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


def no_plan_report(checks: Sequence[Check], tier: Tier, *, proven: bool) -> Report:
    """Return the report on a document that says that there is no plan."""
    words = "proven that there is no plan within the memory of the devices"
    if not proven:
        words = "but all it says is that no plan was found"
    return Report(tuple(checks), tier, None, proven, words, subject="that there is no plan")
