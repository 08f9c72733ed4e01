"""Adapters: their weights go to the layers that they name, as engines hold them beside the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from mtpp.errors import InputError
from mtpp.formats.checkpoints.folder import Checkpoint, checkpoint_in, is_checkpoint, read_checkpoint
from mtpp.formats.language_models.tensor_parts import Place, place_of
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight
from mtpp.units import format_bytes

P = TypeVar("P", bound=Part)

_PREFIXES = ("base_model.model.", "base_model.", "model.base_model.")


def with_adapter(model: LanguageModel, path: Path) -> LanguageModel:
    """Return a model with the weights of an adapter at a path: a folder with safetensors, or such a file.

    Raises
    ------
    InputError
        If there is none, it is broken, or it names a layer that the model has not.
    """
    found = _checkpoint(path)
    tensors = [Weight(f"{path.name}:{one.name}", one.shape, one.elements, one.bytes) for one in found.tensors]
    by_place: dict[Place, list[Weight]] = {}
    for weight in tensors:
        place = place_of(_plain(weight.name.partition(":")[2]))
        by_place.setdefault(Place(place.part, place.layer), []).append(weight)
    layers = _added(model.decoder_layers, "decoder", by_place)
    encoder = _added(model.encoder_layers, "encoder", by_place)
    mtp = _added(model.mtp, "mtp", by_place)
    beyond = next((place for place in by_place if place.layer is not None), None)
    if beyond is not None:
        problem = f"names layer {beyond.layer}, which the model has not"
        raise InputError(problem, source=str(path), where=by_place[beyond][0].name.partition(":")[2])
    parts = {
        name: _with(getattr(model, name), by_place.pop(Place(name), [])) for name in ("embedding", "head", "other")
    }
    rest = [weight for weights in by_place.values() for weight in weights]
    parts["other"] = _with(parts["other"], rest)
    size = sum(weight.bytes for weight in tensors)
    notes = (*model.notes, f"the adapter {path.resolve().name} adds {format_bytes(size)} in {len(tensors):,} tensors")
    return replace(model, layers=(*encoder, *layers), mtp=tuple(mtp), notes=notes, **parts)


def _checkpoint(path: Path) -> Checkpoint:
    try:
        place = checkpoint_in(path) if path.is_dir() else path if is_checkpoint(path) else None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=str(path)) from None
    if place is None:
        remedy = "give a folder with safetensors, or such a file"
        raise InputError("holds no adapter", source=str(path), remedy=remedy)
    found = read_checkpoint(place)
    if found.kind == "gguf":
        raise InputError("is a GGUF file", source=str(path), remedy="adapters are read as safetensors")
    return found


def _plain(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _added(layers: Sequence[DecoderLayer], part: str, by_place: dict[Place, list[Weight]]) -> list[DecoderLayer]:
    return [_with(layer, by_place.pop(Place(part, number), [])) for number, layer in enumerate(layers)]


def _with(part: P, weights: Sequence[Weight]) -> P:
    return replace(part, weights=(*part.weights, *weights)) if weights else part
