"""Names of tensors to parts of a model: layers, embedding, head, layers for further tokens, and the rest."""

from __future__ import annotations

import re
from typing import NamedTuple


class Place(NamedTuple):
    """Part of a model, the number of the layer where it is one, and the path of that layer's module."""

    part: str
    layer: int | None = None
    path: str = ""


TOWERS = frozenset(
    (
        "visual", "vision_tower", "vision_model", "vision_encoder", "vision", "vision_embed_tokens", "img_projection",
        "image_newline", "audio_tower", "audio_encoder", "audio", "audio_embed", "multi_modal_projector",
        "mm_projector", "mm", "connector", "aligner", "embed_vision", "embed_audio", "patch_merger", "vit", "v", "a",
    )
)  # fmt: skip
"""Modules of towers for images and sound, and of projections from them."""

MTP = frozenset(("mtp", "mtp_layers", "nextn", "model_mtp"))

EMBEDDINGS = frozenset(
    (
        "embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embed_in", "embeddings", "embedding", "shared",
        "token_embd",
    )
)  # fmt: skip
HEADS = frozenset(("lm_head", "embed_out", "output"))

_LAYER = re.compile(r"(.*?(?:^|\.)(?:layers|h|blocks|blk|block|layer))\.(\d{1,6})(?:\.|$)")


def place_of(name: str) -> Place:
    """Return the part that a tensor belongs to, by its name alone.

    Layers are counted within their stack: a layer beyond the configuration's is one for further tokens.
    """
    modules = name.split(".")
    for module in modules[:4]:
        if module in TOWERS and "blk" not in modules[:1]:
            return Place("other")
    match = _LAYER.match(name)
    if MTP.intersection(modules[:2]):
        return Place("mtp", int(match[2]) if match else None, match[0].rstrip(".") if match else "mtp")
    if match:
        part = "encoder" if "encoder" in modules or modules[0] == "enc" else "decoder"
        return Place(part, int(match[2]), match[0].rstrip("."))
    if EMBEDDINGS.intersection(modules):
        return Place("embedding")
    if HEADS.intersection(modules):
        return Place("head")
    return Place("other")
