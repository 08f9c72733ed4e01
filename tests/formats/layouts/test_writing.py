"""Layouts written for engines: read back they are the same stages, or they are refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtpp
from mtpp.formats.language_models.module_trees import modules_of_configuration
from mtpp.formats.layouts.registry import LAYOUT_FORMATS
from mtpp.formats.layouts.request import LayoutRequest

WRITERS = sorted(name for name, one in LAYOUT_FORMATS.items() if one.write)
BY_COUNTS = [name for name in WRITERS if name not in ("deepspeed", "exo")]
COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=9)


@pytest.mark.parametrize("engine", BY_COUNTS)
@given(counts=COUNTS, tied=st.booleans())
def test_stages_are_read_back(engine: str, counts: list[int], tied: bool) -> None:
    """Each with its layers; the embedding first, the head last."""
    request = LayoutRequest(layers=sum(counts), stages=len(counts), tied=tied)
    writer = LAYOUT_FORMATS[engine].write
    assert writer is not None
    written = writer(counts, request)
    layout = mtpp.read_layout(engine, written.setting, layers=sum(counts), stages=len(counts), tied=tied)
    starts = [sum(counts[:i]) for i in range(len(counts))]
    assert layout.ranges == [[start, start + count] for start, count in zip(starts, counts, strict=True)]
    assert layout.findings == []


@pytest.mark.parametrize("engine", ["megatron", "torchtitan"])
@given(counts=st.lists(st.integers(1, 5), min_size=2, max_size=5), data=st.data())
def test_virtual_stages_are_read_back(engine: str, counts: list[int], data: st.DataObject) -> None:
    """Two for each rank, the last of them with MTP layers where the engine has such."""
    counts = [*counts, *data.draw(st.permutations(counts))]
    mtp = data.draw(st.integers(0, 2)) if engine == "megatron" else 0
    request = LayoutRequest(layers=sum(counts), stages=len(counts) // 2, mtp=mtp)
    writer = LAYOUT_FORMATS[engine].write
    assert writer is not None
    setting = writer(counts, request).setting
    layout = mtpp.read_layout(engine, setting, layers=sum(counts), stages=len(counts) // 2, mtp=mtp)
    assert (layout.vpp, layout.layers, layout.findings) == (2, counts, [])
    assert (layout.mtp_on or []) == ([len(counts) - 1] if mtp else [])


@given(layers=st.integers(4, 40), stages=st.integers(1, 4), weights=st.tuples(*[st.integers(0, 9)] * 3))
def test_deepspeed_has_a_method_or_none(layers: int, stages: int, weights: tuple[int, int, int]) -> None:
    """Its own plans can be asked for, most others cannot."""
    known = {"weights": [weights[0], *[weights[1]] * layers, 1, weights[2]]}
    own = mtpp.read_layout("deepspeed", known, layers=layers, stages=stages)
    counts = [end - start for start, end in (pair or [0, 0] for pair in own.ranges or [])]
    writer: Any = LAYOUT_FORMATS["deepspeed"].write
    request = LayoutRequest(layers=layers, stages=stages)
    if own.head_on == [stages - 1] and own.final_norm_on == [stages - 1] and own.embedding_on == [0]:
        written = writer(counts, request, known)
        assert mtpp.read_layout("deepspeed", written.setting, layers=layers, stages=stages).ranges == own.ranges
        read = mtpp.read_layout("deepspeed", known | setting_of(written.text), layers=layers)
        assert read.bounds == own.bounds
    if stages > 1 and layers > stages + 2:
        with pytest.raises(mtpp.InputError, match=r"none of DeepSpeed's methods gives .* layers: uniform "):
            writer([layers - stages + 1, *[1] * (stages - 1)], request, {"weights": [1] * (layers + 3)})


def setting_of(text: str) -> dict[str, Any]:
    """Return method and number of stages of a line of Python."""
    found = re.fullmatch(r'PipelineModule\(layers, num_stages=(\d+), partition_method="(.*)"\)\n', text)
    assert found is not None
    return {"num_stages": int(found[1]), "partition_method": found[2]}


def test_exo_is_told_the_memory_of_nodes() -> None:
    """Or nothing, where its nodes' own memory gives the plan."""
    writer: Any = LAYOUT_FORMATS["exo"].write
    request, known = LayoutRequest(layers=32, stages=3), {"ram_available_gb": [64, 32, 16]}
    assert writer([18, 9, 5], request, known).setting == known
    written = writer([16, 10, 6], request, known)
    assert written.setting == {"ram_available_gb": [16, 10, 6]}
    assert written.text.splitlines()[0] == "OVERRIDE_MEMORY_MB=16384 exo  # node 0"
    assert mtpp.read_layout("exo", written.text, layers=32).layers == [16, 10, 6]


