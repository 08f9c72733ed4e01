"""Examples in docstrings run, and say what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOM = Path(__file__).parents[2] / "api"
MODULES = sorted(path for path in ROOM.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    """No example fails."""
    module = import_module(".".join(("mtpp", "api", *path.relative_to(ROOM).with_suffix("").parts)))
    assert doctest.testmod(module).failed == 0
