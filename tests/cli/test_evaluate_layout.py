"""``mtpp evaluate --layout`` and ``mtpp compare --layouts``: exit codes, gates, formats."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from language_models import LLAMA
from processes import printed, refused, run

_DEVICE = '[device.system]\npeak_flops = "1TFLOP/s"\nmemory_bandwidth = "1GB/s"\nbandwidth = "1GB/s"\n'


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Write a model of 8 layers and a machine of two devices beside it."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 1000, "num_hidden_layers": 8}
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, **sizes}))
    (tmp_path / "m.toml").write_text(f'name = "m"\n[[device]]\nname = "d"\ncount = 2\nmemory = "8MB"\n{_DEVICE}')
    return tmp_path


def _audit(model: Path, layout: str, *more: str) -> Any:
    return run("evaluate", model, "--layout", layout, "--machine", model / "m.toml", *more)


def test_exit_codes(model: Path) -> None:
    """0, 1 where there are findings or a gate is not met, 2 where the engine refuses."""
    assert _audit(model, "vllm=5,3").returncode == 0
    found = _audit(model, "vllm=-1,9")
    assert found.returncode == 1
    assert "finding" in found.stdout
    found = _audit(model, "vllm=5,3", "--require-ratio", "1.05")
    assert (found.returncode, found.stderr.splitlines()[-1].split(": ")[:2]) == (1, ["unmet", "--require-ratio 1.05"])
    assert _audit(model, "vllm=5,3", "--require-ratio", "1.2").returncode == 0
    for layout, said in (("vllm=5,2", "sum(partitions)=7"), ("none=1", "'none=1' is no ENGINE=TEXT")):
        found = _audit(model, layout)
        assert found.returncode == 2
        assert len(found.stderr.splitlines()) == 1
        assert said in found.stderr


def test_files_and_formats(model: Path) -> None:
    """A file holds what one pastes; JSON, CSV and a file of the result say the same."""
    (model / "layout.sh").write_text("# as planned\nexport VLLM_PP_LAYER_PARTITION=5,3\n")
    document = json.loads(
        printed("evaluate", model, "--layout", f"vllm={model / 'layout.sh'}", "--machine", model / "m.toml",
                "--format", "json", "-o", model / "out.json")
    )  # fmt: skip
    assert json.loads((model / "out.json").read_text()) == document
    assert [row["ranges"] for row in document["stages"]] == [[[0, 5]], [[5, 8]]]
    rows = list(csv.DictReader(io.StringIO(_audit(model, "vllm=5,3", "--format", "csv").stdout)))
    assert [row["ranges"] for row in rows] == ["0–4", "5–7"]
    assert [int(row["cost"]) for row in rows] == [row["cost"] for row in document["stages"]]


def test_options_that_do_not_go_together(model: Path) -> None:
    """Are refused as usage."""
    for more in (["--cuts", "a"], ["--against", "slice"], ["--embed"]):
        assert refused("evaluate", model, "--layout", "vllm=5,3", *more)
    assert "goes with --layout" in refused("evaluate", model, "--cuts", "a", "--time-limit", "3")
    assert "goes with --layouts" in refused("compare", model, "--machines", model / "m.toml", "-k", "2")


def test_rules_compared(model: Path) -> None:
    """A row for each engine; 1 where no layout has a ratio."""
    table = printed("compare", model, "--layouts", "vllm,exo", "--machines", model / "m.toml", "-q")
    assert [line.split()[0] for line in table.splitlines()[2:4]] == ["vllm", "exo"]
    rows = json.loads(printed("compare", model, "--layouts", "all", "-k", "2,4", "--format", "json", "-q"))["rows"]
    assert len(rows) == 20
    assert {row["devices"] for row in rows} == {2, 4}
    assert run("compare", model, "--layouts", "exo", "-k", "2").returncode == 1
