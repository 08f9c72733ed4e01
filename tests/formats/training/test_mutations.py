"""Models to be trained with something changed at random: read, or refused in one line with a place that is there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
from piper_documents import pipeline
from training_documents import fork

from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_json
from mtpp.formats.io.source import Source
from mtpp.formats.training.models import training_model_from_source
from mtpp.machine.machine import Machine
from mtpp.training.problem import PlanningProblem

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 3, 7, 10**30, -(10**30), 10**300, 2**62, 2**63 - 1,
    Fraction(1, 2), Fraction(1, 10**300),
    "", "0", "1", "01", "-1", "two", "a/b", "vanilla", "s", "é\n~/\x1b[31m",
    [], {}, [[]], {"": {}}, [1], {"1": []}, {"3": 1}, {"7": 1}, {"c": 5}, {"1": [{"id": "x"}]},
]  # fmt: skip
"""What a value may become, and the strings among them what a key may become."""

CHANGES = 1500


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys or positions."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _change(document: Any, draw: random.Random) -> None:
    """Replace, remove, repeat, rename or swap something."""
    holder, key = draw.choice(list(_places(document)))
    other, other_key = draw.choice(list(_places(document)))
    what = draw.randrange(6)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder.insert(draw.randrange(len(holder) + 1), deepcopy(holder[key]))
    elif what == 2 and isinstance(holder, dict):
        holder[draw.choice([odd for odd in ODD if isinstance(odd, str)])] = holder.pop(key)
    elif what == 3:
        holder[key] = deepcopy(other[other_key])
    else:
        holder[key] = deepcopy(draw.choice(ODD))


def _lead_somewhere(document: Any, pointer: str) -> bool:
    """Return whether a JSON pointer leads to a value, or to a key of an object that is missing there."""
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in way:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return int(last) < len(document) if isinstance(document, list) else isinstance(document, dict)


def _outcome(document: Any, unit: str | None) -> InputError | None:
    """Read a document and state a problem with it; return the error, if there is one."""
    source = Source("<stdin>", dump_json(document).encode(), "")
    try:
        model = training_model_from_source(source, unit)
        PlanningProblem(
            model, machine=Machine.of_devices(2, memory_bytes=10**9, bandwidth_bytes_per_s=10**9), micro_batches=4
        )
    except InputError as error:
        return error
    return None


@pytest.mark.parametrize(("make", "unit"), [(pipeline, "s"), (fork, None)], ids=["piper", "native"])
def test_whatever_is_changed(make: Any, unit: str | None) -> None:
    """One change or two: never anything but a model and a problem of planning, or an error for a user."""
    draw = random.Random(7)
    refused = 0
    for _ in range(CHANGES):
        document = make()
        for _ in range(draw.randint(1, 2)):
            _change(document, draw)
        if error := _outcome(document, unit):
            refused += 1
            assert not set("\n\x1b") & set(str(error))
            assert error.source == "<stdin>"
            if error.where and error.where.startswith("/"):
                assert _lead_somewhere(document, error.where), str(error)
    assert CHANGES // 20 < refused < CHANGES - CHANGES // 20
