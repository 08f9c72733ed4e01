"""Algorithms as tables of results name them: ``auto``, ``random-100``, ``brkga-10000``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt
from typing import Any

from mtpp.errors import InputError
from mtpp.names import ENGINE_RULES, PARTITIONER_ALIASES
from mtpp.solvers.registry import PARTITIONERS, PartitionerEntry
from mtpp.wording import did_you_mean

PAPER = ("mla", "mla-weighted", "random-1", "random-100", "random-10000", "brkga-100", "brkga-10000")
"""Rows of Table 2 of Archer et al. (2024), in its order."""

OURS = ("slice", "anneal", "auto")

_IN_THE_PAPER = {"mla": 10_000, "mla-weighted": 10_000}
"""Evaluations behind the rows that carry no number there (Archer et al. 2024, C.1)."""

_SINGLE = ("slice", "series-parallel", *ENGINE_RULES)
"""Algorithms that have nothing to repeat."""

_SIZED = re.compile(r"(.+)-([1-9][0-9]{0,11})")


@dataclass(frozen=True)
class Variant:
    """An algorithm, and how much it may try where its name says so.

    Attributes
    ----------
    name
        As the user and tables call it.
    entry
        The algorithm.
    evaluations
        Candidates that the name allows, None where it leaves that to the algorithm's default.
    """

    name: str
    entry: PartitionerEntry
    evaluations: int | None = None

    @property
    def search_options(self) -> dict[str, Any]:
        """Fields of :class:`~mtpp.solvers.limits.SearchLimits` that shape the search.

        Algorithms that evolve spend T evaluations on √T generations of √T chromosomes, as in the paper.
        """
        if self.evaluations is None or not self.entry.evolves:
            return {}
        side = isqrt(self.evaluations)
        return {"population": side, "generations": side}


def parse_variant(name: str, parameter: str = "algorithms") -> Variant:
    """Return the algorithm called *name*: one of the registry's, or one with ``-T`` for T evaluations.

    Errors name *parameter*.

    Raises
    ------
    InputError
        If there is none, if it cannot be repeated T times, or if it needs a square number and T is none.
    """
    base = PARTITIONER_ALIASES.get(name, name)
    if base in PARTITIONERS:
        return Variant(name, PARTITIONERS[base], _IN_THE_PAPER.get(name))
    sized = _SIZED.fullmatch(name)
    base = "" if sized is None else PARTITIONER_ALIASES.get(sized[1], sized[1])
    if sized is None or base not in PARTITIONERS:
        others = f"use {', '.join(PARTITIONERS)}, or with a number of evaluations: random-100"
        remedy = did_you_mean(name, (*PARTITIONERS, *PARTITIONER_ALIASES), others)
        raise InputError(f"no algorithm is called {name!r}", parameter=parameter, remedy=remedy)
    entry, evaluations = PARTITIONERS[base], int(sized[2])
    if entry.name in _SINGLE:
        raise InputError(f"{name!r}: {entry.name} takes no number", parameter=parameter, remedy=f"write {entry.name}")
    if entry.evolves and isqrt(evaluations) ** 2 != evaluations:
        raise InputError(
            f"{name!r}: {evaluations} is no square number, and the evaluations are split into as many generations as "
            "there are chromosomes in one",
            parameter=parameter,
            remedy=f"write {entry.name}-100 or {entry.name}-10000",
        )
    return Variant(name, entry, evaluations)


def parse_variants(names: Iterable[str]) -> tuple[Variant, ...]:
    """Return the algorithms of these names; a name given twice counts once.

    Raises
    ------
    InputError
        As :func:`parse_variant`, and if the list is empty.
    """
    names = dict.fromkeys(name.strip() for name in names if name.strip())
    if not names:
        raise InputError("names no algorithm", parameter="algorithms", remedy=f"use some of {', '.join(PARTITIONERS)}")
    return tuple(parse_variant(name) for name in names)


def default_variants() -> tuple[Variant, ...]:
    """Return the rows of the paper's Table 2, then ours, as far as the registry has them."""
    return tuple(parse_variant(name) for name in (*PAPER, *OURS) if _base(name) in PARTITIONERS)


def _base(name: str) -> str:
    sized = _SIZED.fullmatch(name)
    return sized[1] if sized else name
