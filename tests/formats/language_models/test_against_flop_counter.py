"""FLOPs of whole models against those that torch counts, of one sequence: a prompt as a square, and a further token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mtpp.formats.language_models.reader import read_language_model
from mtpp.language_models.arithmetic import Step, decode, head, prefill

transformers = pytest.importorskip("transformers", minversion="5")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

TOKENS = 24
DENSE = {
    "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 96, "vocab_size": 50, "pad_token_id": 0,
}  # fmt: skip
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
LATENT = DENSE | {
    "n_routed_experts": 6, "moe_intermediate_size": 48, "kv_lora_rank": 24, "q_lora_rank": 20, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 12, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "num_key_value_heads": 8, "first_k_dense_replace": 1, "head_dim": 8,
}  # fmt: skip
EQUAL: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", DENSE),
    "qwen3_moe": ("qwen3_moe", DENSE | EXPERTS),
    "gemma2": ("gemma2", DENSE | {"sliding_window": 9}),
    "deepseek_v2": ("deepseek_v2", LATENT),
    "deepseek_v2-q": ("deepseek_v2", LATENT | {"q_lora_rank": None}),
    "gpt2": ("gpt2", {"n_embd": 64, "n_layer": 3, "n_head": 8, "vocab_size": 50}),
    "gpt_oss": ("gpt_oss", DENSE | {"num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 9}),
}
NEAR: dict[str, tuple[str, dict[str, Any]]] = {
    "mamba2": (
        "mamba2",
        {
            "hidden_size": 256, "num_hidden_layers": 2, "num_heads": 8, "head_dim": 64, "state_size": 32, "n_groups": 1,
            "vocab_size": 50, "expand": 2, "chunk_size": 64,
        },
    ),
    "qwen3_next": (
        "qwen3_next",
        DENSE | EXPERTS | {
            "hidden_size": 256, "shared_expert_intermediate_size": 40, "linear_num_key_heads": 4,
            "linear_num_value_heads": 8, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
        },
    ),
}  # fmt: skip


def _counted(model_type: str, sizes: dict[str, Any], folder: Path, tokens: int) -> tuple[int, int]:
    """Count a prompt and a further token, and write the configuration."""
    from torch.utils.flop_counter import FlopCounterMode

    c = transformers.AutoConfig.for_model(model_type, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(
        c, attn_implementation="eager", experts_implementation="eager"
    ).eval()
    (folder / "config.json").write_text(json.dumps(c.to_dict(), default=str))
    ids = torch.ones(1, tokens, dtype=torch.long)
    with torch.no_grad():
        with FlopCounterMode(display=False) as prompt:
            found = model(ids, use_cache=True, logits_to_keep=1)
        kept = next(name for name in ("cache", "past_key_values", "cache_params") if name in found)
        with FlopCounterMode(display=False) as further:
            model(ids[:, :1], use_cache=True, **{kept: found[kept]})
    return prompt.get_total_flops(), further.get_total_flops()


def _computed(folder: Path, tokens: int) -> tuple[int, int]:
    model = read_language_model(folder)
    steps: list[tuple[Step, Step]] = [(head(model, 1), head(model, 1))]
    for layer in model.layers:
        first, further = prefill(layer, tokens, square=True), decode(layer, 1, tokens + 1, absorbed=False)
        assert first is not None
        assert further is not None
        steps.append((first, further))
    return sum(first.flops for first, _ in steps), sum(further.flops for _, further in steps)


@pytest.mark.parametrize("name", EQUAL)
def test_attention_and_experts_are_equal(tmp_path: Path, name: str) -> None:
    """To the last FLOP, a latent cache expanded at each step."""
    counted = _counted(*EQUAL[name], tmp_path, TOKENS)
    assert _computed(tmp_path, TOKENS) == counted


@pytest.mark.parametrize("name", NEAR)
def test_recurrences_are_near(tmp_path: Path, name: str) -> None:
    """Within a tenth: implementations work on chunks, and on convolutions that a counter sees or does not see."""
    counted = _counted(*NEAR[name], tmp_path, 64)
    assert _computed(tmp_path, 64) == pytest.approx(counted, rel=0.1)
