"""``mtpp split --emit`` of graphs that are no ONNX models."""

from __future__ import annotations

import json
from pathlib import Path

from processes import run


def test_graphs_of_any_format_are_handed_over(chain_file: Path, tmp_path: Path) -> None:
    """Their ops are those of the file, so TFLite's partitioner can take their numbers; they say nothing of modules."""
    plan = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-o", plan).returncode == 0
    done = run("split", chain_file, plan, "--emit", "tflite-segments")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_ops"] == "3,1"
    refused = run("split", chain_file, "-", "--emit", "torch", stdin=plan.read_bytes())
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "does not say which modules its ops came from" in refused.stderr


def test_only_models_that_can_run_are_split(chain_file: Path, tmp_path: Path) -> None:
    """Whatever is printed besides."""
    plan = tmp_path / "plan.json"
    assert run("partition", chain_file, "-k", "2", "-o", plan).returncode == 0
    done = run("split", chain_file, plan, "--emit", "cut-names", "-o", tmp_path / "stages")
    assert (done.returncode, done.stdout) == (2, "")
    assert "neither an ONNX model nor an exported PyTorch program" in done.stderr
    assert not (tmp_path / "stages").exists()
