"""Shape of the capacity that a plan states, and of the memory of layers that it rests on."""

from __future__ import annotations

from typing import Any

from mtpp.document_shape import Path, Rule, array, choice, flag, items, nullable, record, refuse, whole

CAPACITY = "capacity"
CONTEXT = "context"
PREFILL = "prefill"
_SIZE = whole(below=2**62)
_RULE = record(
    {
        "degree": whole(1),
        "phase": choice("decode", PREFILL),
        "weights": array(_SIZE),
        "caches": array(items(_SIZE, nullable(whole(1)), _SIZE, _SIZE)),
        "bits_of_32_elements": whole(1, 2**12),
        "shared": array(items(_SIZE, array(whole()))),
        "passing": array(items(_SIZE, _SIZE, whole(-1), array(whole()))),
    }
)


def layer_columns(value: Any, path: Path) -> None:
    """Take the columns of layers: all of one length, and naming layers by their numbers in order."""
    _RULE(value, path)
    n = len(value["weights"])
    if len(value["caches"]) != n:
        refuse(f"{len(value['caches'])} caches of {n} layers", (*path, "caches"))
    for key, at in (("shared", 1), ("passing", 3)):
        for i, row in enumerate(value[key]):
            first = row[2] if key == "passing" else -1
            places = [first, *row[at]]
            if len(row[at]) < (first < 0) or places[-1] >= n or places != sorted(set(places)):
                refuse("expected numbers of layers, ascending", (*path, key, i, at))


capacity_rule: Rule = record(
    {
        "objective": choice(CONTEXT, "sequences"),
        "value": whole(1),
        "next_infeasible": nullable(whole(2)),
        "context": whole(1),
        "sequences": whole(1),
        "batch": nullable(whole(1)),
        "layers": array(layer_columns),
    },
    {"none_empty": flag, "positions": whole(1)},
)
"""Rule of a plan's ``capacity``."""
