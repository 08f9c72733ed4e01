"""Numbers of things, and lists of names, in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, what: str) -> str:
    """Write a number of things: ``1 edge``, ``67 edges``, ``4 batches``."""
    plural = "" if count == 1 else "es" if what.endswith("ch") else "s"
    return f"{count:,} {what}{plural}"


def one_of(names: Sequence[str]) -> str:
    """Write names to choose from: ``ps, ns or us``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def first_of(names: Sequence[str], most: int) -> str:
    """Write the first names of several, and the number of the others: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
