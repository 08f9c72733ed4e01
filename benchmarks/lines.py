"""Lines of code by room: ``python -m benchmarks.lines [ROOT [OTHER_ROOT]]``; of two checkouts, the differences as well.

Every line of a Python file is one of five: docstring, import, body of a function (with its comments and blank lines),
other blank lines and comments, or the rest (signatures, classes, fields, constants).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from benchmarks.report import print_report

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("mtpp", "formats", "solvers", "runtime", "api", "views", "cli", "datasets")
ROOMS = (*PRODUCT, "tests", "benchmarks", "docs", "examples")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Lines:
    """Numbers of lines of each kind, of some files."""

    files: int = 0
    lines: int = 0
    bodies: int = 0
    docstrings: int = 0
    imports: int = 0
    blank: int = 0

    def __add__(self, other: Lines) -> Lines:
        return Lines(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(Lines)))

    def __sub__(self, other: Lines) -> Lines:
        return Lines(*(getattr(self, kind.name) - getattr(other, kind.name) for kind in fields(Lines)))

    def row(self, title: str) -> list[str]:
        """Return the cells of a table; the last is the share of bodies, in percent."""
        share = f"{100 * self.bodies / self.lines:.1f}" if self.lines > 0 else ""
        return [title, *(f"{getattr(self, kind.name):,}" for kind in fields(Lines)), share]


def lines_of(text: str) -> Lines:
    """Count the lines of a file of Python."""
    tree = ast.parse(text)
    blank = {i for i, line in enumerate(text.splitlines(), 1) if not line.strip() or line.lstrip().startswith("#")}
    docstrings = {i for node in _docstrings(tree) for i in _span(node)}
    imports = {i for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for i in _span(node)}
    bodies = {i for node in ast.walk(tree) if isinstance(node, Function) for i in _body(node)} - docstrings - imports
    return Lines(
        files=1,
        lines=len(text.splitlines()),
        bodies=len(bodies),
        docstrings=len(docstrings),
        imports=len(imports - docstrings),
        blank=len(blank - docstrings - imports - bodies),
    )


def _body(function: Function) -> range:
    """Return the lines from the first statement of a function to its last, blank ones and comments among them."""
    return range(function.body[0].lineno, (function.end_lineno or 0) + 1)


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    """Yield the texts that stand as statements: docstrings, also those below fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node


def lines_of_room(folder: Path) -> Lines:
    """Add up the files of a room and of all folders below it."""
    files = (path for path in sorted(folder.rglob("*.py")) if ".venv" not in path.parts)
    return sum((lines_of(path.read_text(encoding="utf-8")) for path in files), Lines())


def rooms_of(root: Path) -> dict[str, Lines]:
    """Return the lines of each room of a checkout, and of the product as a whole."""
    rooms = {room: lines_of_room(root / room) for room in ROOMS if (root / room).is_dir()}
    return {"product": sum((rooms[room] for room in PRODUCT if room in rooms), Lines()), **rooms}


def main(arguments: Sequence[str]) -> None:
    """Print the tables that the module's docstring describes."""
    columns = ("room", *(kind.name for kind in fields(Lines)), "bodies %")
    found = [rooms_of(Path(argument)) for argument in arguments[:2] or [str(ROOT)]]
    for rooms in found:
        print_report("Lines by room", columns, [lines.row(room) for room, lines in rooms.items()])
    if len(found) == 2:
        before, after = found
        rows = [(after.get(room, Lines()) - before.get(room, Lines())).row(room) for room in before | after]
        print_report("Lines by room, second less first", columns, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
