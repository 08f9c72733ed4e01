"""Examples in docstrings run, and say what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

MODULES = sorted(path.stem for path in (Path(__file__).parents[2] / "api").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    """No example fails."""
    assert doctest.testmod(import_module(f"mtpp.api.{name}")).failed == 0
