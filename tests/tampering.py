"""Documents in which one value is another one: what a verifier has to notice."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

Path = tuple[str | int, ...]
"""Where a value stands in a document."""


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value that is neither an object nor an array, with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))
    else:
        yield path, value


def changed(value: Any) -> list[Any]:
    """Return other values of the same kind."""
    if value is None:
        return ["something"]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "x", "lean" if value == "plain" else "plain"]
    if isinstance(value, int):
        return [value + 1, value - 1]
    slightly = Fraction("1.000000001") if isinstance(value, Fraction) else Decimal("1.000000001")
    return [value * slightly, value + 1]
