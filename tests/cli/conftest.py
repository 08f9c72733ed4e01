"""Small models for the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_strategies import chain, random_graph

from mtpp.formats.graphs.native import write_native


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    """Return a path of four ops of 10, 20, 30 and 40 ms, 1 ms between neighbours."""
    path = tmp_path / "chain.json"
    path.write_text(write_native(chain([10, 20, 30, 40], [1, 1, 1], "ms")))
    return path


@pytest.fixture
def random_file(tmp_path: Path) -> Path:
    """Return an abstract random graph of 60 ops."""
    path = tmp_path / "random.json"
    path.write_text(write_native(random_graph(7, 60)))
    return path
