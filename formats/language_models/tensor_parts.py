"""Names of tensors to parts of a model: layers, embedding, head, layers for further tokens, and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from mtpp.language_models.language_model import Weight
from mtpp.language_models.outer_parts import TOWERS


class Place(NamedTuple):
    """Part of a model, the number of the layer where it is one, and the path of that layer's module."""

    part: str
    layer: int | None = None
    path: str = ""


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

    Layers are counted within their stack, whatever number the configuration has.
    """
    match = _LAYER.match(name)
    return _place_of_layer(match[0].rstrip("."), int(match[2])) if match else _place_outside(name.split("."))


@lru_cache(maxsize=2**12)
def _place_of_layer(path: str, number: int) -> Place:
    modules = path.split(".")
    if TOWERS.intersection(modules[:4]):
        return Place("other")
    if MTP.intersection(modules[:2]):
        return Place("mtp", number, path)
    return Place("encoder" if "encoder" in modules or modules[0] == "enc" else "decoder", number, path)


def _place_outside(modules: list[str]) -> Place:
    if TOWERS.intersection(modules[:4]):
        return Place("other")
    if MTP.intersection(modules[:2]):
        return Place("mtp", None, "mtp")
    if EMBEDDINGS.intersection(modules):
        return Place("embedding")
    return Place("head" if HEADS.intersection(modules) else "other")


def by_place(weights: Iterable[Weight]) -> dict[Place, list[Weight]]:
    """Return weights by the part that each belongs to."""
    placed: dict[Place, list[Weight]] = {}
    for weight in weights:
        placed.setdefault(place_of(weight.name), []).append(weight)
    return placed


def by_number(placed: Mapping[Place, list[Weight]], part: str) -> dict[int, tuple[str, list[Weight]]]:
    """Return the path and the weights of each layer of a part."""
    numbered: dict[int, tuple[str, list[Weight]]] = {}
    for place, weights in placed.items():
        if place.part == part and place.layer is not None:
            numbered.setdefault(place.layer, (place.path, []))[1].extend(weights)
    return numbered


_FURTHER = frozenset(("eh_proj", "enorm", "hnorm", "shared_head", "nextn", "mtp", "mtp_block"))
"""Modules of a layer for further tokens that no other layer has."""


def predicts_further(name: str) -> bool:
    """Say whether a tensor is one that only layers for further tokens have."""
    return not _FURTHER.isdisjoint(name.split("."))
