"""Results of the stages are the model's: as many, in order, one that is returned twice standing twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stage_equality import assert_equal, assert_partitions_equal, random_feeds, run_program_stages

import mtpp


def _listed(folder: Path) -> list[str]:
    return [row["name"] for row in json.loads((folder / "manifest.json").read_text())["outputs"]]


def test_a_graph_lists_its_output_twice(shared_data: Path, tmp_path: Path) -> None:
    """Both results of the ONNX model stand in the manifest, and the check compares both."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "results-listed" / "twice.onnx"
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])
    assert _listed(tmp_path / "k2") == ["y", "y"]
    check = mtpp.split(model, mtpp.partition(model, 2), check=True).stages.check
    assert check is not None
    assert [output.name for output in check.outputs] == ["y", "y"]
    assert check.passed


def test_a_program_returns_tensors_twice(shared_data: Path, tmp_path: Path) -> None:
    """All four results of the program come out of its stages, in its order."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    model = shared_data / "cases" / "results-listed" / "twice.pt2"
    whole = torch.export.load(model).module()
    for k in (1, 2):
        split = mtpp.split(model, mtpp.partition(model, k), tmp_path / f"k{k}", check=True)
        assert split.passed
        assert len(split.manifest.outputs) == 4
        for seed in range(3):
            x = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed))
            with torch.no_grad():
                expected = list(whole(x))
            assert_equal(run_program_stages(tmp_path / f"k{k}", {"a_0": x}), expected)
