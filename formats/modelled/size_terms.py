"""Sizes of symbolic dimensions as a caller gives them: by name, one for all others, or proposed by the reader."""

from __future__ import annotations

from collections.abc import Mapping

OTHERS = "*"
"""In place of a name: every size that is not given otherwise."""

AUTO = "auto"
"""In place of a size, of :data:`OTHERS` alone: the one that is proposed."""

SizeTerms = Mapping[str, int | str]
"""Size by name; under :data:`OTHERS` also :data:`AUTO`; trips of a loop under its name and ``:trips``."""

_TRIPS = ":trips"


def loop_of(key: str) -> str | None:
    """Return the loop whose trips are given under *key*; None for a size."""
    return key.removesuffix(_TRIPS) if key.endswith(_TRIPS) else None


def named_sizes(terms: SizeTerms) -> dict[str, int]:
    """Return the sizes that are given by name."""
    return {name: size for name, size in terms.items() if name != OTHERS and isinstance(size, int)}


def size_of_others(terms: SizeTerms) -> int | None:
    """Return the size of all that is not named; None if none is given."""
    size = terms.get(OTHERS)
    return size if isinstance(size, int) else None


def are_proposed(terms: SizeTerms) -> bool:
    """Say whether what is not named is to be proposed."""
    return terms.get(OTHERS) == AUTO
