"""Rules by counts against the functions of the engines themselves, where these are installed."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import mtpp
from mtpp.api.language_models.emission import engine_text
from mtpp.formats.language_models.reader import read_language_model
from mtpp.formats.layouts.deepspeed import balanced_bounds, uniform_bounds
from mtpp.language_models.language_model import LanguageModel
from mtpp.language_models.layer_stages import layer_stages

WORDS = ["-1", "+3", "1_0", " 4 ", "x", "", "5;5", "1.0", "1__0"]


def _function(module: str, name: str) -> Any:
    return getattr(pytest.importorskip(module, exc_type=ImportError), name)


def _own(rule: Callable[[], Any]) -> Any:
    """Return what an engine's function says, or the words of its error."""
    try:
        return rule()
    except (ValueError, AssertionError) as error:
        return str(error).strip()


def _read(engine: str, layout: Any, **of: Any) -> Any:
    try:
        return mtpp.read_layout(engine, layout, **of)
    except mtpp.InputError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "module", "variable"),
    [
        ("vllm", "vllm.distributed.utils", "VLLM_PP_LAYER_PARTITION"),
        ("sglang", "sglang.srt.distributed.utils", "SGLANG_PP_LAYER_PARTITION"),
    ],
)
def test_ranges_of_stages(engine: str, module: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of texts and without one, and the words of errors."""
    indices = _function(module, "get_pp_indices")
    draw = Random(engine)
    for _ in range(2000):
        stages, layers = draw.randint(1, 6), draw.randint(1, 40)
        words = [draw.choice(WORDS) if draw.random() < 0.2 else str(draw.randint(0, 9)) for _ in range(stages)]
        text = draw.choice([None, ",".join(words)])
        monkeypatch.delenv(variable, raising=False)
        if text is not None:
            monkeypatch.setenv(variable, text)
            numbers = [int(word) for word in words if word.isdecimal()]
            layers = max(1, sum(numbers)) if len(numbers) == stages else layers
        layout = _read(engine, {} if text is None else text, layers=layers, stages=stages)
        own = _own(lambda: [list(indices(layers, stage, stages)) for stage in range(stages)])  # noqa: B023
        assert own in layout if isinstance(own, str) else layout.ranges == own


@pytest.mark.slow
def test_bounds_of_deepspeed() -> None:
    """Of weights of all kinds."""
    uniform = _function("deepspeed.runtime.utils", "partition_uniform")
    balanced = _function("deepspeed.runtime.utils", "partition_balanced")
    draw = Random(1)
    for _ in range(500):
        stages, most = draw.randint(1, 9), draw.choice([1, 3, 10**9])
        weights = [draw.randint(0, most) for _ in range(draw.randint(1, 26))]
        assert uniform_bounds(len(weights), stages) == [int(bound) for bound in uniform(len(weights), stages)]
        assert balanced_bounds(weights, stages) == [int(bound) for bound in balanced(weights, stages)]


def _text(draw: Random) -> str:
    stages = [draw.choice(["", "t", "tt", "t*3", "(t)*2", "t*2,1", "t*0"]) for _ in range(draw.randint(1, 6))]
    stages[0] = f"E{stages[0]}"
    stages[-1] += draw.choice(["L", "mL", "m|L", "m*2|L", "m|mL", "L|", " L", ""])
    return draw.choice(["|", "|", "|,"]).join(stages)


@pytest.mark.slow
def test_layouts_of_megatron(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of each virtual stage, and the words of assertions."""
    module = "megatron.core.transformer.pipeline_parallel_layer_layout"
    layout_class = _function(module, "PipelineParallelLayerLayout")
    state = pytest.importorskip("megatron.core.parallel_state", exc_type=ImportError)
    monkeypatch.setattr(state, "get_virtual_pipeline_model_parallel_world_size", lambda: 2)
    draw = Random(1)
    for _ in range(4000):
        text, ranks, mtp = _text(draw), draw.randint(1, 4), draw.choice([0, 0, 1, 2])
        layers = max(1, _decoders(text))
        layout = _read("megatron", text, layers=layers, stages=ranks, mtp=mtp)
        theirs = _own(lambda: layout_class(text, ranks))  # noqa: B023
        refused = theirs if isinstance(theirs, str) else _own(lambda: theirs.validate_layer_layout(layers, mtp))  # noqa: B023
        if isinstance(refused, str):
            assert refused in layout
            continue
        assert (layout.mtp_standalone, layout.vpp) == (refused, theirs.virtual_pipeline_model_parallel_size)
        for stage, pair in enumerate(layout.ranges):
            held = theirs.get_layer_id_list(vp_stage=stage // ranks, pp_rank=stage % ranks)
            assert pair == ([held[0], held[-1] + 1] if held else [])


def _decoders(text: str) -> int:
    """Count decoder layers of a text that is in order, 3 of any other."""
    from mtpp.formats.layouts.megatron_text import stages_of_text

    try:
        return sum(stage.count("decoder") for stage in stages_of_text(text))
    except mtpp.InputError:
        return 3


@pytest.mark.slow
def test_names_of_torchtitan() -> None:
    """Of its own rule."""
    module = pytest.importorskip("torchtitan.distributed.pipeline_parallel", exc_type=ImportError)
    names = getattr(module, "_generate_llm_fqn_per_model_part", None) or module.generate_llm_fqn_per_model_part
    for stages in range(1, 9):
        for layers in range(1, 20):
            setting = {f"pipeline_parallel_{end}_stage_less_layers": stages % 3 for end in ("first", "last")}
            layout = _read("torchtitan", setting, layers=layers, stages=stages)
            own = _own(lambda: names(stages, layers, stages % 3, stages % 3))  # noqa: B023
            assert own in layout if isinstance(own, str) else layout.module_fqns_per_model_part == own


def _texts(engine: str, shared_data: Path, names: list[str]) -> Iterator[tuple[LanguageModel, Path, list[int], str]]:
    """Yield plans that are written for an engine: model, its path, layers of stages, text."""
    draw = Random(engine)
    for name in names:
        path = shared_data / "llm" / name
        model = read_language_model(path)
        layers = [layer.name for layer in model.layers]
        for stages in range(1, 9):
            ends = [0, *sorted(draw.sample(range(1, len(layers)), stages - 1)), len(layers)]
            counts = [end - start for start, end in pairwise(ends)]
            of_layers = [i for i, count in enumerate(counts) for _ in range(count)]
            stage_of = {"embedding": 0, **dict(zip(layers, of_layers, strict=True)), "head": stages - 1}
            yield model, path, counts, engine_text(engine, model, str(path), layer_stages(model, stage_of))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "module"), [("vllm", "vllm.distributed.utils"), ("sglang", "sglang.srt.distributed.utils")]
)
def test_written_commands(engine: str, module: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their variables give the same stages."""
    indices = _function(module, "get_pp_indices")
    for model, _, counts, text in _texts(engine, shared_data, ["llama-8b", "gemma2-9b", "qwen3-30b-a3b"]):
        with monkeypatch.context() as patched:
            for word in text.splitlines()[-1].split():
                if "=" in word:
                    patched.setenv(*word.split("=", 1))
            own = [indices(len(model.layers), stage, len(counts)) for stage in range(len(counts))]
        assert [end - start for start, end in own] == counts


@pytest.mark.slow
def test_written_layouts_of_megatron(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of each rank."""
    layout_class = _function("megatron.core.transformer.pipeline_parallel_layer_layout", "PipelineParallelLayerLayout")
    state = pytest.importorskip("megatron.core.parallel_state", exc_type=ImportError)
    monkeypatch.setattr(state, "get_virtual_pipeline_model_parallel_world_size", lambda: None)
    for model, _, counts, text in _texts("megatron", shared_data, ["llama-8b", "qwen3-30b-a3b"]):
        theirs = layout_class(text.split('"')[1], len(counts))
        theirs.validate_layer_layout(len(model.layers), 0)
        own = [theirs.get_layer_id_list(vp_stage=0, pp_rank=rank) for rank in range(len(counts))]
        assert [len(ids) for ids in own] == counts


@pytest.mark.slow
def test_written_maps(shared_data: Path) -> None:
    """Every parameter of transformers' modules has a device, and every key is a module; accelerate says so itself."""
    check = _function("accelerate.utils.modeling", "check_device_map")
    pytest.importorskip("transformers")
    from mtpp.runtime.pytorch.meta_model import meta_model

    names = ["llama-8b", "gemma2-9b", "gpt2-xl", "mixtral-8x7b", "configs/mamba2-2.7b.json"]
    names += ["configs/qwen3-next-80b.json", "configs/deepseek-v3.json", "configs/gemma3n-e4b-text.json"]
    for name in names:
        place = shared_data / "llm" / name
        built = meta_model(json.loads((place / "config.json" if place.is_dir() else place).read_text()), name)
        assert built is not None
        for _, _, counts, text in _texts("accelerate", shared_data, [name]):
            placed = json.loads(text.splitlines()[-1].removeprefix("device_map = "))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                check(built, placed)
            assert len(set(placed.values())) == len(counts)
