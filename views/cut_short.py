"""Bounds and runs that a limit has cut short, in a table of certificates and in a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mtpp.host.stop_reason import LIMITS_REACHED

if TYPE_CHECKING:
    from mtpp.inference.certificate_table import CertificateRow
    from mtpp.solvers.certify.comparison import Run


def bounds_cut_short(rows: Sequence[CertificateRow], asked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Say which bounds a limit has cut short, and which of those *asked* for had no turn, in how many cells."""
    cut = [row for row in rows if row.stopped in LIMITS_REACHED]
    begun = Counter(name for row in cut for name, figure in row.bounds.items() if not figure.solved)
    untried = Counter(name for row in cut for name in asked if name not in row.bounds)
    parts = []
    if begun:
        parts.append(_listed(begun, len(rows)))
    if untried:
        parts.append(f"no turn: {_listed(untried, len(rows))}")
    if parts:
        yield "cut short", "; ".join(parts)


def runs_cut_short(cells: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Say which algorithms a limit has ended, in how many of their runs."""
    ended = Counter(cell.algorithm for cell in cells if cell.stopped in LIMITS_REACHED)
    if ended:
        each = Counter(cell.algorithm for cell in cells)
        yield "cut short", ", ".join(f"{name} ({count:,} of {each[name]:,} runs)" for name, count in ended.items())


def _listed(names: Counter[str], cells: int) -> str:
    return ", ".join(name if cells == 1 else f"{name} ({count:,} of {cells:,})" for name, count in names.items())
