"""Tables on terminals: columns fitted to their width, colours where they show them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from mtpp.terminal_safe import StyledText, terminal_safe, terminal_safe_table
from mtpp.views.short_names import shortened_apart
from mtpp.views.table import Table

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType
    from rich.text import Text

_PLAIN_WIDTH = 1000  # a file or a pipe has no edge

_NAME_WIDTHS = (19, 21, 41)
"""Characters for the first and the last layer of a stage, whose names lose their middle: the fewest on narrow and on
wide terminals, and the most."""

_WIDE = 100


class Medium:
    """Format of a text, and of ``table`` the terminal that it is for: by default the one that standard output is."""

    def __init__(self, form: str, terminal: RichConsole | None = None, *, plain: bool = False) -> None:
        self.form = form
        self._terminal = terminal
        self._plain = plain

    @cached_property
    def terminal(self) -> RichConsole:
        """Terminal for texts and tables that fit into its width; of a plain medium a file without an edge."""
        return self._terminal or (plain_terminal() if self._plain else result_terminal())

    @cached_property
    def endless(self) -> RichConsole:
        """Terminal for tables that lose no figure, however wide they are."""
        return self._terminal or (self.terminal if self._plain else result_terminal(endless=True))


def result_terminal(*, endless: bool = False) -> RichConsole:
    """Return the terminal that standard output is, or a plain one without an edge where it is none.

    An *endless* one cuts no line: for figures, which say something false when cut off. The terminal wraps them.
    """
    from rich.console import Console as RichConsole

    if sys.stdout is not None and sys.stdout.isatty():
        return RichConsole(highlight=False, width=_PLAIN_WIDTH if endless else None)
    return plain_terminal(getattr(sys.stdout, "encoding", None) or "utf-8")


def plain_terminal(encoding: str = "utf-8") -> RichConsole:
    """Return a terminal without colours and without an edge, as a file in some encoding is one."""
    from rich.console import Console as RichConsole

    # Even what it only captures, rich would write to its file: nothing, but a full device takes that ill.
    nowhere = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    return RichConsole(file=nowhere, width=_PLAIN_WIDTH, no_color=True, force_terminal=False, highlight=False)


def terminal_text(parts: Sequence[Table | str], medium: Medium) -> str:
    """Return tables and lines one after the other, a blank line before each but below lines that name a table."""
    text, left_out = [], list[str]()
    for i, part in enumerate(parts):
        named = i and isinstance(parts[i - 1], str) and not (isinstance(part, str) or part.title)
        text.append("\n" if i and not named else "")
        if isinstance(part, str):
            text.append(terminal_safe_table(part) + "\n")
        else:
            text.append(_plain_text(part) if part.layout == "plain" else _styled_text(part, medium, left_out))
    return StyledText("".join(text))


def _plain_text(table: Table) -> str:
    """Return figures and rows without rich, whose import takes longer than a command that only reads."""
    figures, rows = table.figures_beside(), [table.header, *table.cells]
    width = max(len(name) for name, _ in figures)
    lines = [f"{name:<{width}}  {terminal_safe(value)}" for name, value in figures] + [""]
    rows = [list(map(terminal_safe, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if column.left else str.rjust for column in table.columns]
    lines += ["  ".join(map(lambda side, *cell: side(*cell), sides, row, widths)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def _styled_text(table: Table, medium: Medium, left_out: list[str]) -> str:
    """Return a title, the columns that fit and figures; *left_out* are columns that no figures were below yet."""
    kept, cells, spared = _fitted(table, medium.terminal.width) if table.columns else ([], [], [])
    left_out += spared
    figures = list(table.figures_beside(left_out))
    said = {column for _, _, *columns in table.figures for column in columns}
    if figures and (lost := [name for name in left_out if name not in said]):
        figures.append(("not shown", f"{', '.join(lost)}: the terminal is too narrow"))
    grids = [_grid(table, cells, block) for block in _blocks(table, kept, cells, medium.terminal.width)]
    endless = medium.terminal if table.layout == "above" else medium.endless
    rows = "\n".join(_rendered(endless, grid) for grid in grids)
    below = _rendered(medium.terminal, _figures_grid(figures)) if figures else ""
    if table.layout == "above":
        return "\n".join(part for part in (below, rows) if part)
    title = _rendered(medium.terminal, safe_text(table.title, "bold")) if table.title else ""
    notes = "".join(_rendered(medium.terminal, safe_text(line, "dim")) for line in table.notes)
    return title + "\n".join(part for part in (rows, below) if part) + notes


def _rendered(terminal: RichConsole, part: RenderableType) -> str:
    """Return the lines of a terminal, without blanks at their ends."""
    with terminal.capture() as capture:
        terminal.print(part)
    lines = terminal_safe_table(capture.get()).removesuffix("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def safe_text(text: str, style: str = "") -> Text:
    """Return a cell or a title of a table; names out of files neither end its line nor colour it."""
    from rich.text import Text

    return Text(terminal_safe(text), style)


def _figures_grid(figures: Iterable[tuple[str, str]]) -> RenderableType:
    """Return lines of a name in bold and what it stands for."""
    from rich.table import Table as Grid

    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in figures:
        grid.add_row(safe_text(name), safe_text(value))
    return grid


def _grid(table: Table, cells: Sequence[Sequence[str]], block: Sequence[int]) -> RenderableType:
    """Return some columns of a table."""
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, padding=(0, table.gap, 0, 0))
    folded = table.layout == "above"
    for column in (table.columns[j] for j in block):
        grid.add_column(
            safe_text(column.name),
            justify="left" if column.left else "right",
            no_wrap=not folded,
            overflow="fold" if folded else "ellipsis",
            min_width=column.width,
        )
    for i, row in enumerate(cells):
        grid.add_row(*(safe_text(row[j], table.style(i, j)) for j in block))
    return grid


def _blocks(table: Table, kept: Sequence[int], cells: Sequence[Sequence[str]], width: int) -> Iterator[Sequence[int]]:
    """Yield columns that stand beside each other: all, or those that fit beside the first one, at least one."""
    if not table.in_blocks:
        yield from [kept] if kept else []
        return
    wide = _widths(table, kept, cells)
    block, used = [kept[0]], wide[kept[0]]
    for j in kept[1:]:
        if len(block) > 1 and used + table.gap + wide[j] > width:
            yield block
            block, used = [kept[0]], wide[kept[0]]
        block.append(j)
        used += table.gap + wide[j]
    yield block


def _widths(table: Table, kept: Iterable[int], cells: Sequence[Sequence[str]]) -> dict[int, int]:
    return {j: max(map(len, (table.columns[j].name, *(row[j] for row in cells)))) for j in kept}


def _fitted(table: Table, width: int) -> tuple[list[int], list[list[str]], list[str]]:
    """Leave columns out and shorten names until a table fits, if it can.

    Returns
    -------
    The columns that are left, the cells of all, and the names of those left out.
    """
    kept, cells = list(range(len(table.columns))), [list(row) for row in table.cells]
    names = next((j for j in kept if table.columns[j].names), None)
    *fewest, most = _NAME_WIDTHS
    least = fewest[width >= _WIDE]
    left_out: list[str] = []
    while True:
        wide = _widths(table, kept, cells)
        over = sum(wide.values()) + table.gap * (len(kept) - 1) - width
        longest = 0 if names is None else wide[names]
        room = min(longest - over, most)
        spared = not any(table.columns[j].spare for j in kept)
        if over <= 0 and (names is None or room >= longest):
            return kept, cells, left_out
        if empty := table.empty_columns.intersection(kept):
            kept.remove(max(empty))
            continue
        if names is not None and (room >= least or spared):
            for row, text in zip(cells, _shortened([row[names] for row in cells], max(room, least)), strict=True):
                row[names] = text
            return kept, cells, left_out
        if spared:
            return kept, cells, left_out
        name = table.columns[max(kept, key=lambda j: table.columns[j].spare)].name
        kept = [j for j in kept if table.columns[j].name != name]  # on both sides of a comparison
        left_out.append(name)


def _shortened(cells: Sequence[str], limit: int) -> list[str]:
    """Shorten ``first … last`` to *limit* characters, each name by itself in its middle."""
    ends = [[cell] if len(cell) <= limit else cell.split(" … ") for cell in cells]
    rooms = [limit if len(names) != 2 else (limit - 3) // 2 for names in ends]
    short = {
        room: shortened_apart(
            (name for names, own in zip(ends, rooms, strict=True) if own == room for name in names), room
        )
        for room in set(rooms)
    }
    return [" … ".join(short[room][name] for name in names) for names, room in zip(ends, rooms, strict=True)]
