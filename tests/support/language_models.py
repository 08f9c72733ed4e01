"""Small language models for tests: configurations, and tensors as checkpoints name them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from mtpp.language_models.language_model import LanguageModel

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 10, "torch_dtype": "bfloat16",
}  # fmt: skip

T5: dict[str, Any] = {
    "model_type": "t5", "d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 3, "num_heads": 2, "vocab_size": 10,
}  # fmt: skip


def llama_tensors(
    layers: int = 2, *, prefix: str = "model.", head: bool = True
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the tensors of :data:`LLAMA`."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {f"{prefix}embed_tokens.weight": ("BF16", (10, 8))}
    for i in range(layers):
        layer = f"{prefix}layers.{i}"
        for name, shape in LAYER.items():
            found[f"{layer}.{name}.weight"] = ("BF16", shape)
    found[f"{prefix}norm.weight"] = ("BF16", (8,))
    if head:
        found["lm_head.weight"] = ("BF16", (10, 8))
    return found


LAYER: dict[str, tuple[int, ...]] = {
    "self_attn.q_proj": (8, 8), "self_attn.k_proj": (4, 8), "self_attn.v_proj": (4, 8), "self_attn.o_proj": (8, 8),
    "mlp.gate_proj": (16, 8), "mlp.up_proj": (16, 8), "mlp.down_proj": (8, 16), "input_layernorm": (8,),
    "post_attention_layernorm": (8,),
}  # fmt: skip
"""Shapes of a layer of it: 592 parameters."""

LAYER_PARAMETERS = 592


def runs(values: Any) -> list[list[int]]:
    """Return values and how often each stands in a row, as reference files have them."""
    return [[value, len(list(group))] for value, group in groupby(values)]


def cache_figures(model: LanguageModel) -> dict[str, int]:
    """Return the figures of a model's caches by the names of the reference, elements of two bytes."""
    caches = [layer.cache for layer in model.layers if layer.part == "decoder"]
    return {
        "layers": len(caches),
        "bytes_per_token_below_window": 2 * sum(cache.per_token for cache in caches),
        "bytes_per_token_beyond_window": 2 * sum(cache.per_token for cache in caches if cache.window is None),
        "window_bytes_per_sequence": 2 * sum(cache.per_token * (cache.window or 0) for cache in caches),
        "state_elements_per_sequence": sum(cache.state for cache in caches),
        "conv_elements_per_sequence_d_conv": sum(cache.convolution for cache in caches),
    }
