"""Tensors outside the layers of a language model, by the stage that needs them: the first, the encoder's, the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mtpp.language_models.language_model import LanguageModel, Weight

TOWERS = frozenset(
    (
        "visual", "vision_tower", "vision_model", "vision_encoder", "vision", "vision_embed_tokens", "img_projection",
        "image_newline", "audio_tower", "audio_encoder", "audio", "audio_embed", "multi_modal_projector",
        "mm_projector", "mm", "connector", "aligner", "embed_vision", "embed_audio", "patch_merger", "vit", "v", "a",
    )
)  # fmt: skip
"""Modules of towers for images and sound, and of projections from them."""

_FINAL = frozenset(("norm", "norm_f", "ln_f", "final_layernorm", "final_layer_norm", "final_norm", "output_norm"))
_LAST = frozenset(("altup_unembed_projections", "altup_unembd_proj", "project_out", "final_logits_bias"))
_ENCODER = frozenset(("encoder", "enc"))
_TABLES = ("embd", "embed", "wpe", "position", "rope", "rotary", "inv_freq")


class OuterParts(NamedTuple):
    """Weights outside the layers, beside embedding and head.

    Attributes
    ----------
    first
        Needed before the first layer: tables, projections of embeddings, towers for images and sound.
    encoder
        Final norm of an encoder.
    last
        Final norm, and projections behind it.
    """

    first: Sequence[Weight]
    encoder: Sequence[Weight]
    last: Sequence[Weight]


def outer_parts(model: LanguageModel) -> OuterParts:
    """Tell the tensors of :attr:`~LanguageModel.other` apart by their names."""
    parts: tuple[list[Weight], list[Weight], list[Weight]] = ([], [], [])
    for weight in model.other.weights:
        modules = weight.name.split(".")
        ends = TOWERS.isdisjoint(modules[:4]) and (_is_final(modules) or not _LAST.isdisjoint(modules))
        parts[0 if not ends else 1 if not _ENCODER.isdisjoint(modules[:2]) else 2].append(weight)
    return OuterParts(*parts)


def multiplied(weights: Sequence[Weight]) -> int:
    """Return the weights of projections, which every token is multiplied by: no tables, no norms, no towers."""
    return sum(weight.parameters for weight in weights if len(weight.shape) == 2 and _is_projection(weight.name))


def _is_final(modules: Sequence[str]) -> bool:
    """Tell whether a tensor is of a final norm: ``model.norm.weight``, ``enc.output_norm.weight``."""
    return not _FINAL.isdisjoint(modules[:3])


def _is_projection(name: str) -> bool:
    modules = name.split(".")
    return TOWERS.isdisjoint(modules[:4]) and "proj" in name and not any(table in name for table in _TABLES)
