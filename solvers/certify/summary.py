"""Summary of a table of certificates: geometric means over the graphs for each k, as in the paper's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import geometric_mean
from typing import Any

from mtpp.inference.certificate_table import CertificateRow
from mtpp.names import BOTTLENECK_OBJECTIVE
from mtpp.solvers.bounds.registry import BOUNDS

SIMPLE = "simple"
"""The bound that the others are compared with."""


@dataclass(frozen=True)
class OverSimple:
    """One bound alone against the simple one, for one k.

    Attributes
    ----------
    mean
        Geometric mean of bound / simple bound over the cells in which it was tried.
    cells
        That many there are.
    solved
        In that many of them the bound completed.
    """

    mean: float
    cells: int
    solved: int


@dataclass(frozen=True)
class Summary:
    """All cells of one k.

    Attributes
    ----------
    cells
        Rows of the table.
    models
        Those that the means rest on: all whose simple bound is above 0.
    closed
        Rows that are optimal, and those that a bound of tier ``solver`` closes to its tolerance.
    by_solver
        Rows whose best bound is of tier ``solver``.
    proven_optimal
        Whether all rows are optimal.
    ratio
        Geometric mean of bottleneck / best bound of any tier over *models*; None without partitions.
    best_so_far
        By bound: the geometric mean of bottleneck / best of the bounds up to this one, which is at least 1; empty
        without partitions.
    over_simple
        By bound, those that were tried for this k.
    best
        In how many of *cells* the best bound is by the one so named.
    objective
        Of the cells; of the first of them where they differ.
    """

    k: int
    cells: int
    models: int
    closed: int
    by_solver: int
    proven_optimal: bool
    ratio: float | None
    best_so_far: Mapping[str, float]
    over_simple: Mapping[str, OverSimple]
    best: Mapping[str, int]
    objective: str = BOTTLENECK_OBJECTIVE

    def to_document(self) -> dict[str, Any]:
        """Return an entry of the table's ``summary``; ``geomean_bounds`` is *best_so_far*."""
        return {
            "k": self.k,
            **({} if self.objective == BOTTLENECK_OBJECTIVE else {"objective": self.objective}),
            "cells": self.cells,
            "models": self.models,
            "closed": self.closed,
            "geomean_ratio": self.ratio,
            "geomean_bounds": dict(self.best_so_far),
            "over_simple": {
                name: {"geomean": one.mean, "cells": one.cells, "solved": one.solved}
                for name, one in self.over_simple.items()
            },
            "best": dict(self.best),
        }


def ladder(rows: Sequence[CertificateRow]) -> list[str]:
    """Return the bounds of a table in the order in which they were tried.

    Where the order is not the same in all rows, or does not say, that of the registry decides.
    """
    rank = {name: i for i, name in enumerate(BOUNDS)}
    names = list(dict.fromkeys(name for row in rows for name in row.bounds))
    names.sort(key=lambda name: rank.get(name, len(rank)))
    before: dict[str, set[str]] = {name: set() for name in names}
    for row in rows:
        for earlier, later in pairwise(row.bounds):
            before[later].add(earlier)
    placed: list[str] = []
    while names:
        following = next((name for name in names if before[name] <= set(placed)), names[0])
        names.remove(following)
        placed.append(following)
    return placed


def summarise(rows: Sequence[CertificateRow]) -> list[Summary]:
    """Return the means of each k, from the fewest stages to the most.

    All means of bottleneck / bound of one k rest on the same graphs. A bound that was not tried in a cell, because
    a cheaper one had closed it or because the time was up, adds nothing there: the best one so far counts, so that no
    mean says more than what was proven. The mean of bound / simple bound leaves such cells out, and says on how many
    it rests; a bound that was tried and proved nothing in its time counts as the simple one, which was there before.

    Notes
    -----
    The bounds are those in ticks, the simple one rounded up as all are. Graphs whose simple bound is 0 have no ratios
    and are left out. Archer et al. (2024), Tables 1 and 3 (best so far); the draft of 2023, Tables 2 and 5 (over the
    simple bound, with the share of cells solved) and 3.
    """
    names = ladder(rows)
    return [_summary(k, [row for row in rows if row.k == k], names) for k in sorted({row.k for row in rows})]


def _summary(k: int, rows: Sequence[CertificateRow], names: Sequence[str]) -> Summary:
    counted = [row for row in rows if _value(row, SIMPLE)]
    pairs = [(row.upper, row) for row in counted if row.upper is not None]
    best = Counter(row.lower.method for row in rows)
    return Summary(
        k=k,
        cells=len(rows),
        models=len(counted),
        closed=sum(row.closed for row in rows),
        by_solver=sum(not row.lower.is_proof for row in rows),
        proven_optimal=all(row.optimal for row in rows),
        ratio=geometric_mean([upper / row.lower.value for upper, row in pairs]) if pairs else None,
        best_so_far={
            name: geometric_mean([upper / _best(row, names[: i + 1]) for upper, row in pairs])
            for i, name in enumerate(names)
            if pairs and SIMPLE in names[: i + 1]
        },
        over_simple={name: one for name in names if name != SIMPLE and (one := _over_simple(name, counted))},
        best={name: best.pop(name) for name in names if name in best} | best,
        objective=rows[0].objective,
    )


def _value(row: CertificateRow, name: str) -> int:
    """Return the bound of that name in ticks, 0 if it was not tried or proved nothing."""
    figure = row.bounds.get(name)
    return 0 if figure is None or figure.value is None else figure.value


def _best(row: CertificateRow, names: Sequence[str]) -> int:
    return max(_value(row, name) for name in names)


def _over_simple(name: str, rows: Sequence[CertificateRow]) -> OverSimple | None:
    tried = [row for row in rows if name in row.bounds]
    if not tried:
        return None
    ratios = [(_value(row, name) or _value(row, SIMPLE)) / _value(row, SIMPLE) for row in tried]
    return OverSimple(geometric_mean(ratios), len(tried), sum(row.bounds[name].solved for row in tried))
