"""Micro-batches in flight: all rows of the paper's table."""

from __future__ import annotations

import json
from pathlib import Path

from mtpp.training.in_flight import least_before


def test_every_row_of_table_2(shared_reference: Path) -> None:
    """Jeon et al. (2025), Table 2, rounded up to whole micro-batches."""
    cases = json.loads((shared_reference / "graphpipe.json").read_text())["table_2"]["cases"]
    assert len(cases) == 12
    for case in cases:
        size = case["b_x"]
        needed = least_before(size, case["k_x"], case["b_y"], case["k_y"], case["i_y"])
        assert -(-needed // size) * size == case["i_x"]
