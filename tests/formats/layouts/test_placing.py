"""Plans of language models written for engines: read back they are the same stages, or refused with the reason."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import mtpp
from mtpp.api.language_models.emission import engine_text
from mtpp.formats.language_models.reader import read_language_model
from mtpp.formats.layouts.pasted import pasted_layout
from mtpp.language_models.language_model import LanguageModel
from mtpp.language_models.layer_stages import LayerStage, StageDevice, layer_stages

ENGINES = (
    "vllm", "sglang", "tensorrt-llm", "megatron", "torchtitan", "deepspeed", "accelerate", "llama.cpp", "exo",
)  # fmt: skip
BY_COUNTS = ("vllm", "sglang", "tensorrt-llm", "exo")
NOT_PIPELINED = ("gemma3n_text", "mamba2")
NO_MODULES = ("mamba2", "gemma3n_text", "t5")


def _models(folder: Path) -> list[Path]:
    found = [path for path in (folder / "llm").iterdir() if path.is_dir() and path.name not in ("configs", "gguf")]
    return sorted([*found, *(folder / "llm" / "configs").iterdir(), *(folder / "llm" / "gguf").iterdir()])


def _ops(model: LanguageModel) -> list[str]:
    """Return the ops of a model's graph in order."""
    encoder = [layer.name for layer in model.layers if layer.part == "encoder"]
    decoder = [layer.name for layer in model.layers if layer.part != "encoder"]
    return ["embedding", *encoder, *["decoder_embedding"] * bool(encoder), *decoder, "head"]


def _plan(model: LanguageModel, draw: Random, stages: int, *, with_mtp: bool = True) -> list[LayerStage]:
    """Return a random plan of so many stages; half of them cut anywhere. MTP layers are with the head."""
    ops = _ops(model)
    anywhere = draw.random() < 0.5
    cuts = sorted(
        draw.choices(range(len(ops) + 1), k=stages - 1) if anywhere else draw.sample(range(2, len(ops) - 1), stages - 1)
    )
    stage_of = {op: sum(cut <= i for cut in cuts) for i, op in enumerate(ops)}
    if with_mtp:
        stage_of |= {layer.name: stage_of["head"] for layer in model.mtp}
    return layer_stages(model, stage_of)


def _expected(stages: Sequence[LayerStage]) -> list[list[int]]:
    return [list(stage.layers) for stage in stages]


def _is_plain(stages: Sequence[LayerStage]) -> bool:
    return all(stage.count for stage in stages)


def _reason(engine: str, model: LanguageModel, path: Path, stages: Sequence[LayerStage]) -> str | None:
    """Return a part of the reason for which an engine cannot have a plan; None where it can."""
    if engine == "accelerate":
        return "has no names and classes of modules" if path.suffix == ".gguf" else None
    if any(stage.encoder_count or stage.decoder_embedding for stage in stages):
        return "an encoder"
    if engine == "vllm" and model.model_type in NOT_PIPELINED and len(stages) > 1:
        return "does not pipeline"
    if engine in BY_COUNTS and not _is_plain(stages):
        return "alone, and .* gives each stage a layer"
    if engine == "llama.cpp" and not stages[0].count + stages[0].mtp and not stages[0].head:
        return "keeps it on the CPU"
    if engine == "megatron" and any((layer.kind or "").startswith("mamba") for layer in model.layers):
        return "hybrid-layer-pattern"
    if engine == "deepspeed" and any(stage.mtp for stage in stages):
        return "no MTP layers"
    return None


def _read(engine: str, text: str, model: LanguageModel, path: Path, stages: Sequence[LayerStage]) -> Any:
    known = path if engine in ("accelerate", "deepspeed") else None
    layers = sum(layer.part != "encoder" for layer in model.layers)
    mtp = sum(stage.mtp for stage in stages) if engine in ("megatron", "llama.cpp") else 0
    return mtpp.read_layout(engine, text, layers=layers, stages=len(stages), mtp=mtp, tied=model.tied, model=known)


def _text(engine: str, model: LanguageModel, path: Path, stages: Sequence[LayerStage]) -> str | None:
    """Return the text for an engine; None where none of DeepSpeed's methods gives the plan."""
    with contextlib.suppress(mtpp.InputError) if engine == "deepspeed" else contextlib.nullcontext():
        return engine_text(engine, model, str(path), stages)
    with pytest.raises(mtpp.InputError, match=r"none of DeepSpeed's methods gives [\d,]+ layers: uniform [\d,]+, "):
        engine_text(engine, model, str(path), stages)
    return None


