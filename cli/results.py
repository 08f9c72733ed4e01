"""Where a command's result goes: standard output in the format asked for, and a file if there is one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def write_stdout(text: str) -> None:
    """Print *text* on standard output, whatever its encoding can show."""
    if not text.endswith("\n"):
        text += "\n"
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "ascii", "replace"))
    sys.stdout.flush()


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return comma-separated values with a header line."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def markdown_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a pipe table; text columns left, numbers right."""
    body = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    numeric = [bool(body) and all(_numeric(row[i]) for row in body) for i in range(len(header))]
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join("---:" if right else "---" for right in numeric) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    return "\n".join(lines) + "\n"


def _numeric(cell: str) -> bool:
    return cell in ("", "-", "–") or cell[:1].isdigit()


def deliver(output: str | None, json_text: Callable[[], str], shown: Callable[[], str]) -> None:
    """Write JSON to *output* if given (``-``: standard output, and nothing else then), and show the rest."""
    if output == "-":
        write_stdout(json_text())
        return
    if output is not None:
        from mtpp.formats.sink import write_text_atomically

        write_text_atomically(output, json_text())
    write_stdout(shown())
