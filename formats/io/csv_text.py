"""Comma-separated values that a spreadsheet shows and never runs, and their way back.

A spreadsheet takes a text that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, in full-width characters as
well, and some skip blanks before it. Such a text gets an apostrophe before it, and so does one that begins with a tab,
a line break or another control character, which blanks may precede too. A text that begins with an apostrophe gets
another one: so each cell that begins with an apostrophe loses it when it is read, and every text comes back as it was.
Numbers stay as they are.

RFC 4180, with line feeds between the rows.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_FORMULA = frozenset("=+-@")
_APOSTROPHE = "'"
_CRLF = "\r\n"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a header and rows as comma-separated values; texts among the cells are escaped, numbers are not."""
    lines = _Lines()
    writer = csv.writer(lines, lineterminator=_CRLF)
    writer.writerow(header)
    writer.writerows([escaped(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return "".join(lines)


class _Lines(list[str]):
    """Rows that a writer writes, each with a line feed at its end.

    The writer is told another end: it quotes those characters alone, and a carriage return that is not quoted would
    end a row, and let the rest of a name begin a cell.
    """

    def write(self, row: str) -> None:
        """Take a row."""
        self.append(row.removesuffix(_CRLF) + "\n")


def csv_rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of comma-separated values with their escaped texts undone, the header first.

    Raises
    ------
    ValueError
        If a quoted cell does not end.
    """
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            yield [unescaped(cell) for cell in row]
    except csv.Error as error:
        raise ValueError(str(error)) from None


def escaped(text: str) -> str:
    """Return *text* as a cell that no spreadsheet runs; :func:`unescaped` returns it as it was."""
    return _APOSTROPHE + text if text.startswith(_APOSTROPHE) or _may_run(text) else text


def unescaped(cell: str) -> str:
    """Return the text that :func:`escaped` made a cell of."""
    return cell.removeprefix(_APOSTROPHE)


def _may_run(text: str) -> bool:
    """Return whether the first character that is seen begins a formula, or one before it is a control character."""
    for character in text:
        category = unicodedata.category(character)
        if category == "Cc":
            return True
        if category[0] not in "ZC":  # neither a blank nor invisible
            return unicodedata.normalize("NFKC", character)[0] in _FORMULA
    return False
