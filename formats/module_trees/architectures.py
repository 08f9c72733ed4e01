"""Architectures whose modules are known, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mtpp.formats.module_trees.attention import (
    attention,
    fused_attention,
    gated_delta,
    latent_attention,
    state_space,
)
from mtpp.formats.module_trees.feed_forward import (
    biased_mixture,
    fused_mlp,
    hybrid_mixture,
    mixture,
    mlp,
    shared_experts,
    sparse_by_step,
)
from mtpp.formats.module_trees.sizes import Part, Sizes, dropouts, either, norms, parts


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The modules of one architecture.

    Attributes
    ----------
    prefix
        Of names of classes: ``Llama``.
    layer
        Modules of a layer, in order.
    rotary
        Elements of each buffer of frequencies.
    rotary_kinds
        Beginnings of names of these buffers, two for each kind of attention.
    tied
        The head is the embedding where the configuration says nothing.
    scaled_embedding
        The embedding has a factor as a buffer.
    norm
        Kind of the final norm.
    inner
        Class of the model without its head, None if it is named as usual.
    """

    prefix: str
    layer: Part
    rotary: Callable[[Sizes], int] = lambda sizes: sizes.head_dim // 2
    rotary_kinds: Callable[[Sizes], Iterable[str]] = lambda sizes: ("",)
    tied: bool = False
    scaled_embedding: bool = False
    norm: str = "RMSNorm"
    inner: str | None = None


def _partial_rotary(default: float) -> Callable[[Sizes], int]:
    """Half the part of a head that is rotated."""

    def half(sizes: Sizes) -> int:
        factor = (sizes.get("rope_parameters") or {}).get("partial_rotary_factor")
        return int(sizes.head_dim * (factor or sizes.get("partial_rotary_factor", default))) // 2

    return half


def _latent_rotary(sizes: Sizes) -> int:
    return sizes.needed("qk_rope_head_dim") // 2


def _attention_kinds(sizes: Sizes) -> Iterable[str]:
    """Beginnings of names of frequencies, for windowed and full attention as far as layers have them."""
    pattern = max(sizes.number("sliding_window_pattern", 6), 1)
    every = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(sizes.layers)]
    return [f"{kind}_" for kind in sorted(set(sizes.names("layer_types", every)))]


def _rotary_if_said(sizes: Sizes) -> Iterable[str]:
    return ("",) if sizes.get("position_embedding_type") == "rope" else ()


def _delta(sizes: Sizes, layer: int) -> bool:
    interval = max(sizes.number("full_attention_interval", 4), 1)
    every = ["linear_attention" if (i + 1) % interval else "full_attention" for i in range(sizes.layers)]
    return sizes.names("layer_types", every)[layer] == "linear_attention"


def _mamba(sizes: Sizes, layer: int) -> bool:
    return sizes.names("layer_types", ["mamba"] * sizes.layers)[layer] in ("mamba", "linear_attention")


_TWO_NORMS = norms("input_layernorm", "post_attention_layernorm")
_FOUR_NORMS = norms(
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
)
_BIASED_QUERIES = attention(bias="always", out_bias=False)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture(prefix="Llama", layer=parts(attention(), mlp, _TWO_NORMS)),
    "granite": Architecture(prefix="Granite", layer=parts(attention(), mlp, _TWO_NORMS)),
    "mistral": Architecture(prefix="Mistral", layer=parts(attention(bias=""), mlp, _TWO_NORMS)),
    "qwen2": Architecture(prefix="Qwen2", layer=parts(_BIASED_QUERIES, mlp, _TWO_NORMS)),
    "qwen3": Architecture(prefix="Qwen3", layer=parts(attention(norms="head"), mlp, _TWO_NORMS)),
    "olmo2": Architecture(
        prefix="Olmo2",
        layer=parts(attention(norms="all"), mlp, norms("post_attention_layernorm", "post_feedforward_layernorm")),
    ),
    "cohere2": Architecture(
        prefix="Cohere2",
        layer=parts(attention(), mlp, norms("input_layernorm", kind="LayerNorm")),
        tied=True,
        norm="LayerNorm",
    ),
    "gemma2": Architecture(
        prefix="Gemma2", layer=parts(attention(), mlp, _FOUR_NORMS), tied=True, scaled_embedding=True
    ),
    "gemma3_text": Architecture(
        prefix="Gemma3",
        layer=parts(attention(norms="head"), mlp, _FOUR_NORMS),
        tied=True,
        scaled_embedding=True,
        rotary_kinds=_attention_kinds,
        inner="Gemma3TextModel",
    ),
    "phi3": Architecture(
        prefix="Phi3",
        layer=parts(fused_attention, fused_mlp, _TWO_NORMS, dropouts("resid_attn_dropout", "resid_mlp_dropout")),
        rotary=_partial_rotary(1.0),
    ),
    "glm": Architecture(
        prefix="Glm",
        layer=parts(attention(out_bias=False), fused_mlp, _TWO_NORMS),
        rotary=_partial_rotary(0.5),
    ),
    "glm4": Architecture(
        prefix="Glm4",
        layer=parts(
            attention(out_bias=False), fused_mlp, _TWO_NORMS, norms("post_self_attn_layernorm", "post_mlp_layernorm")
        ),
        rotary=_partial_rotary(0.5),
    ),
    "mixtral": Architecture(
        prefix="Mixtral", layer=parts(attention(bias=""), mixture(inner="intermediate_size"), _TWO_NORMS)
    ),
    "olmoe": Architecture(
        prefix="Olmoe", layer=parts(attention(norms="all"), mixture(inner="intermediate_size"), _TWO_NORMS)
    ),
    "qwen2_moe": Architecture(
        prefix="Qwen2Moe",
        layer=parts(
            _BIASED_QUERIES, mixture(inner="moe_intermediate_size", sparse=sparse_by_step, shared=True), _TWO_NORMS
        ),
    ),
    "qwen3_moe": Architecture(
        prefix="Qwen3Moe",
        layer=parts(
            attention(norms="head"),
            mixture(inner="moe_intermediate_size", gate_first=False, sparse=sparse_by_step),
            _TWO_NORMS,
        ),
    ),
    "qwen3_next": Architecture(
        prefix="Qwen3Next",
        layer=parts(
            either(_delta, gated_delta, attention(norms="head", gated=True)),
            mixture(inner="moe_intermediate_size", sparse=sparse_by_step, shared=True),
            _TWO_NORMS,
        ),
        rotary=_partial_rotary(0.25),
    ),
    "gpt_oss": Architecture(
        prefix="GptOss",
        layer=parts(attention(biased_by_default=True, sinks=True), biased_mixture, _TWO_NORMS),
    ),
    "granitemoehybrid": Architecture(
        prefix="GraniteMoeHybrid",
        layer=parts(
            _TWO_NORMS,
            hybrid_mixture,
            either(_mamba, state_space("mamba", "MambaLayer", "GraniteMoeHybridRMSNormGated"), attention()),
        ),
        rotary_kinds=_rotary_if_said,
    ),
    "deepseek_v2": Architecture(
        prefix="DeepseekV2",
        layer=parts(latent_attention, shared_experts(correction=False), _TWO_NORMS),
        rotary=_latent_rotary,
    ),
    "deepseek_v3": Architecture(
        prefix="DeepseekV3",
        layer=parts(latent_attention, shared_experts(correction=True), _TWO_NORMS),
        rotary=_latent_rotary,
    ),
}
