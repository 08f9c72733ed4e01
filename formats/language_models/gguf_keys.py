"""Keys of GGUF files under the names of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.formats.checkpoints.gguf import Length

_KEYS = {
    "block_count": "num_hidden_layers", "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "attention.value_length": "value_head_dim",
    "attention.sliding_window": "sliding_window", "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank", "attention.value_length_mla": "v_head_dim",
    "attention.shared_kv_layers": "num_kv_shared_layers", "attention.chunk_size": "attention_chunk_size",
    "rope.dimension_count": "qk_rope_head_dim", "expert_count": "num_experts", "expert_used_count":
    "num_experts_per_tok", "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace", "nextn_predict_layers": "num_nextn_predict_layers",
    "full_attention_interval": "full_attention_interval", "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings", "decoder_block_count": "num_decoder_layers",
    "altup.num_inputs": "altup_num_inputs", "embedding_length_per_layer_input": "hidden_size_per_layer_input",
    "shortconv.l_cache": "conv_L_cache",
}  # fmt: skip

_SSM_KEYS = {
    "ssm.conv_kernel": "mamba_d_conv", "ssm.inner_size": "mamba_d_ssm", "ssm.state_size": "mamba_d_state",
    "ssm.time_step_rank": "mamba_n_heads", "ssm.group_count": "mamba_n_groups",
}  # fmt: skip


def architecture_of(keys: Mapping[str, Any]) -> str:
    """Return the name of the architecture; empty where it is absent."""
    name = keys.get("general.architecture")
    return name if isinstance(name, str) else ""


def configuration_of(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a file by the names of the table of architectures."""
    arch = architecture_of(keys)
    own = {key.removeprefix(f"{arch}."): value for key, value in keys.items() if key.startswith(f"{arch}.")}
    own = {key: value for key, value in own.items() if not isinstance(value, Length)}
    found = {name: own[key] for key, name in (_KEYS | _SSM_KEYS).items() if own.get(key) is not None}
    _heads(found)
    _recurrences(found, own)
    _pattern(found, own)
    _layers(found, arch)
    return found


def _layers(found: dict[str, Any], arch: str) -> None:
    """Take layers for further tokens out of the number of layers, and the encoder's from the decoder's."""
    count, further = found.get("num_hidden_layers"), found.get("num_nextn_predict_layers", 0)
    if type(count) is int and type(further) is int and 0 < further < count:
        found["num_hidden_layers"] = count - further
    if arch == "t5":
        found["num_layers"] = count
    if arch == "falcon":
        found["new_decoder_architecture"] = True  # heads of keys are always said


def _heads(found: dict[str, Any]) -> None:
    """Take one number of heads for all layers; layers without heads of keys and values are recurrent.

    Layers of Nemotron-H are either that or a feed-forward network, whose width is then above zero.
    """
    if isinstance(found.get("num_attention_heads"), list):
        found["num_attention_heads"] = max(found["num_attention_heads"], default=0)
    listed = found.get("num_key_value_heads")
    if isinstance(listed, list) and 0 in listed:
        widths = found.get("intermediate_size")
        lone = widths if isinstance(widths, list) and 0 in widths else [0] * len(listed)
        pairs = zip(listed, lone, strict=False)
        found["layer_types"] = [
            "full_attention" if heads else "mlp" if width else "linear_attention" for heads, width in pairs
        ]


def _recurrences(found: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Add widths of heads, which are quotients of the sizes that files have."""
    inner, heads = found.get("mamba_d_ssm"), found.get("mamba_n_heads")
    if type(inner) is int and type(heads) is int and heads > 0:
        found["mamba_d_head"] = inner // heads
        found |= {
            "linear_num_value_heads": heads, "linear_value_head_dim": inner // heads,
            "linear_num_key_heads": found.get("mamba_n_groups"), "linear_key_head_dim": found.get("mamba_d_state"),
            "linear_conv_kernel_dim": found.get("mamba_d_conv"),
        }  # fmt: skip
    hidden = found.get("hidden_size")
    if type(inner) is int and type(hidden) is int and hidden > 0 and inner % hidden == 0:
        found["mamba_expand"] = inner // hidden
    found.setdefault("mamba_n_groups", 0)
    key, rope = own.get("attention.key_length_mla"), found.get("qk_rope_head_dim")
    whole = key or found.get("head_dim")
    if "kv_lora_rank" in found and type(whole) is int and type(rope) is int:
        found["qk_nope_head_dim"] = whole - rope


def _pattern(found: dict[str, Any], own: Mapping[str, Any]) -> None:
    pattern = own.get("attention.sliding_window_pattern")
    if isinstance(pattern, list):
        found["layer_types"] = ["sliding_attention" if one else "full_attention" for one in pattern]
    elif type(pattern) is int and pattern > 0:
        found["sliding_window_pattern"] = pattern
    if "max_window_layers" not in found:
        found["use_sliding_window"] = False
