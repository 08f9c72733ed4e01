"""Optionals between ops: no plan has one between stages, and stages give the results of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

from stage_equality import assert_partitions_equal, random_feeds

import mtpp


def test_no_optional_crosses_stages(shared_data: Path, tmp_path: Path) -> None:
    """The ops around an optional share a stage, the assumptions say so, and the results are those of the whole."""
    model = shared_data / "cases" / "optional-cut" / "if.onnx"
    feeds = [random_feeds(model, seed) for seed in range(5)]
    assert_partitions_equal(model, tmp_path, feeds, ks=(1, 2, 3, 4), dims="auto")
    plan = mtpp.partition(mtpp.read(model, dims="auto"), 2)
    assert any("optionals kept together" in text for text in plan.assumptions)
