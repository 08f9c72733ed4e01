"""Documents that can be verified: plans and ranges of them, tables of certificates, and plans for training."""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import attributed, check_header
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results import partition_plan
from mtpp.formats.results.plan_range import FORMAT as PLAN_RANGE
from mtpp.training.graph_plan import VERSION as GRAPH_VERSION
from mtpp.training.plan import FORMAT as TRAINING_PLAN
from mtpp.training.plan import VERSION as TRAINING_PLAN_VERSION

PLAN, GRAPH = "mtpp-plan", "mtpp-graph"
CERTIFICATES = "mtpp-certificates"
OVERLAPPING = "mtpp-overlapping-bound"
VERSION = 1


def read_verifiable(data: bytes, source: str) -> dict[str, Any]:
    """Parse a plan of either kind or a table of certificates and check that it says it is one, nothing else.

    Returns
    -------
    The document, whose ``format`` says which it is; numbers are ``int`` where whole, else ``Fraction``
    (``float(plan["ratio"])`` gives back the float that was written).

    Raises
    ------
    InputError
        If it is not strict JSON, or none of the three in version 1.
    """
    if b"{" not in data[:64]:
        remedy = "give what partition -o FILE, certify -o FILE or plan -o FILE wrote"
        raise InputError("neither a plan nor a table of certificates: no JSON object", source=source, remedy=remedy)
    return verifiable(parse_json(data, source), source)


def verifiable(document: Any, source: str) -> dict[str, Any]:
    """Return a parsed document that says that it can be verified; else raise InputError."""
    if isinstance(document, dict) and document.get("format") == CERTIFICATES:
        with attributed(source):
            return check_header(document, CERTIFICATES, VERSION)
    if isinstance(document, dict) and document.get("format") == OVERLAPPING:
        with attributed(source):
            return check_header(document, OVERLAPPING, VERSION)
    if isinstance(document, dict) and document.get("format") == PLAN_RANGE:
        with attributed(source):
            return check_header(document, PLAN_RANGE, VERSION)
    if is_training_plan(document):
        with attributed(source):
            return check_header(document, TRAINING_PLAN, TRAINING_PLAN_VERSION, GRAPH_VERSION)
    named = document.get("format") if isinstance(document, dict) else None
    if isinstance(named, str) and named.startswith("mtpp-") and named not in (PLAN, GRAPH):
        problem = f"{named[:60]!r} makes no claim that can be checked"
        remedy = "give a plan, a training plan or a table of certificates"
        raise InputError(problem, source=source, where="/format", remedy=remedy)
    return partition_plan.as_plan(document, source)


MOST_MEMORY = 2**30
"""Bytes that a document may take once it is read; a few bytes of text can stand for many of them."""

_BYTES_OF = {b"{": 200, b"[": 64, b",": 40, b'"': 14}
"""Bytes that each of these stands for in Python's memory, about: a container, an item, half a string."""


def refuse_bloated(data: bytes, source: str) -> None:
    """Raise InputError if a JSON text would take more than :data:`MOST_MEMORY` once it is read.

    An estimate from above, in a time that does not count beside that of reading.
    """
    if 2 * len(data) + sum(data.count(mark) * size for mark, size in _BYTES_OF.items()) > MOST_MEMORY:
        problem = f"would take more than {MOST_MEMORY >> 20} MiB of memory"
        raise InputError(problem, source=source, remedy="if you trust it, set a ‹max_input_size›")


def is_training_plan(document: Any) -> bool:
    """Tell whether it is a training plan."""
    return isinstance(document, dict) and document.get("format") == TRAINING_PLAN


def is_range(document: dict[str, Any]) -> bool:
    """Tell whether it holds plans for several numbers of stages."""
    return bool(document["format"] == PLAN_RANGE)


def is_table(document: dict[str, Any]) -> bool:
    """Tell whether it is a table of certificates."""
    return bool(document["format"] == CERTIFICATES)
