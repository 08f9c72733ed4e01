"""Exported programs with arguments that are no tensors, and with results that are inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import assert_equal, run_program_stages  # noqa: E402

import mtpp  # noqa: E402

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "arg-int": (3,),
    "arg-str": ("causal",),
    "out-onlyinput": (),
    "plain": (3, False, "t", 2.5),
}
"""Arguments of each program behind its tensor."""


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_stages_take_the_tensors_only(shared_data: Path, tmp_path: Path, name: str, cut: int) -> None:
    """Plain arguments are constants of the export, and stages behind any cut compute what the program does."""
    path = shared_data / "cases" / "kwargs-dict" / f"{name}.pt2"
    graph = mtpp.read(path).graph
    assignment = {graph.op_names[op]: int(place > cut) for place, op in enumerate(graph.order)}
    mtpp.split(path, assignment, tmp_path / "stages")
    manifest = json.loads((tmp_path / "stages" / "manifest.json").read_text())
    assert [one["name"] for one in manifest["inputs"]] == ["x"]
    whole = torch.export.load(path)
    shape = manifest["inputs"][0]["shape"]
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(shape)
        expected = whole.module()(x, *ARGUMENTS[name])
        found = run_program_stages(tmp_path / "stages", {"x": x})
        assert_equal(found[0].detach(), expected.detach())
