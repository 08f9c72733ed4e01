"""Ops that read or look at a part of a tensor: what is read counts, and not the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtpp

BYTES_PER_S = 200 * 10**9
"""Memory of the system that costs are modelled for by default."""


@pytest.mark.parametrize(
    ("name", "flops", "macs", "read_and_written"),
    [
        # 16 keys for each of 128 queries and 8 heads, 32 MACs and 7 operations a pair; prompt: all keys are read.
        ("gqa-window", 8 * 128 * 16 * (2 * 32 + 7), 8 * 128 * 16 * 32, None),
        # 6 × 64 outputs of 36 products; the whole input, offsets, weights and output move.
        ("deformconv", 2 * 6 * 64 * 36, 6 * 64 * 36, 4 * (400 + 36 * 64 + 216 + 6 * 64)),
        # 75 outputs of four neighbours each, which are read, the grid of 25 places, and 75 written.
        ("gridsample", 8 * 75, 0, 4 * (4 * 75 + 50 + 75)),
        # A diagonal of 30 read and written.
        ("einsum-diag", 0, 0, 4 * 60),
    ],
)
def test_what_is_looked_at_counts(
    name: str, flops: int, macs: int, read_and_written: int | None, shared_data: Path
) -> None:
    """Keys in a window, neighbours of a sample, a diagonal."""
    graph = mtpp.read(shared_data / "cases" / "costs" / f"{name}.onnx").graph
    assert (graph.metadata["flops"], graph.metadata["macs"]) == (flops, macs)
    if read_and_written is not None:
        assert int(graph.work[0]) == read_and_written * 10**12 // BYTES_PER_S
