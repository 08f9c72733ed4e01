"""Plans, ``mtpp-plan`` version 1: parsed and written here, judged by :mod:`mtpp.checker.plan`."""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs import native
from mtpp.formats.io.json_shape import attributed, check_header

FORMAT = "mtpp-plan"
VERSION = 1


def as_plan(document: Any, source: str) -> dict[str, Any]:
    """Return a parsed document that says that it is a plan; else raise InputError."""
    with attributed(source):
        if isinstance(document, dict) and document.get("format") == native.FORMAT:
            raise InputError(
                "a graph, not a plan", where="/format", remedy="give the plan here and the graph with ‹model›"
            )
        return check_header(document, FORMAT, VERSION)
