"""Small models for the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_strategies import chain

from mtpp.formats.graphs.native import write_native


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    """Return a path of four ops of 10, 20, 30 and 40 ms, 1 ms between neighbours."""
    path = tmp_path / "chain.json"
    path.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    return path
