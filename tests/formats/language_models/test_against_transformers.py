"""The table of architectures against transformers: parameters on the meta device, and caches that it allocates."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.reader import read_language_model

transformers = pytest.importorskip("transformers", minversion="5")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

SIZES = {
    "hidden_size": 64, "num_hidden_layers": 7, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 96, "vocab_size": 200,
}  # fmt: skip
GPT2 = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
}
T5 = {
    "hidden_size": "d_model",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "d_ff",
}
RENAMED: dict[str, dict[str, str]] = {
    "gpt2": GPT2, "gpt_bigcode": GPT2, "gptj": GPT2, "t5": T5, "mt5": T5, "umt5": T5,
    "opt": {"intermediate_size": "ffn_dim"}, "bloom": {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    "falcon": {"num_key_value_heads": "num_kv_heads", "intermediate_size": "ffn_hidden_size"},
}  # fmt: skip
EQUAL_HEADS = {"gpt2", "gpt_bigcode", "gptj", "t5", "mt5", "umt5", "opt", "bloom", "gpt_neox"}
"""Architectures without a number of heads of keys."""

LATENT = {
    "n_routed_experts": 6, "moe_intermediate_size": 48, "kv_lora_rank": 24, "q_lora_rank": 20, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 12, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "num_key_value_heads": 8,
}  # fmt: skip
DELTA = {
    "num_experts": 6, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 40, "num_experts_per_tok": 2,
    "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 12, "linear_value_head_dim": 8,
    "head_dim": 16,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "bamba": {"mamba_n_heads": 8, "mamba_d_state": 16, "attn_layer_indices": [1, 4], "mamba_d_head": 16},
    "cohere2": {"sliding_window": 9},
    "deepseek_v2": LATENT | {"q_lora_rank": None, "first_k_dense_replace": 2},
    "deepseek_v3": LATENT | {"first_k_dense_replace": 2},
    "deepseek_v32": LATENT | {"index_n_heads": 4, "index_head_dim": 16},
    "exaone4": {"sliding_window": 9},
    "falcon_h1": {"mamba_n_heads": 8, "mamba_d_ssm": 96, "mamba_d_state": 16, "mamba_d_head": 12},
    "gemma2": {"head_dim": 16, "sliding_window": 9},
    "gemma3_text": {"head_dim": 16, "sliding_window": 9},
    "gemma3n_text": {
        "head_dim": 16, "vocab_size_per_layer_input": 100, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 1,
        "sliding_window": 9, "laurel_rank": 8, "activation_sparsity_pattern": None, "num_hidden_layers": 10,
    },
    "glm": {"pad_token_id": 0}, "glm4": {"pad_token_id": 0}, "smollm3": {"pad_token_id": 0},
    "glm4_moe": {"n_routed_experts": 6, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "head_dim": 12},
    "glm4_moe_lite": LATENT, "glm_moe_dsa": LATENT | {"index_n_heads": 4, "index_head_dim": 16},
    "gpt_oss": {"num_local_experts": 6, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 9},
    "granitemoe": {"num_local_experts": 4},
    "granitemoeshared": {"num_local_experts": 4, "shared_intermediate_size": 32},
    "granitemoehybrid": {
        "mamba_n_heads": 8, "mamba_d_state": 16, "mamba_d_head": 16,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"] + ["linear_attention"] * 3,
    },
    "gptj": {"rotary_dim": 8},
    "jamba": {"num_experts": 4, "num_hidden_layers": 9, "use_mamba_kernels": False},
    "kimi_linear": {
        "num_experts": 4, "moe_intermediate_size": 24, "kv_lora_rank": 24, "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8, "v_head_dim": 12, "num_key_value_heads": 8, "linear_num_heads": 4, "linear_head_dim": 16,
        "num_experts_per_token": 2, "pad_token_id": 0,
    },
    "llama4_text": {
        "num_local_experts": 3, "intermediate_size_mlp": 80, "attention_chunk_size": 9, "head_dim": 8,
    },
    "mamba2": {"num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 2},
    "minimax_m2": {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16},
    "mistral": {"sliding_window": 9}, "mixtral": {"num_local_experts": 6}, "olmo3": {"sliding_window": 9},
    "olmoe": {"num_experts": 6, "num_experts_per_tok": 2}, "opt": {"word_embed_proj_dim": 64},
    "phi3": {"sliding_window": 9, "pad_token_id": 0},
    "qwen2": {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 3},
    "qwen2_moe": {
        "num_experts": 6, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 40, "num_experts_per_tok": 2,
    },
    "qwen3_5_moe_text": DELTA, "qwen3_5_text": DELTA, "qwen3_next": DELTA,
    "qwen3_moe": {"num_experts": 6, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "head_dim": 12},
    "starcoder2": {"sliding_window": 9},
}  # fmt: skip
"""Sizes that keep models small, by architecture."""

FULL_SIZE_ONLY = {"minimax", "nemotron_h"}
"""Architectures whose caches or sizes transformers has in a form of its own."""

NAMES = sorted({row.name for row in ARCHITECTURES.values()} & set(transformers.CONFIG_MAPPING))
FLAGS = ("attention_bias", "mlp_bias", "tie_word_embeddings", "use_qk_norm", "use_bias", "mamba_conv_bias", "bias",
         "new_decoder_architecture", "multi_query", "qkv_bias", "mamba_rms_norm", "projectors_bias")  # fmt: skip
SEQUENCES = {"t5", "mt5", "umt5"}


def _small(name: str) -> dict[str, Any]:
    without = {"num_key_value_heads"} if name in EQUAL_HEADS else set()
    if name in ("mamba", "mamba2", "falcon_mamba"):
        without = {"num_attention_heads", "num_key_value_heads", "intermediate_size"}
    if name == "bloom":
        without |= {"intermediate_size"}
    renamed = RENAMED.get(name, {})
    values = SIZES | OWN.get(name, {})
    return {renamed.get(key, key): value for key, value in values.items() if key not in without}


def _built(name: str, configuration: Any, device: str) -> Any:
    library = transformers.AutoModelForSeq2SeqLM if name in SEQUENCES else transformers.AutoModelForCausalLM
    with torch.device(device):
        try:
            return library.from_config(configuration, attn_implementation="eager", experts_implementation="eager")
        except (ValueError, TypeError):
            return library.from_config(configuration)


def _counted(model: Any) -> dict[str, Any]:
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    apart = {id(one) for part in (embedding, head) for one in part.parameters()}
    layers: defaultdict[tuple[str, int], int] = defaultdict(int)
    other = 0
    for path, parameter in model.named_parameters():
        found = re.match(r"(.*?(?:^|\.)(?:layers|h|blocks?))\.(\d+)\.", path)
        if id(parameter) in apart:
            continue
        if found:
            layers[found[1], int(found[2])] += parameter.numel()
        else:
            other += parameter.numel()
    tied = embedding.weight is head.weight
    head_count = sum(one.numel() for one in head.parameters())
    return {"layers": list(layers.values()), "embedding": embedding.weight.numel(), "other": other, "tied": tied,
            "head": None if tied else head_count}  # fmt: skip


def _read(folder: Path, values: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    (folder / "config.json").write_text(json.dumps(values, default=str))
    model = read_language_model(folder / "config.json")
    found = {
        "layers": [layer.parameters for layer in model.layers],
        "embedding": model.embedding.parameters,
        "other": model.other.parameters,
        "tied": model.tied,
        "head": None if model.tied else model.head_parameters,
    }
    return found, model


@pytest.mark.parametrize("name", NAMES)
def test_parameters_at_full_size(tmp_path: Path, name: str) -> None:
    """The configuration that the library has by default, written out."""
    configuration = transformers.CONFIG_MAPPING[name]()
    assert _read(tmp_path, configuration.to_dict())[0] == _counted(_built(name, configuration, "meta"))


@pytest.mark.parametrize("name", sorted(set(NAMES) - FULL_SIZE_ONLY))
def test_parameters_with_each_flag(tmp_path: Path, name: str) -> None:
    """Small models of keys alone that differ from the defaults, with biases, norms and ties switched one by one."""
    kind, values = transformers.CONFIG_MAPPING[name], _small(name)
    plain = kind(**values)
    skipped = {"tie_word_embeddings"} if name in SEQUENCES | {"kimi_linear"} else set()
    flags = [flag for flag in FLAGS if flag in plain.to_dict() and flag not in skipped]
    for changed in [{}, *({flag: not getattr(plain, flag)} for flag in flags)]:
        expected = _counted(_built(name, kind(**values, **changed), "meta"))
        assert _read(tmp_path, {"model_type": name, **values, **changed})[0] == expected, changed


def _elements(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return int(value.numel())
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(_elements, inner))


@pytest.mark.parametrize("name", sorted(set(NAMES) - FULL_SIZE_ONLY))
def test_caches_that_are_allocated(tmp_path: Path, name: str) -> None:
    """Below and beyond a window of 9, of which transformers keeps 8 tokens; states with all columns."""
    kind, values = transformers.CONFIG_MAPPING[name], _small(name)
    model = _built(name, kind(**values), "cpu")
    _, read = _read(tmp_path, {"model_type": name, **values})
    caches = [layer.cache for layer in read.layers if layer.part == "decoder"]
    for tokens in (7, 20):
        ids = torch.zeros((1, tokens), dtype=torch.long)
        more = {"decoder_input_ids": ids} if name in SEQUENCES else {}
        with torch.no_grad():
            result = model(input_ids=ids, use_cache=True, **more)
        held = result.cache_params if "cache_params" in result else result.past_key_values
        held = held.self_attention_cache if name in SEQUENCES else held
        names = ("keys", "values", "conv_states", "recurrent_states")
        found = [sum(_elements(getattr(layer, one, None)) for one in names) for layer in held.layers]
        expected = [
            cache.per_token * (tokens if cache.window is None else min(tokens, cache.window - 1))
            + cache.state
            + cache.convolution
            for cache in caches
        ]
        assert [size for size in found if size] == [size for size in expected if size]
