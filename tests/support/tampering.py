"""Documents in which one value is another one: what a verifier has to notice."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

from mtpp.errors import InputError

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


def altered(document: Any, path: Path, value: Any) -> Any:
    """Return a copy in which *value* stands at *path*."""
    wrong = copy.deepcopy(document)
    target = wrong
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return wrong


def unnoticed(
    document: Any, failures: Callable[[Any], list[str]], still_true: Callable[[Path, Any], bool]
) -> tuple[list[tuple[Path, Any, Any]], int]:
    """Change every single value of a true document, and look whether that is noticed.

    Parameters
    ----------
    failures
        Names what is wrong with a document, or raises InputError where it is none.
    still_true
        Tells whether a document is as true with another value in some place.

    Returns
    -------
    Place, old and new value of changes that nothing came of, and how many were made.
    """
    missed = []
    count = 0
    for path, value in leaves(document):
        for other in changed(value):
            if other == value or still_true(path, other):
                continue
            count += 1
            with suppress(InputError):
                if not failures(altered(document, path, other)):
                    missed.append((path, value, other))
    return missed, count