@pytest.mark.parametrize("engine", ENGINES)
def test_plans_of_all_models_are_read_back(shared_data: Path, engine: str) -> None:
    """The same layers in the same stages, embedding and head with them, and nothing found; or the reason."""
    draw = Random(engine)
    for path in _models(shared_data):
        model = read_language_model(path)
        for _ in range(4 if engine in ("deepspeed", "accelerate") else 12):
            stages = _plan(model, draw, draw.randint(1, 12), with_mtp=draw.random() < 0.7)
            reason = _reason(engine, model, path, stages)
            if reason is not None:
                with pytest.raises(mtpp.InputError, match=reason):
                    engine_text(engine, model, str(path), stages)
                continue
            text = _text(engine, model, path, stages)
            if text is None:
                continue
            if engine in ("accelerate", "deepspeed") and (path.suffix == ".gguf" or model.model_type in NO_MODULES):
                continue
            layout = _read(engine, text, model, path, stages)
            _check(engine, layout, stages)


def _check(engine: str, layout: Any, stages: Sequence[LayerStage]) -> None:
    if engine == "llama.cpp":
        of_layers = [i for i, stage in enumerate(stages) for _ in range(stage.count)]
        assert layout.devices_of_layers[: len(of_layers)] == of_layers
        assert layout.output_on == f"GPU{len(stages) - 1}"
        assert layout.findings == []
        return
    expected = [pair if pair[0] < pair[1] else [] for pair in _expected(stages)]
    if engine == "accelerate":
        names = dict.fromkeys(layout.device_map.values())
        assert layout.devices_of_layers == [str(i) for i, stage in enumerate(stages) for _ in range(stage.count)]
        assert list(names) == [str(i) for i, _ in enumerate(stages)] or layout.embedding_on == layout.head_on
    else:
        assert layout.ranges == expected
        assert (layout.embedding_on[0], layout.head_on) == (0, [len(stages) - 1])
    assert layout.findings == []


@pytest.mark.parametrize(("name", "first"), [("mamba2-2.7b", "backbone.embeddings"), ("t5-large", "shared")])
def test_maps_by_names_of_weights(shared_data: Path, name: str, first: str) -> None:
    """Of models whose trees of modules the table does not have, an encoder's layers included."""
    path = shared_data / "llm" / "configs" / f"{name}.json"
    model = read_language_model(path)
    stages = _plan(model, Random(3), 3)
    placed = json.loads(engine_text("accelerate", model, str(path), stages).splitlines()[-1].partition(" = ")[2])
    assert (placed[first], placed["lm_head"]) == (0, 0)
    layers = [placed[layer.name] for layer in model.layers]
    encoder = [i for i, stage in enumerate(stages) for _ in range(stage.encoder_count)]
    assert layers == encoder + [i for i, stage in enumerate(stages) for _ in range(stage.count)]
    weights = [weight.name for part in (model.embedding, model.other, *model.layers) for weight in part.weights]
    assert all(any(weight.startswith(f"{module}.") for module in placed) for weight in weights)


def test_tied_heads_of_accelerate_are_with_the_embedding(shared_data: Path) -> None:
    """As a note says; transformers holds one tensor for both."""
    path = shared_data / "llm" / "gemma2-9b"
    model = read_language_model(path)
    text = engine_text("accelerate", model, str(path), _plan(model, Random(1), 3))
    assert "# the tied head is with the embedding, once, not with the final norm\n" in text
    layout = mtpp.read_layout("accelerate", text, layers=42, model=path)
    assert (layout.embedding_on, layout.head_on, layout.findings) == ("0", "0", [])


def _placed(model: LanguageModel, counts: Sequence[int], devices: Sequence[StageDevice]) -> list[LayerStage]:
    names = [layer.name for layer in model.layers]
    of_layers = [i for i, count in enumerate(counts) for _ in range(count)]
    stage_of = {"embedding": 0, **dict(zip(names, of_layers, strict=True)), "head": len(counts) - 1}
    return layer_stages(model, stage_of, devices)


