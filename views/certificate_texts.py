"""Graph labels and tick formatting for certificate tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from mtpp.units import format_picoseconds

if TYPE_CHECKING:
    from mtpp.inference.certificate_table import CertificateRow

NONE = "–"


class NamedGraph(Protocol):
    """Row of a table: the name of its graph, and the file that it was read from."""

    @property
    def model(self) -> str:
        """Name of the graph."""

    @property
    def path(self) -> str:
        """File."""


def model_labels(rows: Sequence[NamedGraph]) -> dict[str, str]:
    """Return what the graph in each file is called: by its name where no other graph has it, else by its file."""
    names = {row.path: row.model for row in rows}
    count = Counter(names.values())
    return {path: name if count[name] == 1 else path for path, name in names.items()}


def rows_by_graph(rows: Sequence[CertificateRow]) -> dict[str, list[int]]:
    """Return by file the places of its rows in the table."""
    places: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        places.setdefault(row.path, []).append(i)
    return places


def ticks_text(row: CertificateRow, ticks: int | None) -> str:
    """Write a number of ticks for people, as a time or in the unit of an abstract graph."""
    if ticks is None:
        return NONE
    return f"{ticks / row.ticks_per_unit:,.6g}" if row.time_unit == "1" else format_picoseconds(ticks)


def column_blocks(first: int, widths: Sequence[int], width: int) -> Iterator[range]:
    """Yield columns that fit beside a first one into *width*, gaps included in their widths, at least one at a time."""
    begin = 0
    while begin < len(widths):
        end, used = begin + 1, first + widths[begin]
        while end < len(widths) and used + widths[end] <= width:
            used += widths[end]
            end += 1
        yield range(begin, end)
        begin = end
