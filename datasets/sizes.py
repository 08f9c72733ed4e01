"""Checks of sizes before a graph is drawn: impossible sizes, and graphs that no memory holds."""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.ranges import MOST_OPS

MOST_EDGES = 20_000_000
"""Such graphs take gigabytes while they are made."""


def check_least(what: str, value: int, least: int) -> None:
    """Raise :class:`InputError` if *value*, a number of *what*, is below *least*."""
    if value < least:
        raise InputError(f"{value} {what}", remedy=f"ask for at least {least}")


def check_graph_size(ops: int, edges: int) -> None:
    """Raise :class:`InputError` if a graph of about that size is too large to be made."""
    for count, most, what in ((ops, MOST_OPS, "ops"), (edges, MOST_EDGES, "edges")):
        if count > most:
            raise InputError(f"a graph of about {count:,} {what} is too large", remedy=f"stay below {most:,}")
