"""Shares of one of t GPUs in language models, by formulas written for each from public sizes; nothing reads tensors.

Each gives, for a layer: parameters, FLOPs of a further token of b sequences at context c, elements of the cache of a
token, and elements of state and convolution of a sequence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}  # fmt: skip

MIXTRAL: dict[str, Any] = {
    **LLAMA_8B, "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip

QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "vocab_size": 151936, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip

DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "first_k_dense_replace": 3, "num_attention_heads": 128, "num_key_value_heads": 128,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "vocab_size": 129280,
    "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip

MAMBA2: dict[str, Any] = {
    "model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64, "num_heads": 80, "head_dim": 64,
    "state_size": 128, "n_groups": 1, "conv_kernel": 4, "expand": 2, "use_conv_bias": True, "use_bias": False,
    "vocab_size": 50288, "torch_dtype": "bfloat16", "tie_word_embeddings": True,
}  # fmt: skip

QWEN3_NEXT: dict[str, Any] = {
    "model_type": "qwen3_next", "hidden_size": 2048, "moe_intermediate_size": 512, "intermediate_size": 5120,
    "shared_expert_intermediate_size": 512, "num_hidden_layers": 48, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "num_experts": 512, "num_experts_per_tok": 10, "vocab_size": 151936,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


class Share(NamedTuple):
    """Figures of a layer on one GPU."""

    parameters: int
    flops: int
    cache: int
    state: int = 0
    convolution: int = 0


def exact(number: int, t: int) -> int:
    """Divide without a remainder."""
    assert number % t == 0
    return number // t


def grouped(t: int, b: int, c: int, *, h: int, q: int, kv: int, d: int) -> Share:
    """Return attention with fewer heads of keys and values, at least one a GPU."""
    heads, own = exact(q, t), max(kv // t, 1)
    matrices = h * heads * d + 2 * h * own * d + heads * d * h
    return Share(matrices, 2 * b * matrices + 4 * b * heads * d * c, 2 * own * d)


def network(t: int, h: int, f: int) -> int:
    """Return the weights of a gated network."""
    return 3 * h * exact(f, t)


def llama(t: int, b: int, c: int) -> Share:
    """Return the share of a layer of Llama-3-8B."""
    own = grouped(t, b, c, h=4096, q=32, kv=8, d=128)
    more = network(t, 4096, 14336)
    return Share(own.parameters + more + 2 * 4096, own.flops + 2 * b * more, own.cache)


def mixtral(t: int, b: int, c: int) -> Share:
    """Return the share of a layer of Mixtral: 8 experts, 2 of them for a token."""
    own, expert = grouped(t, b, c, h=4096, q=32, kv=8, d=128), network(t, 4096, 14336)
    router = 8 * 4096
    flops = own.flops + 2 * b * (router + 2 * expert)
    return Share(own.parameters + router + 8 * expert + 2 * 4096, flops, own.cache)


def qwen3_30b(t: int, b: int, c: int) -> Share:
    """Return the share of a layer of Qwen3-30B-A3B: norms of a head of queries and of keys."""
    own, expert = grouped(t, b, c, h=2048, q=32, kv=4, d=128), network(t, 2048, 768)
    router = 128 * 2048
    flops = own.flops + 2 * b * (router + 8 * expert)
    return Share(own.parameters + router + 128 * expert + 2 * 2048 + 2 * 128, flops, own.cache)


def deepseek(t: int, b: int, c: int, *, dense: bool) -> Share:
    """Return the share of a layer of DeepSeek-V3: projections to latents and the latent cache are on every GPU."""
    h, heads, rank, latent, rope = 7168, exact(128, t), 1536, 512, 64
    down = h * rank + h * (latent + rope)
    up = rank * heads * (128 + rope) + latent * heads * (128 + 128) + heads * 128 * h
    attention = 2 * b * (down + up) + 2 * b * heads * (2 * latent + rope) * c
    norms = rank + latent + 2 * h
    if dense:
        own = network(t, h, 18432)
        return Share(down + up + norms + own, attention + 2 * b * own, latent + rope)
    expert, router = network(t, h, 2048), 256 * h
    weights = down + up + norms + router + 257 * expert
    return Share(weights, attention + 2 * b * (router + 9 * expert), latent + rope)


def mamba2(t: int, b: int, c: int) -> Share:
    """Return the share of a layer of Mamba-2 2.7B: its one group of state projections is on every GPU."""
    h, inner, heads, group = 2560, exact(5120, t), exact(80, t), 2 * 128
    into, out = h * (2 * inner + group + heads), inner * h
    other = (inner + group) * (4 + 1) + 3 * heads + 5120 + h
    state = heads * 64 * 128
    return Share(into + out + other, 2 * b * (into + out) + 6 * b * state, 0, state, (inner + group) * 4)


def qwen3_next(t: int, b: int, c: int, *, full: bool) -> Share:
    """Return the share of a layer of Qwen3-Next: gated full attention, or a gated delta rule."""
    h, expert = 2048, network(t, 2048, 512)
    router, gate = 512 * h, h
    every = router + gate + 513 * expert + 2 * h
    step = 2 * b * (router + gate + 11 * expert)
    if full:
        own = grouped(t, b, c, h=h, q=16, kv=2, d=256)
        doubled = h * exact(16, t) * 256
        return Share(own.parameters + doubled + 2 * 256 + every, own.flops + 2 * b * doubled + step, own.cache)
    keys, values, heads = exact(16, t) * 128, exact(32, t) * 128, exact(32, t)
    projections = h * (2 * keys + 2 * values) + h * 2 * heads + values * h
    convolution = (2 * keys + values) * 4
    state = heads * 128 * 128
    flops = 2 * b * projections + b * (2 * convolution + 8 * state)
    return Share(projections + convolution + 2 * heads + 128 + every, flops + step, 0, state, convolution)
