"""Outputs that nobody reads, and results of which one is returned twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage_equality import assert_equal, assert_partitions_equal, random_feeds, read_manifest, run_program_stages

import mtpp

BATCHES = 3


@pytest.mark.parametrize("cut", [0, 2])
def test_buffers_are_kept_where_only_they_change(shared_data: Path, tmp_path: Path, cut: int) -> None:
    """A stage whose only op counts batches runs, counts them, and is split like any other."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    path = shared_data / "cases" / "unused-outputs" / "batch-counter.pt2"
    graph = mtpp.read(path).graph
    first = graph.op_names.index("n.0.add_")
    others = [op for op in graph.order if op != first]
    assignment = {graph.op_names[op]: 1 + int(place > cut) for place, op in enumerate(others)} | {
        graph.op_names[first]: 0
    }
    split = mtpp.split(path, assignment, tmp_path / "stages", check=True)
    assert split.passed
    whole = torch.export.load(path).module()
    stages = [torch.export.load(tmp_path / "stages" / stage.file).module() for stage in split.manifest.stages]
    for _ in range(BATCHES):
        x = torch.randn(split.manifest.inputs[0].shape)
        live = {"x": x}
        with torch.no_grad():
            expected = whole(x)
            for stage, module in zip(split.manifest.stages, stages, strict=True):
                made = module(*(live[one.name] for one in stage.inputs))
                live |= dict(zip((one.name for one in stage.outputs), made, strict=True))
        assert torch.equal(live[split.manifest.outputs[0].name], expected)
    held = {name: buffer for module in stages for name, buffer in module.named_buffers()}
    assert held["n.0.num_batches_tracked"] == BATCHES
    for name, buffer in whole.named_buffers():
        assert torch.equal(held[name], buffer), name


@pytest.mark.parametrize("name", ["model", "split"])
def test_a_crash_of_the_runtime_is_one_line(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Where ONNX Runtime is ended by a signal, every command that runs models says so and ends with exit code 1."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    path = shared_data / "cases" / "unused-outputs" / f"{name}.onnx"
    plan = mtpp.partition(path, 2)
    for run in (
        lambda: mtpp.split(path, plan, check=True),
        lambda: mtpp.profile(path, repeats=1, warmup=0),
        lambda: mtpp.run_pipeline(mtpp.split(path, plan, tmp_path / "stages"), batches=1, warmup=0),
    ):
        with pytest.raises(mtpp.MtppError, match="crashed") as raised:
            run()
        assert raised.value.exit_code == 1
        assert "SIGSEGV" in str(raised.value)


def test_models_with_unused_outputs_are_split(shared_data: Path) -> None:
    """Outputs that nobody reads are no reason to refuse a cut."""
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    path = shared_data / "cases" / "unused-outputs" / "lstm.onnx"
    assert mtpp.split(path, mtpp.partition(path, 2), check=True).passed


def test_a_graph_lists_its_output_twice(shared_data: Path, tmp_path: Path) -> None:
    """Both results of the ONNX model stand in the manifest, and the check compares both."""
    pytest.importorskip("onnxruntime")
    model = shared_data / "cases" / "results-listed" / "twice.onnx"
    assert_partitions_equal(model, tmp_path, [random_feeds(model, seed) for seed in range(3)])
    assert [row["name"] for row in read_manifest(tmp_path / "k2")["outputs"]] == ["y", "y"]
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
