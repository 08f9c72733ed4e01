"""Columns of a table of stages, fitted to a terminal: names lose their middles, and what can be spared is left out."""

from __future__ import annotations

from typing import NamedTuple

_NAME_WIDTHS = (19, 21, 41)
"""Characters for the first and the last layer of a stage, whose names lose their middle: the fewest on narrow and on
wide terminals, and the most."""

_WIDE = 100


class StageColumn(NamedTuple):
    """A column of the table of stages; those with the highest *spare* are the first to go where room is short."""

    name: str
    cells: list[str]
    spare: int = 0
    left: bool = False


def fitting_columns(
    columns: list[StageColumn], width: int, named: str = "first … last"
) -> tuple[list[StageColumn], list[str]]:
    """Shorten the names of layers and leave columns out until the table fits; return it and what is left out.

    Parameters
    ----------
    named
        The column of names; there may be none.
    """
    dropped: list[str] = []
    *fewest, most = _NAME_WIDTHS
    least = fewest[width >= _WIDE]
    while True:
        widths = [max(len(column.name), *map(len, column.cells)) + 2 for column in columns]
        over = sum(widths) - 2 - width
        names = next((i for i, column in enumerate(columns) if column.name == named), None)
        longest = 0 if names is None else widths[names] - 2
        room = min(longest - over, most)
        spared = not any(column.spare for column in columns)
        if over <= 0 and (names is None or room >= longest):
            return columns, dropped
        if names is not None and (room >= least or spared):
            cells = [_shortened(cell, max(room, least)) for cell in columns[names].cells]
            columns[names] = columns[names]._replace(cells=cells)
            return columns, dropped
        if spared:
            return columns, dropped
        first = max(columns, key=lambda column: column.spare)
        dropped.append(first.name)
        columns = [column for column in columns if column is not first]


def _shortened(ends: str, limit: int) -> str:
    """Shorten ``first … last`` to *limit* characters, each name by itself in its middle."""
    if len(ends) <= limit:
        return ends
    names = ends.split(" … ")
    room = (limit - 3) // 2 if len(names) == 2 else limit
    return " … ".join(_middle_out(name, room) for name in names)


def _middle_out(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    kept = limit - 1
    return f"{name[: kept // 2]}…{name[len(name) - (kept - kept // 2) :]}"
