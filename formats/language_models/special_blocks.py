"""Blocks, widths and patterns of single architectures, which the table calls."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.mixers import Mixer
from mtpp.formats.language_models.tensors import Block, ExpertStack, Shapes, linear, norms_of
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_work import LayerWork


def granite_shared(c: Configuration, layer: int) -> Shapes:
    """Return the shared expert of Granite, none where it has no width."""
    width = c.whole("shared_intermediate_size")
    up = linear("shared_mlp.input_linear", 2 * width, c.hidden)
    return up | linear("shared_mlp.output_linear", c.hidden, width) if width else {}


def positions(name: str, *, more: int = 0) -> Block:
    """Return learned positions."""
    return lambda c, layer: {f"{name}.weight": (c.size("max_position_embeddings") + more, c.hidden)}


def moe_of_llama4(c: Configuration, layer: int) -> bool:
    """Tell whether a layer of Llama 4 has experts."""
    listed = c.get("moe_layers")
    return layer in listed if isinstance(listed, list) else (layer + 1) % c.size("interleave_moe_layer_step") == 0


def width_of_lfm2(c: Configuration) -> int:
    """Return the width of the network, rounded up as LFM2 does."""
    width = c.size("intermediate_size")
    if c.flag("block_auto_adjust_ff_dim"):
        width = int(c.get("block_ffn_dim_multiplier", 1) * int(2 * width / 3))
        width = c.size("block_multiple_of") * ceil(width / c.size("block_multiple_of"))
    return width


def norms_of_falcon(c: Configuration, layer: int) -> Shapes:
    """Return the one or two norms of a layer of Falcon."""
    two = c.whole("num_ln_in_parallel_attn") == 2 or (
        c.flag("new_decoder_architecture") and "num_ln_in_parallel_attn" not in c
    )
    names: tuple[str, ...] = ("ln_attn", "ln_mlp")
    if not two or not c.flag("new_decoder_architecture"):
        names = ("input_layernorm",) if c.flag("parallel_attn") else ("input_layernorm", "post_attention_layernorm")
    return norms_of(*names, bias=True)(c, layer)


def norms_of_stablelm(c: Configuration, layer: int) -> Shapes:
    """Return the norms of a layer of StableLM: one where attention and network are parallel."""
    parallel = c.flag("use_parallel_residual")
    return norms_of("input_layernorm", *(() if parallel else ("post_attention_layernorm",)), bias=True)(c, layer)


def of_delta_attention(name: str, default: int) -> Callable[[Configuration], Any]:
    """Return a size of Kimi's delta attention: of its own part of the configuration, or by the name of the table."""
    key = {"short_conv_kernel_size": "linear_conv_kernel_dim"}.get(name, f"linear_{name}")

    def derive(c: Configuration) -> Any:
        own = c.get("linear_attn_config", {})
        return own.get(name, c.get(key, default)) if isinstance(own, dict) else c.get(key, default)

    return derive


def kinds_of_kimi(c: Configuration) -> list[str]:
    """Return the kinds that Kimi's configuration lists, counted from 1; else every fourth layer attends fully."""
    if "layer_types" in c:
        return c.get("layer_types")  # type: ignore[no-any-return]
    own = c.get("linear_attn_config", {})
    listed = own.get("full_attn_layers") if isinstance(own, dict) else None
    full = {one - 1 for one in listed if type(one) is int} if isinstance(listed, list) else None
    chosen = [i in full if full is not None else bool(i) and i % 4 == 0 for i in range(c.layers)]
    return ["full_attention" if one else "linear_attention" for one in chosen]


def lone(block: Block) -> Mixer:
    """Return a layer that is nothing but a feed-forward network."""
    return Mixer(block, lambda c, layer: LayerCache(), lambda c, layer: LayerWork())


def plain_of_nemotron(path: str, size: str) -> Block:
    """Return a network of two matrices."""

    def block(c: Configuration, layer: int) -> Shapes:
        width = c.size(size)
        return linear(f"{path}.up_proj", width, c.hidden) | linear(f"{path}.down_proj", c.hidden, width)

    return block


def experts_of_nemotron(c: Configuration, layer: int) -> Shapes:
    """Return the experts of Nemotron-H, the shared one included."""
    count, width, inner = c.size("num_experts"), c.size("moe_intermediate_size"), c.hidden
    shapes: Shapes = {
        "mixer.experts.up_proj": ExpertStack((count, width, inner)),
        "mixer.experts.down_proj": ExpertStack((count, inner, width)),
    }
    shapes |= linear("mixer.gate", count, c.hidden)
    return shapes | plain_of_nemotron("mixer.shared_experts", "moe_shared_expert_intermediate_size")(c, layer)
