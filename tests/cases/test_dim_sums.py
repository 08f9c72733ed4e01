"""Names of sizes that read as sums: where the sum does not fit, the name is a size of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_partitions_equal, random_feeds

import mtpp


def test_a_sum_that_does_not_fit_is_a_size_of_its_own(shared_data: Path, tmp_path: Path) -> None:
    """With 4 tokens the mask of past + 4 is proposed although its name says past + 1, and stages run with it."""
    pytest.importorskip("onnxruntime")
    path = shared_data / "cases" / "dim-sums" / "plus-one.onnx"
    sizes = dict(mtpp.read(path, dims={"*": "auto", "sequence_length": 4}).dims)
    assert sizes["past_sequence_length + 1"] == 132
    assert sizes["past_sequence_length"] == 128
    feeds = [random_feeds(path, seed, sizes) for seed in range(2)]
    assert_partitions_equal(path, tmp_path, feeds, dims=sizes)


def test_a_sum_that_fits_is_taken(shared_data: Path) -> None:
    """With one token the name is what it says."""
    path = shared_data / "cases" / "dim-sums" / "plus-one.onnx"
    assert mtpp.read(path, dims="auto").dims["past_sequence_length + 1"] == 129
