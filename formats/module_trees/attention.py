"""Modules that mix positions: attention in its forms, state spaces, gated delta rules."""

from __future__ import annotations

from collections.abc import Iterable

from mtpp.formats.module_trees.sizes import Part, Sizes
from mtpp.language_models.modules import ModuleTree


def attention(
    *,
    bias: str = "attention_bias",
    out_bias: bool = True,
    norms: str = "",
    gated: bool = False,
    sinks: bool = False,
    biased_by_default: bool = False,
) -> Part:
    """Separate projections.

    Parameters
    ----------
    bias
        Key of the configuration that says whether they have biases, or ``always``.
    out_bias
        The last projection has one with the others.
    norms
        Of queries and keys: by ``head`` or over ``all`` of them.
    gated
        Queries come with a gate of their size.
    sinks
        One number a head.
    biased_by_default
        What holds where the configuration says nothing.
    """

    def modules(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
        biased = bias == "always" or bool(sizes.get(bias, biased_by_default))
        query, key = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        children = [
            sizes.linear("q_proj", query * (1 + gated), sizes.hidden, biased),
            sizes.linear("k_proj", key, sizes.hidden, biased),
            sizes.linear("v_proj", key, sizes.hidden, biased),
            sizes.linear("o_proj", sizes.hidden, query, biased and out_bias),
        ]
        if norms:
            each = (sizes.head_dim, sizes.head_dim) if norms == "head" else (query, key)
            children += [sizes.scale(f"{n}_norm", size, f"{prefix}RMSNorm") for n, size in zip("qk", each, strict=True)]
        own = (sizes.tensor("sinks", sizes.heads),) if sinks else ()
        yield ModuleTree("self_attn", f"{prefix}Attention", own, tuple(children))

    return modules


def fused_attention(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """One projection of queries, keys and values."""
    query, key = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    children = (
        sizes.linear("o_proj", sizes.hidden, query),
        sizes.linear("qkv_proj", query + 2 * key, sizes.hidden),
    )
    yield ModuleTree("self_attn", f"{prefix}Attention", children=children)


def latent_attention(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """Attention with latent keys and values; queries of low rank, or of full rank where that is null."""
    biased = bool(sizes.get("attention_bias", False))
    rope, nope, value = (sizes.needed(n) for n in ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"))
    rank, queries = sizes.needed("kv_lora_rank"), sizes.heads * (rope + nope)
    low = sizes.get("q_lora_rank")
    if low is None:
        query = [sizes.linear("q_proj", queries, sizes.hidden)]
    else:
        query = [
            sizes.linear("q_a_proj", low, sizes.hidden, biased),
            sizes.scale("q_a_layernorm", low, f"{prefix}RMSNorm"),
            sizes.linear("q_b_proj", queries, low),
        ]
    rest = (
        sizes.linear("kv_a_proj_with_mqa", rank + rope, sizes.hidden, biased),
        sizes.scale("kv_a_layernorm", rank, f"{prefix}RMSNorm"),
        sizes.linear("kv_b_proj", sizes.heads * (nope + value), rank),
        sizes.linear("o_proj", sizes.hidden, sizes.heads * value, biased),
    )
    yield ModuleTree("self_attn", f"{prefix}Attention", children=(*query, *rest))


def state_space(name: str, kind: str, norm: str) -> Part:
    """Mamba-2 with its convolution, under the keys of hybrids (``mamba_…``)."""

    def modules(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
        inner = sizes.number("mamba_expand", 2) * sizes.hidden
        heads, state = sizes.number("mamba_n_heads", 128), sizes.number("mamba_d_state", 256)
        convolved = inner + 2 * sizes.number("mamba_n_groups", 1) * state
        projected, kernel = bool(sizes.get("mamba_proj_bias", False)), sizes.number("mamba_d_conv", 4)
        convolution = [sizes.tensor("weight", convolved, kernel), sizes.tensor("bias", convolved)]
        children = (
            ModuleTree("act", "Activation"),
            ModuleTree("conv1d", "Conv1d", tuple(convolution[: 1 + bool(sizes.get("mamba_conv_bias", True))])),
            sizes.linear("in_proj", inner + convolved + heads, sizes.hidden, projected),
            sizes.scale("norm", inner, norm),
            sizes.linear("out_proj", sizes.hidden, inner, projected),
        )
        own = tuple(sizes.tensor(key, heads) for key in ("dt_bias", "A_log", "D"))
        yield ModuleTree(name, f"{prefix}{kind}", own, children)

    return modules


def gated_delta(sizes: Sizes, prefix: str, _: int) -> Iterable[ModuleTree]:
    """Linear attention with a gated delta rule."""
    heads, head = sizes.number("linear_num_value_heads", 32), sizes.number("linear_value_head_dim", 128)
    key = sizes.number("linear_num_key_heads", 16) * sizes.number("linear_key_head_dim", 128)
    value = heads * head
    kernel = sizes.number("linear_conv_kernel_dim", 4)
    children = (
        ModuleTree("conv1d", "Conv1d", (sizes.tensor("weight", 2 * key + value, kernel),)),
        sizes.linear("in_proj_qkvz", 2 * key + 2 * value, sizes.hidden),
        sizes.linear("in_proj_ba", 2 * heads, sizes.hidden),
        sizes.scale("norm", head, f"{prefix}RMSNormGated"),
        sizes.linear("out_proj", sizes.hidden, value),
    )
    own = tuple(sizes.tensor(name, heads) for name in ("dt_bias", "A_log"))
    yield ModuleTree("linear_attn", f"{prefix}GatedDeltaNet", own, children)
