"""Plans of language models handed over to engines, from documents and from maps of ops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from language_models import LLAMA
from processes import refused, run
from refusals import refusal

import mtpp

OPS = ["embedding", "model.layers.0", "model.layers.1", "model.layers.2", "model.layers.3", "head"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the folder of a model of four layers, without weights."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA | {"num_hidden_layers": 4}))
    return folder


def _assignment(*stages: int) -> dict[str, int]:
    return dict(zip(OPS, stages, strict=True))


def _document(order: list[int], stages: list[int], degrees: list[int] | None = None) -> dict[str, Any]:
    """Return as much of a plan for three devices as is looked at."""
    names = ["a100", "l4", "h100"]
    rows: list[dict[str, Any]] = [{"index": i, "device": {"name": names[j], "index": j}} for i, j in enumerate(order)]
    for row, degree in zip(rows, degrees or [], strict=False):
        row["tensor_parallel"] = degree
    machine = {"devices": [{"name": name} for name in names]}
    return {
        "format": "mtpp-plan", "version": 1, "machine": machine, "stages": rows, "assignment": _assignment(*stages),
    }  # fmt: skip


def test_maps_of_ops_are_plans(model: Path) -> None:
    """Stages without ops are left out."""
    text = mtpp.emit(model, _assignment(0, 0, 0, 2, 2, 2), "vllm")
    sizes = "--pipeline-parallel-size 2 --tensor-parallel-size 1"
    assert text == f"VLLM_PP_LAYER_PARTITION=2,2 vllm serve {model} {sizes}\n"
    several = mtpp.emit(model / "config.json", _assignment(0, 0, 0, 1, 1, 1), ["tensorrt-llm", "llama.cpp"])
    assert several.startswith("pipeline_parallel_size: 2\n")
    assert several.endswith("-dev CUDA0,CUDA1 -ngl 5 -ts 2,3\n")


def test_plans_say_the_devices(model: Path) -> None:
    """In the order of the stages; those without a stage are left out."""
    text = mtpp.emit(model, _document([2, 0, 1], [0, 0, 0, 0, 1, 1]), "sglang")
    assert text.startswith("# devices of the stages in order: h100, a100\n")
    assert "\nCUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,0 SGLANG_PP_LAYER_PARTITION=3,1 python" in text


def test_plans_say_the_tensor_degrees(model: Path) -> None:
    """Only those of stages with ops count."""
    text = mtpp.emit(model, _document([0, 1, 2], [0, 0, 0, 1, 1, 1], [2, 2, 1]), "vllm")
    assert text.endswith(" --tensor-parallel-size 2\n")
    mixed = _document([0, 1, 2], [0, 0, 0, 1, 1, 1], [2, 4, 1])
    assert "stages have tensor degrees 2 and 4" in str(refusal(mtpp.emit, model, mixed, "vllm"))


def test_virtual_stages(model: Path) -> None:
    """Of Megatron and torchtitan."""
    plan = _assignment(0, 0, 1, 2, 3, 3)
    text = mtpp.emit(model, plan, "megatron", virtual_stages=2)
    assert text == '--pipeline-model-parallel-size 2\n--pipeline-model-parallel-layout "Et|t|t|tL"\n'
    assert 'pipeline_parallel_schedule = "Interleaved1F1B"' in mtpp.emit(model, plan, "torchtitan", virtual_stages=2)
    onnx = mtpp.datasets.sample_path("resnet50")
    assert "virtual_stages: are of language models" in str(refusal(mtpp.emit, onnx, {}, "vllm", virtual_stages=2))


@pytest.mark.parametrize(
    ("plan", "form", "said"),
    [
        (_assignment(0, 0, 0, 1, 1, 1), "cut-names", "'cut-names' is no form of plans of language models"),
        (_assignment(0, 0, 0, 1, 1, 1), "x", "unknown form 'x'"),
        (_assignment(0, 0, 0, 1, 1, 1) | {"model.layers.4": 1}, "vllm", "the model has no such op"),
        (_assignment(0, 1, 1, 1, 1, 1), "vllm", "stage 0 has the embedding alone"),
        (_assignment(0, 0, 1, 0, 1, 1), "vllm", "'model.layers.2' is in stage 0"),
        ({"embedding": 0}, "vllm", "no stage"),
    ],
)
def test_plans_that_are_refused(model: Path, plan: dict[str, int], form: str, said: str) -> None:
    """In one line with the reason."""
    with pytest.raises((mtpp.InputError, mtpp.InvalidPartition), match=said):
        mtpp.emit(model, plan, form)


def test_engines_of_language_models_take_no_graphs() -> None:
    """But for the two whose text needs numbers of layers alone."""
    onnx = mtpp.datasets.sample_path("gpt2")
    assert "'sglang' is a form of plans of language models" in str(refusal(mtpp.emit, onnx, {}, "sglang"))


def test_the_command_prints_the_text(model: Path, tmp_path: Path) -> None:
    """And ends with 2 where the engine cannot have the plan, or stages are to be files."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(_assignment(0, 0, 0, 1, 1, 1)))
    done = run("split", str(model), str(plan), "--emit", "accelerate")
    placed = json.loads(done.stdout.splitlines()[-1].removeprefix("device_map = "))
    assert mtpp.read_layout("accelerate", placed, layers=4, model=model).ranges == [[0, 2], [2, 4]]
    plan.write_text(json.dumps(_assignment(0, 1, 1, 1, 1, 1)))
    assert (
        "--emit: stage 0 has the embedding alone, and vLLM gives each stage a layer; plan with --layers-only"
        in refused("split", str(model), str(plan), "--emit", "vllm")
    )
    assert "give --emit alone" in refused("split", str(model), str(plan), "-o", str(tmp_path / "out"))


