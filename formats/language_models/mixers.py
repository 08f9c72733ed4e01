"""Attention and recurrences: tensors of a layer's mixer, and the elements that it keeps for a sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from mtpp.errors import InputError
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.tensors import Block, Shapes, linear, norm, together
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_work import Attention, LayerWork, Recurrent


@dataclass(frozen=True)
class Mixer:
    """Tensors of a mixer, its cache, and its work beside projections."""

    tensors: Block
    cache: Callable[[Configuration, int], LayerCache]
    work: Callable[[Configuration, int], LayerWork]


def attention(
    path: str = "self_attn",
    *,
    bias: bool | str = False,
    output_bias: bool | str | None = None,
    norms: str | None = None,
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj"),
    norm_names: tuple[str, str] = ("q_norm", "k_norm"),
    fused: str | None = None,
    gated: bool = False,
    shared: bool = False,
    sinks: bool = False,
    norms_if: bool | str = True,
) -> Mixer:
    """Return attention with grouped queries: one head of keys and values, as many as of queries, or between.

    Parameters
    ----------
    bias, output_bias
        Of the projections of queries, keys and values, and of the output; by default the same.
    norms
        Of queries and keys: ``head`` over a head, ``whole`` over all, ``heads`` with weights for each head.
    fused
        Name of one projection in place of three.
    gated
        Whether a gate doubles the projection of queries.
    shared
        Whether keys and values are another layer's.
    norms_if
        Flag that norms depend on.
    """

    def tensors(c: Configuration, layer: int) -> Shapes:
        hidden, d, groups = c.hidden, c.head_dim(layer), c.kv_heads(layer)
        if groups and c.heads % groups:
            problem = f"{groups:,} heads of keys and values do not divide {c.heads:,} of queries"
            raise InputError(problem, source=c.source, where="num_key_value_heads", remedy="correct it")
        q, kv = c.heads * d, groups * d
        biased = c.flag(bias)
        query, key, value, output = (f"{path}.{name}" for name in names)
        if fused is not None:
            shapes = linear(f"{path}.{fused}", q + 2 * kv, hidden, bias=biased)
        else:
            shapes = linear(query, 2 * q if gated else q, hidden, bias=biased)
            if not shared:
                shapes |= linear(key, kv, hidden, bias=biased) | linear(value, kv, hidden, bias=biased)
        shapes |= linear(output, hidden, q, bias=biased if output_bias is None else c.flag(output_bias))
        if norms is not None and c.flag(norms_if):
            of_query, of_key = (f"{path}.{name}" for name in norm_names)
            if norms == "heads":
                shapes |= {f"{of_query}.weight": (c.heads, d), f"{of_key}.weight": (c.kv_heads(layer), d)}
            else:
                shapes |= norm(of_query, d if norms == "head" else q)
                if not shared:
                    shapes |= norm(of_key, d if norms == "head" else kv)
        if sinks:
            shapes[f"{path}.sinks"] = (c.heads,)
        return shapes

    def cache(c: Configuration, layer: int) -> LayerCache:
        if shared:
            return LayerCache()
        return LayerCache(per_token=c.kv_heads(layer) * sum(widths(c, layer)))

    def work(c: Configuration, layer: int) -> LayerWork:
        return LayerWork(attention=Attention(c.heads, *widths(c, layer), c.kv_heads(layer) * sum(widths(c, layer))))

    def widths(c: Configuration, layer: int) -> tuple[int, int]:
        key = c.head_dim(layer)
        return key, c.size("value_head_dim", layer) if "value_head_dim" in c else key

    return Mixer(tensors, cache, work)


def latent_attention(path: str = "self_attn", *, indexer: bool = False) -> Mixer:
    """Return attention with a latent cache (MLA); without ``q_lora_rank`` queries are projected at once.

    Parameters
    ----------
    indexer
        Whether an indexer with keys of its own chooses the tokens attended to.
    """

    def tensors(c: Configuration, layer: int) -> Shapes:
        hidden, heads, biased = c.hidden, c.heads, c.flag("attention_bias")
        nope, rope, value = c.size("qk_nope_head_dim"), c.size("qk_rope_head_dim"), c.size("v_head_dim")
        rank, q_rank = c.size("kv_lora_rank"), c.whole("q_lora_rank")
        if q_rank:
            shapes = linear(f"{path}.q_a_proj", q_rank, hidden, bias=biased) | norm(f"{path}.q_a_layernorm", q_rank)
            shapes |= linear(f"{path}.q_b_proj", heads * (nope + rope), q_rank)
        else:
            shapes = linear(f"{path}.q_proj", heads * (nope + rope), hidden)
        shapes |= linear(f"{path}.kv_a_proj_with_mqa", rank + rope, hidden, bias=biased)
        shapes |= norm(f"{path}.kv_a_layernorm", rank)
        shapes |= linear(f"{path}.kv_b_proj", heads * (nope + value), rank)
        shapes |= linear(f"{path}.o_proj", hidden, heads * value, bias=biased)
        if indexer:
            count, width = c.size("index_n_heads"), c.size("index_head_dim")
            shapes |= linear(f"{path}.indexer.wq_b", count * width, q_rank or hidden)
            shapes |= linear(f"{path}.indexer.wk", width, hidden) | norm(f"{path}.indexer.k_norm", width, bias=True)
            shapes |= linear(f"{path}.indexer.weights_proj", count, hidden)
        return shapes

    def cache(c: Configuration, layer: int) -> LayerCache:
        return LayerCache(per_token=c.size("kv_lora_rank") + c.size("qk_rope_head_dim"))

    def work(c: Configuration, layer: int) -> LayerWork:
        latent, rope = c.size("kv_lora_rank"), c.size("qk_rope_head_dim")
        key = c.size("qk_nope_head_dim") + rope
        return LayerWork(attention=Attention(c.heads, key, c.size("v_head_dim"), latent + rope, latent=latent))

    return Mixer(tensors, cache, work)


def mamba(path: str = "mamba", *, norms: bool = False) -> Mixer:
    """Return a selective state space (Mamba); *norms* stand over steps and projections, as in Jamba."""

    def tensors(c: Configuration, layer: int) -> Shapes:
        width, state = _inner(c), c.size("mamba_d_state")
        given = c.get("mamba_dt_rank", "auto")
        rank = ceil(c.hidden / 16) if given == "auto" else c.size("mamba_dt_rank")
        projected = c.flag("mamba_proj_bias")
        shapes: Shapes = {f"{path}.A_log": (width, state), f"{path}.D": (width,)}
        shapes |= _convolution(path, width, c)
        shapes |= linear(f"{path}.in_proj", 2 * width, c.hidden, bias=projected)
        shapes |= linear(f"{path}.x_proj", rank + 2 * state, width)
        shapes |= linear(f"{path}.dt_proj", width, rank, bias=True)
        shapes |= linear(f"{path}.out_proj", c.hidden, width, bias=projected)
        if norms:
            shapes |= norm(f"{path}.dt_layernorm", rank)
            shapes |= norm(f"{path}.b_layernorm", state) | norm(f"{path}.c_layernorm", state)
        return shapes

    def cache(c: Configuration, layer: int) -> LayerCache:
        width, columns = _inner(c), c.size("mamba_d_conv")
        return _recurrent(c, width * c.size("mamba_d_state"), width * columns, columns)

    return Mixer(tensors, cache, _of_states(cache, lambda c: Recurrent(_inner(c)), state=6))


def mamba2(path: str = "mamba", *, norms_if: bool | str = True, output_bias: str = "mamba_proj_bias") -> Mixer:
    """Return a state space with scalar decay for each head (Mamba-2)."""

    def channels(c: Configuration) -> int:
        return _inner(c) + 2 * c.size("mamba_n_groups") * c.size("mamba_d_state")

    def tensors(c: Configuration, layer: int) -> Shapes:
        heads, width = c.size("mamba_n_heads"), _inner(c)
        shapes: Shapes = {f"{path}.{name}": (heads,) for name in ("dt_bias", "A_log", "D")}
        shapes |= _convolution(path, channels(c), c)
        shapes |= linear(f"{path}.in_proj", width + channels(c) + heads, c.hidden, bias=c.flag("mamba_proj_bias"))
        if c.flag(norms_if):
            shapes |= norm(f"{path}.norm", width)
        shapes |= linear(f"{path}.out_proj", c.hidden, width, bias=c.flag(output_bias))
        return shapes

    def cache(c: Configuration, layer: int) -> LayerCache:
        columns, heads = c.size("mamba_d_conv"), c.size("mamba_n_heads")
        width = _inner(c) // heads if c.get("mamba_d_head") in (None, "auto") else c.size("mamba_d_head")
        state = heads * width * c.size("mamba_d_state")
        return _recurrent(c, state, channels(c) * columns, columns)

    def heads(c: Configuration) -> Recurrent:
        groups = c.size("mamba_n_groups")
        return Recurrent(c.size("mamba_n_heads"), groups=groups, group_width=2 * c.size("mamba_d_state"))

    return Mixer(tensors, cache, _of_states(cache, heads, state=6))


def gated_delta(path: str = "linear_attn", *, split: bool = False) -> Mixer:
    """Return a gated delta rule; *split* has projections apart, as Qwen 3.5."""

    def tensors(c: Configuration, layer: int) -> Shapes:
        heads, value_width, keys, values = _linear_sizes(c)
        shapes: Shapes = {f"{path}.dt_bias": (heads,), f"{path}.A_log": (heads,)}
        shapes[f"{path}.conv1d.weight"] = (2 * keys + values, 1, c.size("linear_conv_kernel_dim"))
        if split:
            shapes |= linear(f"{path}.in_proj_qkv", 2 * keys + values, c.hidden)
            shapes |= linear(f"{path}.in_proj_z", values, c.hidden)
            shapes |= linear(f"{path}.in_proj_b", heads, c.hidden) | linear(f"{path}.in_proj_a", heads, c.hidden)
        else:
            shapes |= linear(f"{path}.in_proj_qkvz", 2 * keys + 2 * values, c.hidden)
            shapes |= linear(f"{path}.in_proj_ba", 2 * heads, c.hidden)
        return shapes | norm(f"{path}.norm", value_width) | linear(f"{path}.out_proj", c.hidden, values)

    def cache(c: Configuration, layer: int) -> LayerCache:
        heads, value_width, keys, values = _linear_sizes(c)
        columns = c.size("linear_conv_kernel_dim")
        state = heads * c.size("linear_key_head_dim") * value_width
        return _recurrent(c, state, (2 * keys + values) * columns, columns)

    def heads(c: Configuration) -> Recurrent:
        return Recurrent(c.size("linear_num_value_heads"), c.size("linear_num_key_heads"))

    return Mixer(tensors, cache, _of_states(cache, heads, state=8, convolution=2))


def delta_attention(path: str = "self_attn") -> Mixer:
    """Return a delta rule with a gate for each channel, as Kimi Linear."""

    def sizes(c: Configuration) -> tuple[int, int]:
        return c.size("linear_num_heads"), c.size("linear_head_dim")

    def tensors(c: Configuration, layer: int) -> Shapes:
        heads, width = sizes(c)
        whole = heads * width
        shapes: Shapes = {}
        for name in ("q_proj", "k_proj", "v_proj"):
            shapes |= linear(f"{path}.{name}", whole, c.hidden)
        shapes[f"{path}.conv1d.weight"] = (3 * whole, 1, c.size("linear_conv_kernel_dim"))
        shapes |= {f"{path}.forget_gate.dt_bias": (whole,), f"{path}.forget_gate.A_log": (1, 1, heads, 1)}
        for name in ("forget_gate.f", "g"):
            shapes |= linear(f"{path}.{name}_a_proj", width, c.hidden) | linear(f"{path}.{name}_b_proj", whole, width)
        shapes |= linear(f"{path}.b_proj", heads, c.hidden) | norm(f"{path}.o_norm", width)
        return shapes | linear(f"{path}.o_proj", c.hidden, whole)

    def cache(c: Configuration, layer: int) -> LayerCache:
        heads, width = sizes(c)
        columns = c.size("linear_conv_kernel_dim")
        return _recurrent(c, heads * width * width, 3 * heads * width * columns, columns)

    return Mixer(tensors, cache, _of_states(cache, lambda c: Recurrent(sizes(c)[0]), state=8, convolution=2))


def lightning_attention(path: str = "self_attn") -> Mixer:
    """Return linear attention with a fixed decay, as MiniMax."""

    def tensors(c: Configuration, layer: int) -> Shapes:
        whole = c.heads * c.head_dim()
        shapes = norm(f"{path}.norm", whole) | linear(f"{path}.qkv_proj", 3 * whole, c.hidden)
        return shapes | linear(f"{path}.out_proj", c.hidden, whole) | linear(f"{path}.output_gate", whole, c.hidden)

    def cache(c: Configuration, layer: int) -> LayerCache:
        return _recurrent(c, c.heads * c.head_dim() ** 2, 0, 0)

    return Mixer(tensors, cache, _of_states(cache, lambda c: Recurrent(c.heads), state=6))


def short_convolution(path: str = "conv") -> Mixer:
    """Return a gated convolution over few tokens, as LFM2."""

    def tensors(c: Configuration, layer: int) -> Shapes:
        hidden, bias = c.hidden, c.flag("conv_bias")
        shapes: Shapes = {f"{path}.conv.weight": (hidden, 1, c.size("conv_L_cache"))}
        if bias:
            shapes[f"{path}.conv.bias"] = (hidden,)
        shapes |= linear(f"{path}.in_proj", 3 * hidden, hidden, bias=bias)
        return shapes | linear(f"{path}.out_proj", hidden, hidden, bias=bias)

    def cache(c: Configuration, layer: int) -> LayerCache:
        columns = c.size("conv_L_cache")
        return _recurrent(c, 0, c.hidden * columns, columns)

    return Mixer(tensors, cache, _of_states(cache, lambda c: Recurrent(c.hidden), state=0, convolution=2))


def both(first: Mixer, second: Mixer) -> Mixer:
    """Return two mixers side by side in a layer: the cache of the first, the states of the second."""

    def cache(c: Configuration, layer: int) -> LayerCache:
        tokens, states = first.cache(c, layer), second.cache(c, layer)
        return LayerCache(
            tokens.per_token, tokens.window, states.state, states.convolution, states.columns,
            states.state_bytes, states.convolution_bytes,
        )  # fmt: skip

    def work(c: Configuration, layer: int) -> LayerWork:
        states = second.work(c, layer)
        return replace(first.work(c, layer), recurrence=states.recurrence, recurrent=states.recurrent)

    return Mixer(together(second.tensors, first.tensors), cache, work)


def _inner(c: Configuration) -> int:
    """Width within a state space: as said, or a multiple of a token's."""
    return c.size("mamba_d_ssm") if "mamba_d_ssm" in c else c.size("mamba_expand") * c.hidden


