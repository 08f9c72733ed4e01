"""Numbers of things, and lists of names, in sentences; names that are meant by mistyped ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MOST_COMPARED = 20_000
"""Names that a mistyped one is held against letter by letter: a graph may have a million."""

_LONGEST_COMPARED = 60


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


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that a mistyped one may stand for, the nearest first; none where none is near.

    Names that differ in upper and lower case come first, then those of nearly the same letters, then those that have
    the mistyped one in them.
    """
    from difflib import get_close_matches

    names = list(dict.fromkeys(known))
    written = name[:_LONGEST_COMPARED].lower()
    lower: dict[str, list[str]] = {}
    for one in names:
        lower.setdefault(one.lower(), []).append(one)
    alike = get_close_matches(written, list(lower)[:_MOST_COMPARED], most)
    if written in lower:
        alike = [written]
    elif not alike and len(written) > 2:
        alike = [one for one in lower if written in one]
    return [one for key in alike[:most] for one in lower[key]][:most]


def did_you_mean(name: object, known: Iterable[str], otherwise: str) -> str:
    """Return the remedy for a name that is not among the *known* ones; *otherwise* where none is near.

    ``did you mean 'anneal'?``
    """
    near = nearest(name, known) if isinstance(name, str) else []
    return f"did you mean {one_of([repr(one) for one in near])}?" if near else otherwise
