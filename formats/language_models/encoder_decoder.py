"""T5: an encoder, a decoder that attends to it, and positions by buckets in the first layers."""

from __future__ import annotations

from dataclasses import replace

from mtpp.formats.language_models.architecture import Architecture
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.mixers import Mixer, attention
from mtpp.formats.language_models.tensors import Shapes, SourceProjection, linear, norm, nothing
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_work import LayerWork

_KEYS = {"head_dim": "d_kv"}
_DEFAULTS = {"d_kv": 64, "relative_attention_num_buckets": 32, "feed_forward_proj": "relu"}
_NAMES = ("q", "k", "v", "o")


def _is_gated(c: Configuration) -> bool:
    return str(c.get("feed_forward_proj", "relu")).startswith("gated")


def _network(path: str, c: Configuration) -> Shapes:
    width = c.size("intermediate_size")
    names = ("wi_0", "wi_1") if _is_gated(c) else ("wi",)
    shapes = linear(f"{path}.DenseReluDense.wo", c.hidden, width)
    for name in names:
        shapes |= linear(f"{path}.DenseReluDense.{name}", width, c.hidden)
    return shapes | norm(f"{path}.layer_norm", c.hidden)


def _mixer(*, crossed: bool, everywhere: bool) -> Mixer:
    """Return self-attention, in a decoder attention to the encoder as well, and the network behind them."""
    own = attention("layer.0.SelfAttention", names=_NAMES)
    cross = attention("layer.1.EncDecAttention", names=_NAMES)

    def tensors(c: Configuration, layer: int) -> Shapes:
        shapes = own.tensors(c, layer) | norm("layer.0.layer_norm", c.hidden)
        if layer == 0 or everywhere:
            buckets = c.size("relative_attention_num_buckets")
            shapes["layer.0.SelfAttention.relative_attention_bias.weight"] = (buckets, c.heads)
        if crossed:
            shapes |= _once_a_source_token(cross.tensors(c, layer)) | norm("layer.1.layer_norm", c.hidden)
        return shapes | _network("layer.2" if crossed else "layer.1", c)

    def cache(c: Configuration, layer: int) -> LayerCache:
        elements = own.cache(c, layer).per_token
        return LayerCache(per_token=elements, per_source_token=elements) if crossed else LayerCache()

    def work(c: Configuration, layer: int) -> LayerWork:
        found = own.work(c, layer)
        return replace(found, cross=cross.work(c, layer).attention) if crossed else found

    return Mixer(tensors, cache, work)


def _once_a_source_token(shapes: Shapes) -> Shapes:
    """Mark projections of keys and values as those of the encoder's tokens."""
    return {
        name: SourceProjection(shape) if name.endswith((".k.weight", ".v.weight")) else shape
        for name, shape in shapes.items()
    }


def _rest(c: Configuration, layer: int) -> Shapes:
    return norm("encoder.final_layer_norm", c.hidden) | norm("decoder.final_layer_norm", c.hidden)


def _row(name: str, *, everywhere: bool, tied: bool, gated: bool) -> Architecture:
    defaults = _DEFAULTS | {"feed_forward_proj": "gated-gelu" if gated else "relu", "head_dim": 64}
    row = Architecture(
        name,
        {"full": _mixer(crossed=True, everywhere=everywhere)},
        nothing,
        nothing,
        root="",
        stack="decoder.block",
        embedding="shared",
        rest=_rest,
        tied=tied,
        keys=_KEYS,
        defaults=defaults,
        derived={"num_hidden_layers": lambda c: c.get("num_decoder_layers") or c.get("num_layers")},
    )
    mixers = {"encoder": _mixer(crossed=False, everywhere=everywhere)}
    own = {"num_hidden_layers": lambda c: c.get("num_layers")}
    return replace(row, encoder=replace(row, mixers=mixers, stack="encoder.block", derived=own))


ROWS = (
    replace(_row("t5", everywhere=False, tied=True, gated=False), gguf=("t5",)),
    _row("mt5", everywhere=False, tied=True, gated=True),
    _row("umt5", everywhere=True, tied=True, gated=True),
)