def test_whole_layers_with_the_ends_beside_them(shared_data: Path) -> None:
    """42 layers on 16 stages: the head of a large vocabulary would be alone, and leave stages empty."""
    path = shared_data / "llm" / "gemma2-9b"
    plan = mtpp.partition(path, 16, layers_only=True)
    assert plan.optimal
    layout = mtpp.read_layout("vllm", mtpp.emit(path, plan, "vllm"), layers=42, stages=16, model=path)
    assert (len(layout.layers or []), layout.findings) == (16, [])
    free = mtpp.partition(path, 16)
    assert "the head alone" in str(refusal(mtpp.emit, path, free, "vllm"))
    assert free.bottleneck < plan.bottleneck
    assert mtpp.verify(plan, model=path).passed


@pytest.mark.parametrize("name", ["configs/deepseek-v3.json", "configs/gemma3n-e4b-text.json", "configs/t5-large.json"])
def test_groups_of_other_kinds_stay(shared_data: Path, name: str) -> None:
    """MTP layers with the head, layers of one cache with each other; ends of an encoder and of its decoder."""
    plan = mtpp.partition(shared_data / "llm" / name, 4, layers_only=True)
    ops = list(plan.assignment)
    assert plan.assignment["embedding"] == plan.assignment[ops[1]]
    before = ops[ops.index("head") - 1]
    assert len({plan.assignment[op] for op in ops[ops.index(before) :]}) == 1


def test_graphs_have_no_layers_to_keep() -> None:
    """Their blocks can be kept whole."""
    said = str(refusal(mtpp.partition, mtpp.datasets.sample_path("resnet50"), 2, layers_only=True))
    assert "layers_only: is of language models" in said


def test_plans_are_printed_for_an_engine_at_once(model: Path, tmp_path: Path) -> None:
    """In place of the table; the document is written whether or not the engine can have the plan."""
    written = tmp_path / "plan.json"
    done = run("partition", str(model), "-k", "2", "--layers-only", "--emit", "vllm", "-o", str(written))
    assert done.stdout == run("split", str(model), str(written), "--emit", "vllm").stdout
    assert mtpp.read_layout("vllm", done.stdout, layers=4, stages=2).findings == []
    other = tmp_path / "other.json"
    assert "'torch' is no form" in refused("partition", str(model), "-k", "2", "--emit", "torch", "-o", str(other))
    assert json.loads(other.read_text())["k"] == 2
    assert "unknown form 'x'" in refused("partition", str(model), "-k", "2", "--emit", "x")


def test_graphs_are_printed_as_well() -> None:
    """For the programs that take plans of graphs."""
    onnx = mtpp.datasets.sample_path("resnet50")
    done = run("partition", str(onnx), "-k", "2", "--emit", "cut-names")
    assert json.loads(done.stdout)["format"] == "mtpp-cuts"


MACHINE = """
name = "nodes"

[[device]]
name = "a"
system = "a100"
count = 2
memory = "40GB"
tensor_parallel = [2, 4, 8]
tensor_link = "300GB/s"

[[device]]
name = "b"
system = "a100"
count = 2
memory = "40GB"
tensor_parallel = [1, 2]
tensor_link = "300GB/s"
"""


def test_one_tensor_degree_for_all_stages(shared_data: Path, tmp_path: Path) -> None:
    """Where the best plan has several, which engines do not take."""
    path, machine = shared_data / "llm" / "configs" / "llama-70b.json", tmp_path / "nodes.toml"
    machine.write_text(MACHINE)
    read = mtpp.read(path, machine=machine)
    free, whole = mtpp.partition(read), mtpp.partition(read, layers_only=True)
    assert free.bottleneck < whole.bottleneck
    assert "stages have tensor degrees" in str(refusal(mtpp.emit, path, free, "vllm"))
    text = mtpp.emit(path, whole, "vllm")
    assert text.endswith("--pipeline-parallel-size 2 --tensor-parallel-size 8\n")
    layout = mtpp.read_layout("vllm", text, layers=80, stages=2)
    assert layout.findings == []
    report = mtpp.verify(whole, model=path)
    assert report.passed
    assert whole.optimal


def test_plans_of_other_files_are_told(shared_data: Path, tmp_path: Path) -> None:
    """Layers of the same names may have other sizes."""
    configs = shared_data / "llm" / "configs"
    plan = tmp_path / "plan.json"
    mtpp.partition(configs / "qwen3-8b.json", 2).save(plan)
    assert run("split", str(configs / "qwen3-8b.json"), str(plan), "--emit", "vllm").stderr == ""
    document = json.loads(plan.read_text())
    document["model"]["sha256"] = "0" * 64
    plan.write_text(json.dumps(document))
    done = run("split", str(configs / "qwen3-8b.json"), str(plan), "--emit", "vllm")
    assert "the plan was made from other files" in done.stderr
    assert done.returncode == 0