def _linear_sizes(c: Configuration) -> tuple[int, int, int, int]:
    """Heads of values, width of one, and widths of all keys and all values."""
    heads, width = c.size("linear_num_value_heads"), c.size("linear_value_head_dim")
    return heads, width, c.size("linear_num_key_heads") * c.size("linear_key_head_dim"), heads * width


def _convolution(path: str, channels: int, c: Configuration) -> Shapes:
    shapes: Shapes = {f"{path}.conv1d.weight": (channels, 1, c.size("mamba_d_conv"))}
    if c.flag("mamba_conv_bias"):
        shapes[f"{path}.conv1d.bias"] = (channels,)
    return shapes


def _of_states(
    cache: Callable[[Configuration, int], LayerCache],
    heads: Callable[[Configuration], Recurrent],
    *,
    state: int,
    convolution: int = 0,
) -> Callable[[Configuration, int], LayerWork]:
    """Return the work on states: FLOPs of a token for each element of state and convolution."""

    def work(c: Configuration, layer: int) -> LayerWork:
        kept = cache(c, layer)
        flops = state * kept.state + convolution * kept.convolution
        return LayerWork(recurrence=flops, recurrent=heads(c))

    return work


def _recurrent(c: Configuration, state: int, convolution: int, columns: int) -> LayerCache:
    """Return the states of a recurrence, in the type that the configuration names for them."""
    name = c.get("mamba_ssm_dtype") or c.get("mamba_ssm_cache_dtype")
    if name is None:
        return LayerCache(state=state, convolution=convolution, columns=columns)
    widths = {"float32": 4, "float16": 2, "bfloat16": 2}
    if str(name).removeprefix("torch.") not in widths:
        raise InputError(f"{str(name)[:40]!r} is no type of a state", source=c.source, where="mamba_ssm_dtype")
    width = widths[str(name).removeprefix("torch.")]
    return LayerCache(state=state, convolution=convolution, columns=columns, state_bytes=width)
