"""Files that name a member of a family: as the table "Adding things" of ARCHITECTURE.md lists them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from module_graph import modules, parsed

ROW = re.compile(r"^\| (?P<what>[^|`]+) \| (?P<where>[^|]+) \| `(?P<example>[a-z0-9-]+)` \|$", re.MULTILINE)
PLACE = re.compile(r"`([a-z_/]+(?:\.py|/))`")


def _rows(checkout: Path) -> dict[str, tuple[str, list[str]]]:
    """Return what is added, with the example of it and the files and folders of its row."""
    text = (checkout / "ARCHITECTURE.md").read_text(encoding="utf-8")
    text = text[text.index("## Adding things") :]
    return {row["what"]: (row["example"], PLACE.findall(row["where"])) for row in ROW.finditer(text)}


@cache
def _words(path: Path) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the texts in a module, the names in its code, and the parts of what it imports from modules."""
    texts, names, parts = set(), set(), set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.Name | ast.Attribute):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.ImportFrom):
            parts.update(part for one in node.names for part in f"{node.module}.{one.name}".split("."))
    return frozenset(texts), frozenset(names), frozenset(parts)


def _names(path: Path, example: str) -> bool:
    """Say whether a module holds an example's name as a text or as a constant, or imports its module."""
    stem = example.replace("-", "_")
    texts, names, parts = _words(path)
    return example in texts or stem.upper() in names or stem in parts


def _own(path: str, example: str) -> bool:
    """Say whether a module is the example's own: named after it, as its parts are."""
    return Path(path).stem.startswith(example.replace("-", "_"))


def test_every_row_has_an_example(checkout: Path) -> None:
    """The table has a row for each family, and an example in each."""
    text = (checkout / "ARCHITECTURE.md").read_text(encoding="utf-8")
    lines = [line for line in text[text.index("## Adding things") :].splitlines() if line.startswith("|")]
    assert len(_rows(checkout)) == len(lines) - 2 == 7


@pytest.mark.parametrize(
    "what",
    [
        "partitioner",
        "lower bound",
        "graph format",
        "plan for another program",
        "planner",
        "family of graphs",
        "use case",
    ],
)
def test_files_that_name_an_example_are_those_of_its_row(checkout: Path, what: str) -> None:
    """No other module of the product names it, each file of the row does, and each folder has a module of its own."""
    example, places = _rows(checkout)[what]
    product = {path.relative_to(checkout).as_posix(): path for path in modules(checkout).values()}
    naming = {name for name, path in product.items() if not _own(name, example) and _names(path, example)}
    assert naming == {place for place in places if place.endswith(".py")}
    folders = {Path(name).parent.as_posix() + "/" for name in product if _own(name, example)}
    assert {place for place in places if place.endswith("/")} <= folders
