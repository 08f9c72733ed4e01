"""The shape of training plans by ``graphpipe``: whatever is malformed is named by its JSON pointer.

Numbers stay below 2^62, and stages make so few passes that all of them can be gone through.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.training.document import BOUND, fraction, layer_id, size
from mtpp.document_shape import (
    Path,
    Rule,
    array,
    choice,
    flag,
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

PLANNER = "graphpipe"
IN_FLIGHT = ("any", "least")

MOST_DEVICES = 1_000_000
MOST_PASSES = 4_000_000
"""Of all stages of a plan in one iteration."""

MOST_SIZES = 10_000
MOST_INTERVALS = 64
"""Of sizes of micro-batches, and the largest k of a kFkB order."""


def _up_to(most: int) -> Rule:
    def check(value: Any, path: Path) -> None:
        size(1)(value, path)
        if value > most:
            refuse(f"{value} is out of range", path, f"it must be at most {most}")

    return check


def _ascending(rule: Rule) -> Rule:
    def check(value: Any, path: Path) -> None:
        array(rule)(value, path)
        if not value:
            refuse("expected at least one number", path)
        if any(one >= other for one, other in pairwise(value)):
            refuse("the numbers are not in ascending order", path)

    return check


def _null(value: Any, path: Path) -> None:
    if value is not None:
        refuse("there is no plan, so it must be null", path)


_STAGE = record(
    {
        "index": whole(),
        "layers": array(layer_id),
        "data_parallel": size(1),
        "tensor_parallel": size(1),
        "devices": size(1),
        "micro_batch": size(1),
        "forwards_backwards": size(1),
        "in_flight": size(1),
        "forward_ticks": size(),
        "backward_ticks": size(),
        "synchronisation_ticks": size(),
        "memory_bytes": size(),
        "configurations": mapping(text),
    }
)

_TRANSFER = record({"source": whole(), "target": whole(), "forward_ticks": size(), "backward_ticks": size()})

_HEAD: dict[str, Rule] = {
    "format": whatever,
    "version": whatever,
    "planner": choice(PLANNER),
    "model": record({"name": text, "sha256": nullable(sha256), "layers": whole(), "edges": whole()}, {"path": text}),
    "time_unit": choice(*PICOSECONDS_PER_UNIT),
    "ticks_per_unit": whole(1),
    "system": record(
        {
            "devices": _up_to(MOST_DEVICES),
            "memory_bytes": size(1),
            "bandwidth_bytes_per_s": size(1),
            "latency_ticks": size(),
            "sequential": flag,
        }
    ),
    "rules": record(
        {
            "times_of": size(1),
            "micro_batch_sizes": _ascending(size(1)),
            "per_stage_micro_batch": flag,
            "forwards_backwards": _ascending(_up_to(MOST_INTERVALS)),
            "in_flight": choice(*IN_FLIGHT),
            "data_parallel": flag,
            "recompute": flag,
        }
    ),
    "mini_batch": size(1),
    "feasible": flag,
    "stages": array(_STAGE),
    "transfers": array(_TRANSFER),
    "stopped": text,
    "elapsed_s": number,
}

_check_feasible = record(
    {
        **_HEAD,
        "least_memory_bytes": nullable(size()),
        "iteration_ticks": size(),
        "iteration_time": number,
        "samples_per_s": nullable(number),
        "time_per_sample_ticks": fraction,
        "lower_bound": record(BOUND),
        "ratio": nullable(number),
        "optimal": flag,
        "depth": whole(),
        "devices_used": whole(),
        "notes": array(text),
    }
)

_check_infeasible = record(
    {
        **_HEAD,
        "least_memory_bytes": nullable(size()),
        "memory_bound": record(BOUND),
        "proven": flag,
        "least_memory_stages": array(_STAGE),
        "reason": text,
        "iteration_ticks": _null,
    },
    {"notes": array(text)},
)


def check_graph_plan(value: Any, path: Path) -> None:
    """Take a plan by ``graphpipe``, or a document that says that there is none; format and version are looked at."""
    infeasible = isinstance(value, dict) and value.get("feasible") is False
    (_check_infeasible if infeasible else _check_feasible)(value, path)
    _check_sizes(value, (*path, "rules", "micro_batch_sizes"))
    if not infeasible and value["least_memory_bytes"] is not None:
        refuse("there is a plan, so it must be null", (*path, "least_memory_bytes"))
    for key in ("least_memory_stages",) if infeasible else ("stages",):
        _check_passes(value["mini_batch"], value[key], (*path, key))


def _check_sizes(plan: dict[str, Any], path: Path) -> None:
    sizes = plan["rules"]["micro_batch_sizes"]
    if len(sizes) > MOST_SIZES:
        refuse(f"there are {len(sizes)} sizes of micro-batches", path, f"give at most {MOST_SIZES}")
    for i, samples in enumerate(sizes):
        if plan["mini_batch"] % samples:
            refuse(f"{samples} does not divide the mini-batch of {plan['mini_batch']} samples", (*path, i))


def _check_passes(batch: int, stages: Any, path: Path) -> None:
    if sum(2 * -(-batch // stage["micro_batch"]) for stage in stages) > MOST_PASSES:
        refuse(f"all stages together make more than {MOST_PASSES} passes", path, "use larger micro-batches")