def test_orders_of_devices_are_in_the_text(shared_data: Path) -> None:
    """Where they are not the machine's; devices without a stage are left out."""
    path = shared_data / "llm" / "llama-8b"
    model = read_language_model(path)
    names = ("a100", "l4", "h100")
    for order, shown in (((0, 1, 2), None), ((2, 0, 1), "2,0,1"), ((1, 2), "1,2"), ((0, 1), None)):
        devices = [StageDevice(i, names[i]) for i in order]
        counts = [12, 12, 8][: len(order) - 1]
        stages = _placed(model, [*counts, 32 - sum(counts)], devices)
        text = engine_text("vllm", model, str(path), stages)
        command = text.splitlines()[-1]
        assert command.startswith("CUDA_DEVICE_ORDER=PCI_BUS_ID ")
        assert (f" CUDA_VISIBLE_DEVICES={shown} VLLM_PP" in command) == (shown is not None)
        assert f"# devices of the stages in order: {', '.join(names[i] for i in order)}\n" in text
        assert command.endswith(f"vllm serve {path} --pipeline-parallel-size {len(order)} --tensor-parallel-size 1")
        cuda = ",".join(f"CUDA{i}" for i in order)
        assert f"-dev {cuda} -ngl 33 -ts " in engine_text("llama.cpp", model, str(path), stages)
        placed = mtpp.read_layout("accelerate", engine_text("accelerate", model, str(path), stages), layers=32)
        assert list(dict.fromkeys(placed.devices_of_layers)) == [str(i) for i in order]
        megatron = engine_text("megatron", model, str(path), stages)
        assert ("CUDA_VISIBLE_DEVICES" in megatron) == (shown is not None)
        assert "# start it with CUDA_DEVICE_ORDER=PCI_BUS_ID" in megatron


def test_places_name_the_gpus(shared_data: Path) -> None:
    """Rather than their position in the machine's file."""
    path = shared_data / "llm" / "llama-8b"
    model = read_language_model(path)
    stages = _placed(model, [16, 16], [StageDevice(0, "a", "cuda:3"), StageDevice(1, "b", "cuda:1")])
    assert "CUDA_VISIBLE_DEVICES=3,1 SGLANG_PP" in engine_text("sglang", model, str(path), stages)


def test_tensor_degrees(shared_data: Path) -> None:
    """One for all stages; GPUs of a stage are next to each other."""
    path = shared_data / "llm" / "llama-8b"
    model = read_language_model(path)
    stages = _placed(model, [16, 16], [StageDevice(1, "b", "", 4), StageDevice(0, "a", "", 4)])
    text = engine_text("vllm", model, str(path), stages)
    assert "CUDA_VISIBLE_DEVICES=4,5,6,7,0,1,2,3 " in text
    assert text.endswith("--pipeline-parallel-size 2 --tensor-parallel-size 4\n")
    assert "\n--tensor-model-parallel-size 4\n" in engine_text("megatron", model, str(path), stages)
    assert "\ntensor_parallel_size: 4\n" in engine_text("tensorrt-llm", model, str(path), stages)
    assert "\ntensor_parallel_degree = 4\n" in engine_text("torchtitan", model, str(path), stages)
    larger = _placed(model, [16, 16], [StageDevice(2, "b", "", 2, 16), StageDevice(0, "a", "", 2, 0)])
    assert "CUDA_VISIBLE_DEVICES=16,17,0,1 " in engine_text("vllm", model, str(path), larger)
    mixed = _placed(model, [16, 16], [StageDevice(0, "a", "", 8), StageDevice(1, "b", "", 4)])
    for engine in ("vllm", "sglang", "tensorrt-llm", "megatron", "torchtitan", "deepspeed"):
        with pytest.raises(mtpp.InputError, match=r"tensor degrees 8 and 4, and \S+ has one for all.*layers_only"):
            engine_text(engine, model, str(path), mixed)
    for engine in ("accelerate", "llama.cpp", "exo"):
        with pytest.raises(mtpp.InputError, match=r"a stage has tensor degree 4, and"):
            engine_text(engine, model, str(path), stages)


