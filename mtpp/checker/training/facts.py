"""Setting of a training plan, which the document chose: devices, memory, links, and which plans count.

These rows have no verdict, except where the user says what they have to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.checker.facts import memory, quantity
from mtpp.checker.report import Check, fact

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
