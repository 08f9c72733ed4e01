"""Models to be placed on devices, limits that they keep without offloading, and loads of maps by their names."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from mtpp.formats.language_models.module_trees import modules_of_configuration
from mtpp.language_models.modules import Modules

SIZES = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
EXPERTS = {"num_experts": 16, "num_local_experts": 16, "moe_intermediate_size": 1024, "num_experts_per_tok": 2}
CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "llama": {"num_hidden_layers": 32, "vocab_size": 128256},
    "qwen3": {"num_hidden_layers": 36, "vocab_size": 151936, "head_dim": 128},
    "mistral": {"num_hidden_layers": 40, "vocab_size": 32768, "tie_word_embeddings": False},
    "gemma2": {"num_hidden_layers": 42, "vocab_size": 256000, "head_dim": 256, "sliding_window": 4096},
    "cohere2": {"num_hidden_layers": 32, "vocab_size": 256000, "tie_word_embeddings": True},
    "phi3": {"num_hidden_layers": 32, "vocab_size": 32064},
    "mixtral": {"num_hidden_layers": 32, "vocab_size": 32000, **EXPERTS},
    "qwen3_moe": {"num_hidden_layers": 48, "vocab_size": 151936, "head_dim": 128, **EXPERTS},
    "olmo2": {"num_hidden_layers": 16, "vocab_size": 100352},
    "gpt2": {"n_layer": 48, "n_embd": 1600, "n_head": 25, "vocab_size": 50257, "n_positions": 1024},
}
SHARES = {
    "two equal": (80, 80),
    "four equal": (40, 40, 40, 40),
    "three unequal": (70, 50, 30),
    "small first": (15, 60, 80),
    "eight of two kinds": (18, 18, 18, 18, 24, 24, 24, 24),
}
"""Limits in percent of the model."""


def configuration(name: str) -> dict[str, Any]:
    """Keys of a model of its real size."""
    return {"model_type": name, "dtype": "bfloat16", **SIZES, **CONFIGURATIONS[name]}


@cache
def modules(name: str) -> Modules:
    """Modules of a model."""
    return modules_of_configuration(configuration(name))


def total_of(of: Modules) -> int:
    """Bytes of all parameters and buffers, tied parameters once."""
    return sum(t.nbytes for name, t in of.root.named_tensors() if name not in of.aliases)


def loads(of: Modules, placed: Mapping[str, Any]) -> dict[Any, int]:
    """Bytes by device, each tensor by the longest key that is its beginning; tied parameters where the first is."""
    found: dict[Any, int] = {}
    for name, tensor in of.root.named_tensors():
        if name not in of.aliases:
            keys = [key for key in placed if key == "" or f"{name}.".startswith(f"{key}.")]
            if keys or tensor.stored:
                device = placed[max(keys, key=len)]
                found[device] = found.get(device, 0) + tensor.nbytes
    return found


def fullest(of: Modules, placed: Mapping[str, Any], limits: Mapping[Any, int]) -> Fraction:
    """Share of the fullest device."""
    return max(Fraction(load, limits[device]) for device, load in loads(of, placed).items())


def limits_of(name: str, shares: str) -> dict[int, int]:
    """Limits in bytes."""
    total = total_of(modules(name))
    return {device: total * share // 100 for device, share in enumerate(SHARES[shares])}