def test_virtual_stages_and_mtp_layers_of_megatron(shared_data: Path) -> None:
    """Stages go around ranks; the stage of the MTP layers copies the embedding."""
    path = shared_data / "llm" / "configs" / "deepseek-v3.json"
    model = read_language_model(path)
    names = [layer.name for layer in model.layers]
    of_layers = [1 + i // 9 for i in range(61)]
    stage_of = {"embedding": 0, **dict(zip(names, of_layers, strict=True)), "head": 7, model.mtp[0].name: 7}
    stages = layer_stages(model, stage_of)
    text = engine_text("megatron", model, str(path), stages, virtual_stages=2)
    assert text.endswith(
        "--pipeline-model-parallel-size 4\n"
        '--pipeline-model-parallel-layout "E|t*9|t*9|t*9|t*9|t*9|t*9|t*7mL"\n'
        "--mtp-num-layers 1\n"
    )
    assert "# the stage of the MTP layers holds a copy of the embedding\n" in text
    layout = mtpp.read_layout("megatron", text, layers=61, stages=4)
    assert (layout.vpp, layout.mtp_on, layout.stages_of_ranks) == (2, [7], [[0, 4], [1, 5], [2, 6], [3, 7]])
    with pytest.raises(mtpp.InputError, match="virtual_stages: vllm has none"):
        engine_text("vllm", model, str(path), stages, virtual_stages=2)
    with pytest.raises(mtpp.InputError, match="8 stages with ops are no multiple of 3"):
        engine_text("megatron", model, str(path), stages, virtual_stages=3)


def test_heads_alone(shared_data: Path) -> None:
    """For engines that have a place for them; of others the reason, and the way out."""
    path = shared_data / "llm" / "llama-8b"
    model = read_language_model(path)
    names = [layer.name for layer in model.layers]
    stage_of = {"embedding": 0, **dict(zip(names, [1] * 20 + [2] * 12, strict=True)), "head": 3}
    stages = layer_stages(model, stage_of)
    assert '"E|t*20|t*12|L"' in engine_text("megatron", model, str(path), stages)
    assert mtpp.read_layout("torchtitan", engine_text("torchtitan", model, str(path), stages), layers=32).layers == [
        0, 20, 12, 0,
    ]  # fmt: skip
    with pytest.raises(
        mtpp.InputError,
        match=r"stage 0 has the embedding alone, and vLLM gives each stage a layer; plan with layers_only",
    ):
        engine_text("vllm", model, str(path), stages)
    without = layer_stages(model, stage_of | {"embedding": 1})
    assert engine_text("llama.cpp", model, str(path), without).endswith("-ngl 33 -ts 20,12,1\n")


def test_notes(shared_data: Path) -> None:
    """Doings of engines that a plan does not model."""
    notes = {
        ("gemma2-9b", "vllm"): "hybrid caches: groups follow the whole model",
        ("gemma2-9b", "sglang"): "copied into a head of its own",
        ("gemma2-9b", "llama.cpp"): "the token embedding is on the CPU, the tied head is a second copy",
        ("configs/deepseek-v3.json", "vllm"): "MTP layers are those of a drafter",
        ("llama-8b", "accelerate"): "devices compute one after the other",
    }
    for (name, engine), note in notes.items():
        path = shared_data / "llm" / name
        model = read_language_model(path)
        ops = _ops(model)
        stage_of = {op: int(2 * i >= len(ops)) for i, op in enumerate(ops)} | {layer.name: 1 for layer in model.mtp}
        text = engine_text(engine, model, str(path), layer_stages(model, stage_of))
        assert any(line.startswith("# ") and note in line for line in text.splitlines()), (name, engine)


def test_ops_without_a_stage_are_named(shared_data: Path) -> None:
    """And layers in another order."""
    model = read_language_model(shared_data / "llm" / "llama-8b")
    stage_of = dict.fromkeys(_ops(model), 0)
    with pytest.raises(mtpp.InputError, match=r"no stage is known of 'model.layers.3'"):
        layer_stages(model, {op: stage for op, stage in stage_of.items() if op != "model.layers.3"})
    with pytest.raises(mtpp.InputError, match=r"'model.layers.4' is in stage 0, and 'model.layers.3'"):
        layer_stages(model, stage_of | {"model.layers.3": 1})


@pytest.mark.parametrize("engine", ENGINES)
def test_texts_are_read_as_pasted_layouts(shared_data: Path, engine: str) -> None:
    """Notes included, with the order of devices and the tensor degree beside the layout."""
    path = shared_data / "llm" / "llama-8b"
    model = read_language_model(path)
    degree = 1 if engine in ("accelerate", "llama.cpp", "exo") else 2
    devices = [StageDevice(i, f"gpu{i}", "", degree) for i in (1, 0)]
    counts = [17, 15] if engine == "deepspeed" else [20, 12]
    text = engine_text(engine, model, str(path), _placed(model, counts, devices))
    found = pasted_layout(engine, text)
    layout = mtpp.read_layout(engine, found.setting, layers=32, stages=2, model=path if engine == "deepspeed" else None)
    assert layout.ranges == ([[0, 17], [17, 32]] if engine == "deepspeed" else [[0, 20], [20, 32]])
    assert found.stages in (None, 2)
    if degree == 2 or engine == "llama.cpp":
        assert found.devices == ((2, 3, 0, 1) if degree == 2 else (1, 0))
        assert found.first_gpus == ((2, 0) if degree == 2 else (1, 0))


def test_items_are_counted_without_modules(shared_data: Path) -> None:
    """DeepSpeed's uniform method needs no weights and no classes."""
    path = shared_data / "llm" / "gguf" / "llama-8b-Q4_K_M.gguf"
    layout = mtpp.read_layout("deepspeed", "uniform", layers=32, stages=4, model=path)
    assert layout.ranges == [[0, 8], [8, 17], [17, 26], [26, 32]]
    with pytest.raises(mtpp.InputError, match="has no names and classes of modules"):
        mtpp.read_layout("deepspeed", "parameters", layers=32, stages=4, model=path)
