"""Tables as HTML, for notebooks: whatever comes out of a file is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mtpp.terminal_safe import terminal_safe

_LEFT = 'style="text-align: left"'
_RIGHT = 'style="text-align: right"'


def html_text(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    figures: Iterable[tuple[str, str]] = (),
    *,
    left: Sequence[int] = (),
) -> str:
    """Return a table with a title above it and figures below; columns are right-aligned but for those in *left*."""
    sides = [_LEFT if column in left else _RIGHT for column in range(len(header))]
    head = "".join(f"<th {side}>{_safe(name)}</th>" for side, name in zip(sides, header, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td {side}>{_safe(cell)}</td>' for side, cell in zip(sides, row, strict=True))}</tr>"
        for row in rows
    )
    below = "".join(
        f"<tr><th {_LEFT}>{_safe(name)}</th><td {_LEFT}>{_safe(value)}</td></tr>" for name, value in figures
    )
    return (
        f"<div><p><b>{_safe(title)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<table><tbody>{below}</tbody></table>" if below else "")
        + "</div>"
    )


def _safe(text: str) -> str:
    return escape(terminal_safe(str(text)))
