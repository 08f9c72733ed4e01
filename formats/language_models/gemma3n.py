"""Gemma 3n: layers that share caches, embeddings of each layer, and alternating updates."""

from __future__ import annotations

from mtpp.formats.language_models.architecture import Architecture
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.feed_forward import gated
from mtpp.formats.language_models.mixers import attention
from mtpp.formats.language_models.patterns import every
from mtpp.formats.language_models.tensors import Shapes, linear, norm, norms_of

_MOST_INPUTS = 64


def _around(c: Configuration, layer: int) -> Shapes:
    """Return the tensors of a layer beside attention and feed-forward network."""
    hidden, inputs = c.hidden, c.size("altup_num_inputs", most=_MOST_INPUTS)
    rank, own = c.size("laurel_rank"), c.size("hidden_size_per_layer_input")
    names = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    shapes = norms_of(*names)(c, layer) | {"altup.correct_output_scale": (hidden,)}
    shapes |= linear("altup.correction_coefs", inputs, inputs) | linear("altup.prediction_coefs", inputs**2, inputs)
    shapes |= linear("altup.modality_router", inputs, hidden) | norm("altup.router_norm", hidden)
    shapes |= linear("laurel.linear_left", rank, hidden) | linear("laurel.linear_right", hidden, rank)
    shapes |= norm("laurel.post_laurel_norm", hidden) | linear("per_layer_input_gate", own, hidden)
    return shapes | linear("per_layer_projection", hidden, own) | norm("post_per_layer_input_norm", hidden)


def _rest(c: Configuration, layer: int) -> Shapes:
    """Return the embeddings of all layers, and the projections of the inputs that alternate."""
    own, hidden = c.size("hidden_size_per_layer_input"), c.hidden
    shapes = norm("norm", hidden)
    shapes["embed_tokens_per_layer.weight"] = (c.size("vocab_size_per_layer_input"), c.layers * own)
    shapes |= linear("per_layer_model_projection", c.layers * own, hidden) | norm("per_layer_projection_norm", own)
    for kind in ("altup_projections", "altup_unembed_projections"):
        for number in range(c.size("altup_num_inputs", most=_MOST_INPUTS) - 1):
            shapes |= linear(f"{kind}.{number}", hidden, hidden)
    return shapes


ROW = Architecture(
    "gemma3n_text",
    {
        "full": attention(bias="attention_bias", norms="head"),
        "shared": attention(bias="attention_bias", norms="head", shared=True),
    },
    gated(),
    _around,
    pattern=every("sliding_window_pattern", 5),
    also=("gemma3n",),
    gguf=("gemma3n",),
    rest=_rest,
    tied=True,
    defaults={
        "head_dim": 256, "sliding_window": 512, "altup_num_inputs": 4, "laurel_rank": 64,
        "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144, "num_kv_shared_layers": 15,
    },
)  # fmt: skip
