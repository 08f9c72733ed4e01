"""Patterns of llama.cpp against names of tensors in GGUF and in checkpoints."""

from __future__ import annotations

import pytest

from mtpp.formats.layouts.tensor_overrides import gguf_name, moved_bytes
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight


@pytest.mark.parametrize(
    ("own", "translated"),
    [
        ("mlp.experts.7.down_proj.weight", "ffn_down_exps.weight"),
        ("block_sparse_moe.experts.0.w3.weight", "ffn_up_exps.weight"),
        ("mlp.experts.gate_up_proj", "ffn_gate_up_exps"),
        ("mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight"),
        ("mlp.gate.weight", "ffn_gate_inp.weight"),
        ("mlp.gate_proj.weight", "ffn_gate.weight"),
        ("self_attn.q_proj.bias", "attn_q.bias"),
        ("input_layernorm.weight", "attn_norm.weight"),
        ("attn_q.weight", "attn_q.weight"),
        ("some.other.weight", "some.other.weight"),
    ],
)
def test_names(own: str, translated: str) -> None:
    """Those of GGUF stay."""
    assert gguf_name(f"model.layers.3.{own}", "model.layers.3", 3) == f"blk.3.{translated}"


def test_the_first_pattern_that_is_found_decides() -> None:
    """Bytes by the name of the op and of the buffer."""
    layers = [
        DecoderLayer(
            [Weight(f"blk.{i}.ffn_up_exps.weight", (1,), 1, 10), Weight(f"blk.{i}.attn_q.weight", (1,), 1, 3)],
            name=f"blk.{i}",
        )
        for i in range(12)
    ]
    head = Part([Weight("output.weight", (1,), 1, 5)])
    model = LanguageModel("m", "llama", "gguf", layers, Part(), head, Part(), tied=False)
    found = moved_bytes(model, [[r"blk\.1\..*_exps", "CUDA1"], ["_exps", "CPU"], ["output", "CPU"]])
    assert found["blk.1"] == {"1": 10}
    assert found["blk.11"] == {"CPU": 10}
    assert found["head"] == {"CPU": 5}
    assert len(found) == 13
