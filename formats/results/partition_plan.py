"""Plans, ``mtpp-plan`` version 1: parsed and written here, judged by :mod:`mtpp.checker.plan`."""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs import native
from mtpp.formats.io.json_shape import attributed, check_header
from mtpp.formats.io.json_text import parse_json

FORMAT = "mtpp-plan"
VERSION = 1


def read_plan(data: bytes, source: str) -> dict[str, Any]:
    """Parse a plan and check that it says it is one, nothing else.

    Returns
    -------
    The document; numbers are ``int`` where whole, else ``Fraction`` (``float(plan["ratio"])`` gives back the
    float that was written).

    Raises
    ------
    InputError
        If it is not strict JSON, or not an ``mtpp-plan`` of version 1.
    """
    if b"{" not in data[:64]:
        raise InputError("not a plan: no JSON object", source=source, remedy="give what partition -o FILE wrote")
    return as_plan(parse_json(data, source), source)


def as_plan(document: Any, source: str) -> dict[str, Any]:
    """Return a parsed document that says that it is a plan; else raise InputError."""
    with attributed(source):
        if isinstance(document, dict) and document.get("format") == native.FORMAT:
            raise InputError(
                "a graph, not a plan", where="/format", remedy="give the plan here and the graph with ‹model›"
            )
        return check_header(document, FORMAT, VERSION)
