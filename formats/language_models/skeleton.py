"""The model that a configuration alone describes: layers, caches and shapes by the table of architectures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from mtpp.errors import InputError
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
    for number, kinds in enumerate(zip(row.kinds(c), row.own_kinds(c), strict=True)):
        name = f"{root}{row.stack}.{number}"
        yield _layer(row, c, number, kinds, element_bytes if shapes else None, DecoderLayer(name=name, part=part))


def _mtp(row: Architecture, c: Configuration, element_bytes: int, shapes: bool) -> Iterator[DecoderLayer]:
    """Yield the layers for further tokens; embedding and head of theirs are the model's."""
    kind = next(iter(row.mixers))
    for number in range(c.layers, c.layers + min(c.whole("num_nextn_predict_layers"), c.layers)):
        bare = DecoderLayer(name=f"{row.root}.{row.stack}.{number}", part="mtp")
        yield _layer(row, c, number, (kind, kind), element_bytes if shapes else None, bare)


def _layer(
    row: Architecture, c: Configuration, number: int, kinds: tuple[str, str], element_bytes: int | None,
    bare: DecoderLayer,
) -> DecoderLayer:  # fmt: skip
    """Fill a layer that has a name and a part.

    Parameters
    ----------
    kinds
        Its kind, and the kind if it kept a cache of its own.
    element_bytes
        None without weights: its arithmetic is known then only if the keys give the shapes.
    """
    found = replace(bare, kind=kinds[0], cache=row.cache(c, number, kinds[0]))
    try:
        tensors = row.layer(c, number, kinds[0])
        tensors |= row.extra_of_mtp(c) if bare.part == "mtp" else {}
    except InputError:
        if element_bytes is None:
            return found
        raise
    if element_bytes is not None:
        found = replace(found, weights=_weights(f"{bare.name}.", tensors, element_bytes))
    try:
        work = row.work(c, number, *kinds, tensors)
    except InputError:  # the number of experts of a token is absent
        return found
    experts = 0 if work.experts is None else work.experts.count * work.experts.weights
    return replace(found, work=work, expert_bytes=experts * (element_bytes or 0))


def _weights(prefix: str, shapes: Mapping[str, tuple[int, ...]], element_bytes: int) -> tuple[Weight, ...]:
    return tuple(
        Weight(prefix + name, shape, count, count * element_bytes)
        for name, shape, count in ((name, shape, prod(shape)) for name, shape in shapes.items())
    )
