"""Tables of results: typed columns, rows of values, figures and notes, as views choose them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

NONE = "–"
"""Cell without a value."""

Figure = tuple[str, str] | tuple[str, str, str]
"""Name and value; with a third text, the figure is only shown where the column of that name is left out."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    form
        Writes a value, such as a number of bytes with its unit. There is none to write where it is None.
    left
        Whether cells are aligned to the left, as texts are.
    spare
        Where a terminal is too narrow, columns with the highest number are left out first; those with 0 stay.
    names
        Whether cells are names, ``first`` or ``first … last``, that lose their middles where a terminal is too narrow.
    width
        Least width in a terminal.
    """

    name: str
    form: Callable[[Any], str] = str
    left: bool = False
    spare: int = 0
    names: bool = False
    width: int = 0


@dataclass(frozen=True)
class Table:
    """Columns and rows with a title above, and named figures and notes below.

    Attributes
    ----------
    rows
        Values in the order of the columns; None where there is none.
    notes
        Lines on how to read the figures.
    styles
        Colours and weights of cells by (row, column), and of whole rows by their number. Markdown shows any as bold.
    layout
        Place of figures: ``below`` or ``above`` the rows. ``plain`` is above, in a terminal without weights and never
        folded.
    gap
        Blanks between columns in a terminal.
    in_blocks
        Whether columns that do not fit into a terminal stand below, each time beside the first one.
    """

    title: str = ""
    columns: Sequence[Column] = ()
    rows: Sequence[Sequence[Any]] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    styles: Mapping[Any, str] = field(default_factory=dict)
    layout: Literal["below", "above", "plain"] = "below"
    gap: int = 2
    in_blocks: bool = False

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @cached_property
    def cells(self) -> list[list[str]]:
        """Texts of all rows."""
        forms = [column.form for column in self.columns]
        return [
            [NONE if value is None else form(value) for form, value in zip(forms, row, strict=True)]
            for row in self.rows
        ]

    @cached_property
    def empty_columns(self) -> frozenset[int]:
        """Numbers of the columns behind the first that have no value in any of several rows."""
        if len(self.rows) < 2:
            return frozenset()
        columns = range(1, len(self.columns))
        return frozenset(j for j in columns if all(row[j] in ("", NONE) for row in self.cells))

    def without_empty(self) -> Table | None:
        """Return the table without its empty columns; None if there are none."""
        empty = self.empty_columns
        if not empty:
            return None
        kept = [j for j in range(len(self.columns)) if j not in empty]
        styles = {
            place if not isinstance(place, tuple) else (place[0], kept.index(place[1])): style
            for place, style in self.styles.items()
            if not isinstance(place, tuple) or place[1] not in empty
        }
        rows = [[row[j] for j in kept] for row in self.rows]
        return replace(self, columns=[self.columns[j] for j in kept], rows=rows, styles=styles)

    def figures_beside(self, left_out: Iterable[str] = ()) -> list[tuple[str, str]]:
        """Named figures that go with the columns, *left_out* being those that a terminal has no room for."""
        return [(name, value) for name, value, *column in self.figures if not column or column[0] in left_out]

    def style(self, row: int, column: int) -> str:
        """Colour and weight of a cell."""
        return self.styles.get((row, column)) or self.styles.get(row, "")


def table_of_records(records: Iterable[Mapping[str, Any]], keys: Iterable[str] | None = None) -> Table:
    """Return a table of JSON objects as they are, for CSV: a column for each of *keys*, by default those of the first.

    *records* hold one at least where there are no keys.
    """
    records = list(records)
    keys = list(records[0] if keys is None else keys)
    return Table(columns=[Column(key) for key in keys], rows=[[record[key] for key in keys] for record in records])


def table_of_columns(
    title: str, columns: Iterable[tuple[Column, Iterable[Any]]], figures: Sequence[Figure] = ()
) -> Table:
    """Return a table of columns with their values."""
    names, values = zip(*columns, strict=True)
    return Table(title, names, list(zip(*values, strict=True)), figures)
