"""Values of any kind under any key: a layout, or an error of one line."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import mtpp
from mtpp.formats.language_models.module_trees import llama_names
from mtpp.formats.layouts.registry import LAYOUT_FORMATS

VALUES: list[Any] = [
    None, 0, 1, -1, 2.5, True, 10**30, float("nan"), float("inf"), "", "x", "1,2", "10GB", "auto", "{", "[[", "-ts",
    "--x=1", "type:(", "type:", "0:3", '{"a":{}}', b"x", [], [1, 2], ["a"], [["a"]], [[1]], [None], [[]], (1, 2), {},
    {"a": 1}, {"0": "1GB"}, {0: {}}, {1: 2},
]  # fmt: skip
KEYS = {
    "vllm": ["VLLM_PP_LAYER_PARTITION"],
    "sglang": ["SGLANG_PP_LAYER_PARTITION"],
    "tensorrt-llm": ["pp_partition"],
    "megatron": ["--pipeline-model-parallel-layout", "--mtp-num-layers", "virtual_pipeline_model_parallel_size"],
    "megatron-flags": [
        "--decoder-first-pipeline-num-layers",
        "--decoder-last-pipeline-num-layers",
        "--account-for-embedding-in-pipeline-split",
        "--num-virtual-stages-per-pipeline-rank",
        "--num-layers-per-virtual-pipeline-stage",
    ],
    "megatron-bridge": ["pipeline_model_parallel_layout", "recipe", "vp", "named", "mtp_num_layers"],
    "torchtitan": [
        "module_fqns_per_model_part",
        "pipeline_parallel_first_stage_less_layers",
        "pipeline_parallel_last_stage_less_layers",
        "pipeline_parallel_layers_per_stage",
        "pipeline_parallel_schedule",
    ],
    "deepspeed": ["partition_method", "pipeline_layers", "weights", "class_names", "num_stages"],
    "accelerate": ["device_map", "mode", "max_memory", "no_split_module_classes", "dtype", "fallback_allocation"],
    "transformers": ["device_map", "mode", "max_memory", "no_split_module_classes", "dtype"],
    "llama.cpp": [
        "--tensor-split",
        "--n-gpu-layers",
        "--override-tensor",
        "--n-cpu-moe",
        "--split-mode",
        "free_memory",
    ],
    "exo": ["ram_available_gb", "storage_gb", "storage_bytes"],
    "petals": ["--block_indices", "--num_blocks", "throughputs", "memory_bytes", "hidden_size", "block_bytes"],
}


def test_every_engine_is_tried() -> None:
    """None is left out."""
    assert KEYS.keys() == LAYOUT_FORMATS.keys()


@pytest.mark.parametrize("engine", KEYS)
def test_junk_is_read_or_refused(engine: str) -> None:
    """With no other error."""
    draw = Random(engine)
    for _ in range(400):
        keys = draw.sample(KEYS[engine], draw.randint(0, min(3, len(KEYS[engine]))))
        layout = draw.choice([draw.choice(VALUES), *[{key: draw.choice(VALUES) for key in keys}] * 4])
        layers = draw.choice([1, 3])
        model = draw.choice([None, llama_names(layers, False)])
        stages, mtp = draw.choice([None, 1, 2, 3]), draw.choice([0, 1])
        try:
            read = mtpp.read_layout(engine, layout, layers=layers, stages=stages, mtp=mtp, model=model)
        except mtpp.InputError as error:
            lines = str(error).count("\n") + 1
        else:
            lines = 1
            assert read.engine in (engine, "megatron-flags")
        assert lines == 1
