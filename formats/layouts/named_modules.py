"""Modules of a model by the names of its weights alone, for maps of models whose trees of modules are not known."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.language_models.language_model import LanguageModel, Weight
from mtpp.language_models.layer_stages import LayerStage
from mtpp.language_models.outer_parts import outer_parts

_SHARED = "shared.weight"
"""Embedding of T5, which encoder and decoder have under names of their own as well."""


def map_by_names(model: LanguageModel, stages: Sequence[LayerStage], gpus: Sequence[int]) -> dict[str, int]:
    """Return the GPU of each module that has weights.

    A tied head is with the embedding, the final norm of an encoder with its last layer, other parts behind the layers
    with the head.

    Parameters
    ----------
    gpus
        Of each stage.
    """
    parts = outer_parts(model)
    with_embedding = next(gpu for stage, gpu in zip(stages, gpus, strict=True) if stage.embedding)
    with_head = next(gpu for stage, gpu in zip(stages, gpus, strict=True) if stage.head)
    encoder = [gpu for stage, gpu in zip(stages, gpus, strict=True) for _ in range(stage.encoder_count)]
    decoder = [gpu for stage, gpu in zip(stages, gpus, strict=True) for _ in range(stage.count)]
    placed = dict.fromkeys(_modules([*model.embedding.weights, *parts.first]), with_embedding)
    if any(weight.name == _SHARED for weight in model.embedding.weights):
        placed |= dict.fromkeys(("encoder.embed_tokens", "decoder.embed_tokens"), with_embedding)
    placed |= {layer.name: gpu for layer, gpu in zip(model.layers, [*encoder, *decoder], strict=True)}
    placed |= dict.fromkeys(_modules(parts.encoder), encoder[-1] if encoder else with_embedding)
    placed |= dict.fromkeys(_modules([*parts.last, *model.head.weights]), with_head)
    if model.tied:
        row = ARCHITECTURES.get(model.model_type)
        placed["lm_head" if row is None else row.head] = with_embedding
    return placed


def _modules(weights: Sequence[Weight]) -> list[str]:
    return [weight.name.rpartition(".")[0] or weight.name for weight in weights]