@pytest.mark.parametrize("engine", BY_COUNTS)
def test_other_numbers_of_layers_are_refused(engine: str) -> None:
    """And of stages."""
    writer: Any = LAYOUT_FORMATS[engine].write
    with pytest.raises(mtpp.InputError, match="the stages have 5 layers, the model 6"):
        writer([2, 3], LayoutRequest(layers=6))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_stages_without_layers_are_refused(engine: str) -> None:
    """An engine would take them, and lose."""
    writer: Any = LAYOUT_FORMATS[engine].write
    with pytest.raises(mtpp.InputError, match=r"stage 1 has the head alone, and .* gives each stage a layer"):
        writer([5, 0], LayoutRequest(layers=5))


def test_texts_can_be_pasted() -> None:
    """Variables, flags and entries of files."""
    request = LayoutRequest(layers=6, stages=2, mtp=1)
    texts = {
        engine: LAYOUT_FORMATS[engine].write([2, 4], request).text for engine in BY_COUNTS if engine != "llama.cpp"
    }  # type: ignore[misc]
    sizes = "--pipeline-parallel-size 2 --tensor-parallel-size 1"
    assert texts["vllm"] == f"VLLM_PP_LAYER_PARTITION=2,4 vllm serve MODEL {sizes}\n"
    server = "python -m sglang.launch_server --model-path MODEL"
    assert texts["sglang"] == f"SGLANG_PP_LAYER_PARTITION=2,4 {server} {sizes}\n"
    assert texts["tensorrt-llm"] == "pipeline_parallel_size: 2\ntensor_parallel_size: 1\npp_partition: [2, 4]\n"
    assert texts["megatron"] == (
        '--pipeline-model-parallel-size 2\n--pipeline-model-parallel-layout "Ett|t*4mL"\n--mtp-num-layers 1\n'
    )
    assert texts["torchtitan"].startswith("pipeline_parallel_degree = 2\nmodule_fqns_per_model_part = [[")
    write: Any = LAYOUT_FORMATS["llama.cpp"].write
    assert write([11, 12, 8, 17], LayoutRequest(layers=48)).text == (
        "-dev CUDA0,CUDA1,CUDA2,CUDA3 -ngl 49 -ts 11,12,8,18\n"
    )


@pytest.mark.parametrize("engine", BY_COUNTS)
def test_pasted_texts_are_read(engine: str) -> None:
    """With notes above and other settings beside."""
    write: Any = LAYOUT_FORMATS[engine].write
    text = write([2, 4], LayoutRequest(layers=6, tied=True)).commented
    assert mtpp.read_layout(engine, text, layers=6, stages=2).ranges == [[0, 2], [2, 6]]


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        ("vllm", "VLLM_PP_LAYER_PARTITION=2,4"),
        ("vllm", "VLLM_PP_LAYER_PARTITION=2, 4"),
        ("vllm", "export A=1 VLLM_PP_LAYER_PARTITION='2,4' && vllm serve"),
        ("sglang", "SGLANG_PP_LAYER_PARTITION=2,4 python -m x --pp 2"),
        ("tensorrt-llm", "pp_partition: [2, 4]"),
        ("tensorrt-llm", "pp_partition = 2, 4"),
        ("llama.cpp", "llama-server -m x.gguf -ngl 7 -ts 2,5"),
        ("megatron", "ARGS=(\n  --pipeline-model-parallel-layout Ett|t*4L\n)"),
    ],
)
def test_lines_of_scripts_are_read(engine: str, text: str) -> None:
    """With the name of the variable, the flag or the key in front."""
    assert mtpp.read_layout(engine, text, layers=6, stages=2).ranges == [[0, 2], [2, 6]]


def test_a_pasted_flag_of_megatron_is_read() -> None:
    """In quotes as a shell takes it."""
    line = '--pipeline-model-parallel-layout "Ett|t*4L"'
    assert mtpp.read_layout("megatron", line, layers=6, stages=2).layers == [2, 4]


def test_a_map_has_the_names_of_its_model() -> None:
    """GPT-2's, with its tied head beside the embedding."""
    configuration = {"model_type": "gpt2", "n_embd": 8, "n_layer": 3, "n_head": 2, "vocab_size": 9, "n_positions": 4}
    modules = modules_of_configuration(configuration)
    write: Any = LAYOUT_FORMATS["accelerate"].write
    written = write([1, 2], LayoutRequest(layers=3, tied=True, modules=lambda: modules))
    placed = json.loads(written.text.removeprefix("device_map = "))
    assert placed == {
        "transformer.wte": 0,
        "transformer.wpe": 0,
        "transformer.drop": 0,
        "transformer.h.0": 0,
        "transformer.h.1": 1,
        "transformer.h.2": 1,
        "transformer.ln_f": 1,
        "lm_head": 0,
    }
    layout = mtpp.read_layout("accelerate", placed, layers=3, model=modules)
    assert (layout.ranges, layout.findings) == ([[0, 1], [1, 3]], [])
