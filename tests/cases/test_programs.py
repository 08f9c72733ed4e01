"""Exported programs with arguments that are no tensors, sizes that only a run tells, and regions of torch.vmap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from stage_equality import assert_equal, read_manifest, run_program_stages  # noqa: E402

import mtpp  # noqa: E402
from mtpp.errors import InputError  # noqa: E402

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
    manifest = read_manifest(tmp_path / "stages")
    assert [one["name"] for one in manifest["inputs"]] == ["x"]
    whole = torch.export.load(path)
    shape = manifest["inputs"][0]["shape"]
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(shape)
        expected = whole.module()(x, *ARGUMENTS[name])
        found = run_program_stages(tmp_path / "stages", {"x": x})
        assert_equal(found[0].detach(), expected.detach())


@pytest.mark.slow
def test_what_passes_the_check_runs(shared_data: Path, tmp_path: Path) -> None:
    """Stages compute what the program does for any number of rows, and ``run`` needs no sizes."""
    path = shared_data / "cases" / "data-dependent-torch" / "m.pt2"
    plan = mtpp.partition(mtpp.read(path, dims="auto"), 2)
    split = mtpp.split(path, plan, tmp_path / "stages", check=True)
    assert split.passed
    whole = torch.export.load(path).module()
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(6, 8)
        (found,) = run_program_stages(tmp_path / "stages", {"x": x})
        assert_equal(found.detach(), whole(x).detach())
    assert mtpp.run_pipeline(split, model=path, batches=2, warmup=0).agrees


def test_a_region_counts_its_batch_and_is_one_op(shared_data: Path, tmp_path: Path) -> None:
    """Work is that of the program without the region; the remedy that the refusal names makes a program that splits."""
    model = shared_data / "cases" / "vmap-torch" / "vmap.pt2"
    graph = mtpp.read(model).graph
    assert len(graph.op_names) == 4
    told = "4 ops around regions of torch.vmap merged into 1: split takes the program once its run_decompositions() "
    assert any(one.startswith(told) for one in mtpp.partition(model, 2).assumptions)
    taken_apart = tmp_path / "apart.pt2"
    torch.export.save(torch.export.load(model).run_decompositions({}), taken_apart)
    plain = mtpp.read(taken_apart).graph
    for key in ("flops", "macs", "work_ps"):
        assert graph.metadata.get(key) == plain.metadata.get(key)
    assert sum(graph.work) == sum(plain.work)

    with pytest.raises(InputError, match=r"torch\.vmap.*run_decompositions\(\)"):
        mtpp.split(model, mtpp.partition(model, 2), tmp_path / "refused")
    x = torch.randn(2, 4)
    whole = torch.export.load(taken_apart).module()(x)
    for cut in range(1, len(plain.op_names)):
        stages = {op: int(place >= cut) for place, op in enumerate(plain.op_names)}
        folder = tmp_path / str(cut)
        mtpp.split(taken_apart, stages, folder)
        found = run_program_stages(folder, {"a_0": x})
        assert_equal(np.asarray(found[0]), whole.detach().numpy())


@pytest.mark.slow
def test_both_stacks_of_a_model_stay_whole(shared_data: Path, tmp_path: Path) -> None:
    """Layers of encoder and decoder are each in one stage, by the names of their ops; the stages compute the same."""
    path = shared_data / "cases" / "torch" / "t5-two-kinds-of-blocks.pt2"
    plan = mtpp.partition(path, 3, together_blocks=True)
    assert "blocks kept whole: 3 of m.encoder.block, 3 of m.decoder.block" in plan.assumptions
    stages: dict[str, set[int]] = {}
    for name, stage in plan.assignment.items():
        if ".block." in name:
            stages.setdefault(".".join(name.split(".")[:4]), set()).add(stage)
    assert [len(found) for found in stages.values()] == [1] * 6
    assert mtpp.verify(plan, path).passed
    assert mtpp.split(path, plan, tmp_path / "stages", check=True).passed
