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
