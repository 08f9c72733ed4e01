"""The model that a configuration alone describes: layers, caches and shapes by the table of architectures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from mtpp.formats.language_models.architecture import Architecture
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.tensors import Shapes
from mtpp.language_models.language_model import DecoderLayer, Part, Weight


@dataclass(frozen=True)
class Skeleton:
    """Parts of a model, their bytes at the configuration's type."""

    layers: tuple[DecoderLayer, ...]
    mtp: tuple[DecoderLayer, ...]
    embedding: Part
    head: Part
    other: Part
    tied: bool


def skeleton(row: Architecture, c: Configuration, element_bytes: int, *, shapes: bool = True) -> Skeleton:
    """Build the parts of a model.

    Parameters
    ----------
    element_bytes
        Bytes of a parameter.
    shapes
        Whether weights are listed; without them kinds and caches are all, and a GGUF file's keys suffice.
    """
    layers = [*_encoder(row, c, element_bytes, shapes), *_layers(row, c, element_bytes, "decoder", shapes)]
    tied = tied_by(row, c)
    if not shapes:
        return Skeleton(tuple(layers), tuple(_mtp(row, c, element_bytes, shapes)), Part(), Part(), Part(), tied)
    vocabulary, root = c.size("vocab_size"), f"{row.root}." if row.root else ""
    embedding: Shapes = {f"{root}{row.embedding}.weight": (vocabulary, c.hidden)}
    head: Shapes = {} if tied else {f"{row.head}.weight": (vocabulary, c.hidden)}
    if row.head_bias:
        head[f"{row.head}.bias"] = (vocabulary,)
    return Skeleton(
        tuple(layers),
        tuple(_mtp(row, c, element_bytes, shapes)),
        Part(_weights("", embedding, element_bytes)),
        Part(_weights("", head, element_bytes)),
        Part(_weights(root, row.rest(c, 0), element_bytes)),
        tied,
    )


def tied_by(row: Architecture, c: Configuration) -> bool:
    """Say whether embedding and head are one tensor, by the configuration or else by convention."""
    return c.flag("tie_word_embeddings") if "tie_word_embeddings" in c else row.tied


def _encoder(row: Architecture, c: Configuration, element_bytes: int, shapes: bool) -> Iterator[DecoderLayer]:
    if row.encoder is not None:
        inner = row.encoder.configured(c.values, c.source)
        yield from _layers(row.encoder, inner, element_bytes, "encoder", shapes)


def _layers(row: Architecture, c: Configuration, element_bytes: int, part: str, shapes: bool) -> Iterator[DecoderLayer]:
    root = f"{row.root}." if row.root else ""
    for number, kind in enumerate(row.kinds(c)):
        name = f"{root}{row.stack}.{number}"
        weights = _weights(f"{name}.", row.layer(c, number, kind), element_bytes) if shapes else ()
        yield DecoderLayer(weights, name, part, kind, row.cache(c, number, kind))


def _mtp(row: Architecture, c: Configuration, element_bytes: int, shapes: bool) -> Iterator[DecoderLayer]:
    """Yield the layers for further tokens; embedding and head of theirs are the model's."""
    kind = next(iter(row.mixers))
    for number in range(c.layers, c.layers + min(c.whole("num_nextn_predict_layers"), c.layers)):
        name = f"{row.root}.{row.stack}.{number}"
        tensors = row.layer(c, number, kind) | row.extra_of_mtp(c) if shapes else {}
        yield DecoderLayer(_weights(f"{name}.", tensors, element_bytes), name, "mtp", kind, row.cache(c, number, kind))


def _weights(prefix: str, shapes: Mapping[str, tuple[int, ...]], element_bytes: int) -> tuple[Weight, ...]:
    return tuple(
        Weight(prefix + name, shape, count, count * element_bytes)
        for name, shape, count in ((name, shape, prod(shape)) for name, shape in shapes.items())
    )
