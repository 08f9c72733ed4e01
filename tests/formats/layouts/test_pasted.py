"""Layouts as people have them at hand: lines, files, and facts beside them."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refusal

from mtpp.formats.layouts.pasted import PastedLayout, pasted_layout

_LISTS = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "lm_head"]]
_TITAN = {"module_fqns_per_model_part": _LISTS}


@pytest.mark.parametrize(
    ("engine", "text", "setting", "stages"),
    [
        ("vllm", "9,10,10,11", "9,10,10,11", None),
        ("vllm", "-1,33", "-1,33", None),
        ("vllm", "default", {}, None),
        ("vllm", "export VLLM_PP_LAYER_PARTITION='16, 32'\n", {"VLLM_PP_LAYER_PARTITION": "16, 32"}, None),
        ("vllm", "VLLM_PP_LAYER_PARTITION: '16,32'", {"VLLM_PP_LAYER_PARTITION": "16,32"}, None),
        ("vllm", "vllm serve m -pp 4", {}, 4),
        ("vllm", [16, 32], {"VLLM_PP_LAYER_PARTITION": "16,32"}, None),
        ("sglang", "# as planned\nSGLANG_PP_LAYER_PARTITION=8,8\n--pp-size 2", {"SGLANG_PP_LAYER_PARTITION": "8,8"}, 2),
        ("tensorrt-llm", "[20, 16]", {"pp_partition": [20, 16]}, None),
        ("tensorrt-llm", "pipeline_parallel_size: 2\npp_partition: [20, 16]\n", "20, 16", 2),
        ("tensorrt-llm", "pp_partition:\n- 20\n- 16\n", "20,16", None),
        ("megatron", "Et*3|(tt|)*29,m|L", "Et*3|(tt|)*29,m|L", None),
        (
            "megatron",
            "--decoder-first-pipeline-num-layers 16 --decoder-last-pipeline-num-layers=13 --lr 1e-4",
            {"--decoder-first-pipeline-num-layers": 16, "--decoder-last-pipeline-num-layers": 13},
            None,
        ),
        ("torchtitan", '[["tok_embeddings", "layers.0"], ["layers.1", "norm", "lm_head"]]', _TITAN, None),
        (
            "torchtitan",
            "[parallelism]\npipeline_parallel_degree = 2\n"
            'module_fqns_per_model_part = [["tok_embeddings","layers.0"],["layers.1","norm","lm_head"]]\n',
            _TITAN,
            2,
        ),
        ("accelerate", "auto", "auto", None),
        ("accelerate", 'device_map = {"": 0}', {"": 0}, None),
        ("transformers", "{'model': 0, 'lm_head': 'cpu'}", {"model": 0, "lm_head": "cpu"}, None),
        ("llama.cpp", "3/1", "3/1", None),
        ("llama.cpp", "-3,1", "-3,1", None),
        ("llama.cpp", "llama-server -m m.gguf -ngl 33 -ts 9,24", {"-ngl": "33", "-ts": "9,24"}, None),
        ("llama.cpp", r'-ot "blk\.(2[0-9])\.ffn=CPU" -ot a=CPU', {"-ot": r"blk\.(2[0-9])\.ffn=CPU,a=CPU"}, None),
        ("deepspeed", "type:decoder", "type:decoder", None),
        (
            "deepspeed",
            'PipelineModule(layers, num_stages=4, partition_method="uniform")',
            {"partition_method": "uniform"},
            4,
        ),
        ("exo", '{"ram_available_gb": [64, 32.5]}', {"ram_available_gb": [64, 32.5]}, None),
        ("petals", "0:18", "0:18", None),
        ("petals", "--block_indices 0:18", {"block_indices": "0:18"}, None),
        ("petals", "run --num_blocks 6", {"num_blocks": 6}, None),
    ],
)
def test_forms(engine: str, text: Any, setting: Any, stages: int | None) -> None:
    """Settings go to the engine's reader as they are; the number of stages beside them is read too."""
    found = pasted_layout(engine, text)
    assert (found.engine, found.setting, found.stages) == (engine, setting, stages)
    assert found.own_rule == (setting in ({}, "auto"))


def test_command_lines_say_devices_and_degrees() -> None:
    """Of all engines that have them."""
    line = "CUDA_VISIBLE_DEVICES=1,0 VLLM_PP_LAYER_PARTITION=16,32 vllm serve m \\\n -pp 2 --tensor-parallel-size=4"
    setting = {"VLLM_PP_LAYER_PARTITION": "16,32"}
    assert pasted_layout("vllm", line) == PastedLayout("vllm", setting, 2, (1, 0), 4)
    assert pasted_layout("llama.cpp", "-ts 1,1 -dev CUDA1,CUDA0").devices == (1, 0)
    assert pasted_layout("megatron", "--pipeline-model-parallel-size 8 --tensor-model-parallel-size 2") == PastedLayout(
        "megatron", {}, 8, None, 2
    )


@pytest.mark.parametrize(
    ("engine", "text", "said"),
    [
        ("accelerate", "{", "not valid JSON"),
        ("accelerate", "[1, 2]", "is list, neither a text nor keys and values"),
        ("vllm", "VLLM_PP_LAYER_PARTITION='1,2", "no line of a shell"),
        ("vllm", "VLLM_PP_LAYER_PARTITION=1,2 -pp x", "the number of stages is 'x'"),
        ("vllm", "CUDA_VISIBLE_DEVICES=0,0 --pp-size 2", "devices '0,0' are not numbers, each once"),
        ("llama.cpp", '-ts "1,1', "no line of a shell"),
        ("torchtitan", "layers.0", "no TOML"),
        ("torchtitan", "a = " + "[" * 5000, "nested"),
        ("accelerate", "[" * 5000, "nested"),
    ],
)
def test_broken_lines_are_refused(engine: str, text: str, said: str) -> None:
    """In one line."""
    assert said in str(refusal(pasted_layout, engine, text))
