"""The shape of training plans by ``pfeife``: whatever is malformed is named by its JSON pointer.

Sizes are limited so that all of it can be gone through.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from mtpp.checker.document import system, time_unit
from mtpp.checker.training.document import BOUND, layer_id, size
from mtpp.document_shape import (
    Path,
    Rule,
    anything,
    array,
    choice,
    flag,
    items,
    mapping,
    nullable,
    number,
    record,
    refuse,
    sha256,
    text,
    whatever,
    whole,
)

PLANNER = "pfeife"
TRANSPORTS = ("neighbours", "direct")
LOOP_BATCHES = ("divisors", "any")
CONFIGURATIONS = ("fastest", "least-kept", "smallest")
IN_FLIGHT, ALL = "in-flight", "torch-pipelining"
"""Micro-batches whose received tensors a stage has room for. Plans that do not say it are of all."""
ALL_TRAINED, STATED = "all", "stated"
"""Parameters of a graph that are trained. Plans that do not say it are of all, whatever the graph states."""

MOST_DEVICES = 10_000
MOST_PASSES = 4_000_000

_EXACT = re.compile(r"[1-9][0-9]{0,18}(/[1-9][0-9]{0,18})?")
_PASS = re.compile(r"(0|[1-9][0-9]{0,6})([FBIW])(0|[1-9][0-9]{0,6})")


def exact(value: Any, path: Path) -> None:
    """Take an exact number above zero written as text: ``2`` or ``3/2``."""
    text(value, path)
    if _EXACT.fullmatch(value) is None:
        refuse("expected a number above zero such as '2' or '3/2'", path)


def pass_name(value: Any, path: Path) -> None:
    """Take a pass written as ``2F0``."""
    text(value, path)
    if _PASS.fullmatch(value) is None:
        refuse("expected a pass such as '2F0'", path)


def pass_of(name: str) -> tuple[int, str, int]:
    """Return stage, kind and micro-batch of a pass."""
    match = _PASS.fullmatch(name)
    assert match is not None
    return int(match[1]), match[2], int(match[3])


def _one_or_each(rule: Rule) -> Rule:
    def check(value: Any, path: Path) -> None:
        if isinstance(value, list | tuple):
            array(rule)(value, path)
        else:
            rule(value, path)

    return check


def _ascending(value: Any, path: Path) -> None:
    array(size(1))(value, path)
    if not value or sorted(set(value)) != list(value):
        refuse("expected different numbers in ascending order", path)


_MODEL = {"name": text, "sha256": nullable(sha256)}


_GRAPH_FILES: dict[str, Rule] = {
    "path": text,
    "costs_sha256": sha256,
    "costs_path": text,
    "adapters": array(text),
    "proposed_dims": array(text),
}


def _check_model(value: Any, path: Path) -> None:
    graph = {**_MODEL, "kind": choice("graph"), "ops": whole(1), "tensors": whole(), "dims": mapping(whole(1))}
    layers = {**_MODEL, "kind": choice("layers"), "layers": whole(1), "edges": whole()}
    anything(value, path)
    if value.get("kind") == "layers":
        record(layers, {"path": text})(value, path)
    else:
        record({**graph, "system": system}, _GRAPH_FILES)(value, path)


_SCHEDULE = record(
    {
        "name": nullable(text),
        "micro_batches": size(1),
        "loops": size(1),
        "loop_batch": nullable(size(1)),
        "prefetch": nullable(array(size())),
        "order": array(array(pass_name)),
        "dependencies": array(items(pass_name, pass_name)),
    }
)

_STAGE = record(
    {
        "index": whole(),
        "device": whole(),
        "layers": array(layer_id),
        "forward_ticks": size(),
        "backward_ticks": size(),
        "handover_ticks": nullable(size()),
    },
    {"configurations": mapping(text), "handovers": array(items(whole(), size()))},
)

_DEVICE = record(
    {
        "index": whole(),
        "busy_ticks": size(),
        "idle_ticks": whole(-(2**62), 2**62),
        "peak_bytes": nullable(size()),
        "in_flight": whole(),
    }
)

_BASELINE = record({"name": text, "split": array(whole()), "iteration_ticks": size(), "fits": flag})

_HEAD: dict[str, Rule] = {
    "format": whatever,
    "version": whatever,
    "planner": choice(PLANNER),
    "model": _check_model,
    "time_unit": time_unit,
    "ticks_per_unit": whole(1),
    "system": record(
        {
            "devices": whole(1, MOST_DEVICES),
            "memory_bytes": nullable(_one_or_each(size(1))),
            "bandwidth_bytes_per_s": size(1),
            "latency_ticks": size(),
            "speed": _one_or_each(exact),
            "transport": choice(*TRANSPORTS),
        }
    ),
    "costs": record(
        {"backward_ratio": exact, "state": exact, "configurations": nullable(choice(*CONFIGURATIONS))},
        {
            "trained": nullable(choice(ALL_TRAINED, STATED)),
            "buffers": choice(IN_FLIGHT, ALL),
        },
    ),
    "micro_batches": size(1),
    "rules": record(
        {
            "loops": nullable(_ascending),
            "loop_batches": choice(*LOOP_BATCHES),
            "prefetch": nullable(array(size())),
            "schedule": nullable(text),
            "order": choice("file", "search"),
            "search": choice("anneal", "beam"),
        }
    ),
    "order": nullable(array(layer_id)),
    "feasible": flag,
    "stages": array(_STAGE),
    "stopped": text,
    "elapsed_s": number,
}

_check_feasible = record(
    {
        **_HEAD,
        "least_memory_bytes": whatever,
        "iteration_ticks": size(),
        "lower_bound": record({**BOUND, "scope": choice("schedule")}),
        "ratio": nullable(number),
        "family_bound": record(BOUND),
        "family_ratio": nullable(number),
        "optimal": flag,
        "schedule": _SCHEDULE,
        "devices": array(_DEVICE),
        "baselines": array(_BASELINE),
    }
)

_LEAST = record({"split": array(whole()), "schedule": _SCHEDULE, "peak_bytes": array(size())})

_check_infeasible = record(
    {
        **_HEAD,
        "least_memory_bytes": nullable(size()),
        "memory_bound": record(BOUND),
        "proven": flag,
        "least_memory_plan": nullable(_LEAST),
        "reason": text,
        "iteration_ticks": whatever,
    }
)


def check_split_plan(value: Any, path: Path) -> None:
    """Take a plan by ``pfeife``, or a document that says that there is none."""
    infeasible = isinstance(value, dict) and value.get("feasible") is False
    (_check_infeasible if infeasible else _check_feasible)(value, path)
    system = value["system"]
    for key in ("memory_bytes", "speed"):
        if isinstance(system[key], list | tuple) and len(system[key]) != system["devices"]:
            refuse("expected one value, or one for each device", (*path, "system", key))
    for key in ("least_memory_bytes",) if not infeasible else ("iteration_ticks",):
        if value[key] is not None:
            refuse("it must be null", (*path, key))
    if infeasible and value["stages"]:
        refuse("there is no plan, so there are no stages", (*path, "stages"))
    schedules = [("schedule", value["schedule"])] if not infeasible else []
    if infeasible and value["least_memory_plan"] is not None:
        schedules.append(("least_memory_plan", value["least_memory_plan"]["schedule"]))
    for key, schedule in schedules:
        if sum(map(len, schedule["order"])) > MOST_PASSES:
            refuse(f"more than {MOST_PASSES} passes", (*path, key))


_WEIGHT = whole(1, 2**100)
_PATH = record({"weight": _WEIGHT, "runs": array(items(pass_name, pass_name))}, {"load": whole()})
_MIXTURE: dict[str, Rule] = {"total": _WEIGHT, "paths": array(_PATH)}
_PATHS = record(_MIXTURE)
_CELLS = record({"cells": array(record({"loops": size(1), "loop_batch": size(1), **_MIXTURE}))})


def check_paths(value: Any, path: Path) -> None:
    """Take a mixture of paths; raises InputError if it is malformed."""
    _PATHS(value, path)


def check_cells(value: Any, path: Path) -> None:
    """Take a mixture of paths for each number of loops and loop batch; raises InputError if it is malformed."""
    _CELLS(value, path)


def holds_all_buffers(plan: dict[str, Any]) -> bool:
    """Tell whether stages have room for what they receive of all micro-batches, not only of those in flight."""
    return str(plan["costs"].get("buffers", ALL)) == ALL


def as_fraction(value: str) -> Fraction:
    """Return what a text that :func:`exact` took stands for."""
    return Fraction(value)


def each_device(value: Any, devices: int) -> list[Any]:
    """Return a value for each device of one for all or one for each."""
    return list(value) if isinstance(value, list | tuple) else [value] * devices
