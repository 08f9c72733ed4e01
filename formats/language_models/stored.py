"""Models of checkpoints: bytes and parameters by names of tensors, structure by the configuration or by GGUF keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.checkpoints.folder import Checkpoint
from mtpp.formats.language_models.architectures import ARCHITECTURES, GGUF_ARCHITECTURES
from mtpp.formats.language_models.described import Counted, UnknownArchitecture, nobody, notes_on, sizes_of, structure
from mtpp.formats.language_models.gguf_keys import architecture_of, configuration_of
from mtpp.formats.language_models.packed_weights import PackedWeights, quantization_of
from mtpp.formats.language_models.patterns import everywhere
from mtpp.formats.language_models.skeleton import Skeleton, skeleton
from mtpp.formats.language_models.tensor_parts import Place, by_number, by_place, predicts_further
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight
from mtpp.language_models.tensor_division import holds_experts
from mtpp.units import format_bytes
from mtpp.wording import counted

_MOST = Fraction(9, 8)
"""Parameters of a layer at most, for each weight of its matrices: norms and convolutions are few beside them."""


def stored_model(
    name: str,
    model_type: str,
    values: Mapping[str, Any],
    configuration: Path | None,
    checkpoint: Checkpoint,
    counted_by: Counted = nobody,
) -> LanguageModel:
    """Return the model of a checkpoint.

    Parameters
    ----------
    values
        Keys of the configuration; of a GGUF file they are its own.
    counted_by
        Counts architectures that the table does not have.
    """
    if not checkpoint.tensors:
        raise InputError("the header has no tensors", source=str(checkpoint.files[0]), remedy="it holds no model")
    notes = list(checkpoint.notes)
    gguf = checkpoint.kind == "gguf"
    source = str(checkpoint.files[0] if gguf or configuration is None else configuration)
    if gguf:
        model_type, values = architecture_of(checkpoint.keys), configuration_of(checkpoint.keys)
        parts = _structure_of_gguf(model_type, values, source, notes)
    else:
        parts = _structure(model_type, values, source, notes, counted_by)
    packed = PackedWeights(checkpoint.tensors, values)
    placed = by_place(
        Weight(tensor.name, tensor.shape, packed.parameters(tensor), tensor.bytes) for tensor in checkpoint.tensors
    )
    layers, mtp = _layers(placed, parts, notes)
    embedding, head = Part(placed.pop(Place("embedding"), [])), Part(placed.pop(Place("head"), []))
    other = Part([weight for place, weights in placed.items() if place.part == "other" for weight in weights])
    tied = not head.weights
    _disagreements(notes, parts, layers, mtp, embedding, head, values, packed)
    types: Counter[str] = Counter()
    for tensor in checkpoint.tensors:
        types[tensor.type] += tensor.bytes
    return LanguageModel(
        name, model_type or "unknown", checkpoint.kind, layers, embedding, head, other,
        tied or (not gguf and parts is not None and parts.tied), mtp, len(checkpoint.files), dict(types),
        sizes_of(values), tuple(notes), parts is not None,
    )  # fmt: skip


def _structure(
    model_type: str, values: Mapping[str, Any], source: str, notes: list[str], counted_by: Counted
) -> Skeleton | None:
    """Return the parts that the configuration describes; None where nothing is known of the architecture."""
    try:
        if model_type:
            parts, more = structure(model_type, values, source, 2, counted_by)
            notes += more
            return parts
    except UnknownArchitecture:
        pass
    return _guessed(model_type, values, source, notes)


def _structure_of_gguf(model_type: str, values: Mapping[str, Any], source: str, notes: list[str]) -> Skeleton | None:
    """Return kinds and caches of layers by the keys of a file."""
    row = GGUF_ARCHITECTURES.get(model_type)
    if model_type == "llama" and values.get("num_experts"):
        row = ARCHITECTURES["mixtral"]
    if row is None:
        return _guessed(model_type, values, source, notes)
    c = row.configured(values, source)
    parts = skeleton(row, c, 2, shapes=False)
    notes += notes_on(c, row)
    return parts


def _guessed(model_type: str, values: Mapping[str, Any], source: str, notes: list[str]) -> Skeleton | None:
    """Return caches of an unknown architecture by the keys that most have; None where it has not even these."""
    why = f"the architecture {model_type!r} is unknown" if model_type else "there is no configuration"
    usual = ARCHITECTURES["deepseek_v3" if values.get("kv_lora_rank") else "llama"]
    row = replace(usual, pattern=everywhere("sliding"), derived={})
    try:
        parts = skeleton(row, row.configured(values, source), 2, shapes=False)
    except InputError:
        notes.append(f"{why}: layers by the names of their weights, caches not counted; mtpp[hf] may know it")
        return None
    notes.append(f"{why}: layers by the names of their weights, caches by heads and widths alone; mtpp[hf] may know it")
    return parts


def _layers(
    placed: dict[Place, list[Weight]], parts: Skeleton | None, notes: list[str]
) -> tuple[tuple[DecoderLayer, ...], tuple[DecoderLayer, ...]]:
    """Return the layers, and others: for further tokens by their names, or beyond the configuration's number.

    Layers beyond it are for further tokens where the configuration has such or their weights are named so.
    """
    found = {place: weights for place, weights in placed.items() if place.layer is not None or place.part == "mtp"}
    for place in found:
        del placed[place]
    numbers = {part: by_number(found, part) for part in ("encoder", "decoder")}
    if parts is None and not numbers["decoder"]:
        numbers = {"encoder": {}, "decoder": numbers["encoder"]}
    described: Sequence[DecoderLayer] = () if parts is None else parts.layers
    layers: list[DecoderLayer] = []
    beyond: list[DecoderLayer] = []
    for part in ("encoder", "decoder"):
        own = [layer for layer in described if layer.part == part]
        stored = numbers[part]
        count = len(own) if parts is not None else max(stored, default=-1) + 1
        absent = sum(number not in stored for number in range(count))
        if absent:
            notes.append(f"{absent} of {counted(count, f'{part} layer')} have no weights in the files")
        for number in range(count):
            known = own[number] if own else DecoderLayer(part=part)
            path, weights = stored.pop(number, (known.name, []))
            layers.append(_of_weights(known, path, weights))
        further = parts is not None and bool(parts.mtp)
        for _, (path, weights) in sorted(stored.items()):
            is_mtp = further or any(predicts_further(weight.name) for weight in weights)
            beyond.append(DecoderLayer(tuple(weights), path, "mtp" if is_mtp else "beyond"))
    for place in sorted(
        (place for place in found if place.part == "mtp"), key=lambda place: (place.layer is None, place)
    ):
        if place.layer is None and beyond:
            beyond[0] = replace(beyond[0], weights=(*beyond[0].weights, *found[place]))
        else:
            beyond.append(DecoderLayer(tuple(found[place]), place.path, "mtp"))
    return tuple(layers), tuple(_with_caches(beyond, parts))


def _with_caches(beyond: Sequence[DecoderLayer], parts: Skeleton | None) -> list[DecoderLayer]:
    """Give layers for further tokens the kind and the cache of the model's own attention."""
    if parts is None or not parts.layers:
        return list(beyond)
    like = next((layer for layer in reversed(parts.layers) if layer.cache.per_token), parts.layers[-1])
    like = parts.mtp[0] if parts.mtp else like
    return [_of_weights(replace(like, part=layer.part), layer.name, layer.weights) for layer in beyond]


def _of_weights(known: DecoderLayer, path: str, weights: Sequence[Weight]) -> DecoderLayer:
    """Give a layer its weights; its arithmetic stays known where they are those that its sizes ask for."""
    found, work = replace(known, name=path, weights=tuple(weights)), known.work
    copies = known.part == "mtp"  # of embedding and head, beside those that its sizes ask for
    if work is None or not work.weights <= found.parameters or (not copies and found.parameters > _MOST * work.weights):
        return replace(found, work=None, expert_bytes=0)
    if work.experts is None:
        return replace(found, expert_bytes=0)
    count = work.experts.count
    experts = sum(one.bytes for one in weights if holds_experts(one.name, one.shape, count))
    return replace(found, expert_bytes=experts)


def _disagreements(
    notes: list[str], parts: Skeleton | None, layers: Sequence[DecoderLayer], mtp: Sequence[DecoderLayer],
    embedding: Part, head: Part, values: Mapping[str, Any], packed: PackedWeights,
) -> None:  # fmt: skip
    """Note all that files and configuration do not say alike."""
    if packed.buffer_bytes:
        notes.append(f"{format_bytes(packed.buffer_bytes)} of buffers are in the files: bytes, but no parameters")
    if packed.packed or quantization_of(values):
        method = quantization_of(values) or "packed"
        notes.append(f"weights are quantised ({method}): bytes as stored, parameters unpacked")
    if not embedding.weights:
        notes.append("no embedding is in the files")
    if parts is None:
        return
    described = bool(parts.embedding.weights)
    if described and parts.tied and head.weights:
        notes.append("the configuration ties head and embedding, but a head is in the files")
    if described and not parts.tied and not head.weights:
        notes.append("no head is in the files, although the configuration does not tie it: taken as tied")
    if not head.weights and (parts.tied or not described):
        notes.append("the head is the embedding, stored once")
    further = sum(layer.part == "mtp" for layer in mtp)
    if len(mtp) > further:
        beyond = counted(len(mtp) - further, "layer")
        notes.append(f"the files have {beyond} beyond the {len(layers)} of the configuration")
    if len(parts.mtp) and not further:
        notes.append(f"the configuration has {counted(len(parts.mtp), 'MTP layer')}, the files none")
    elif further and further != len(parts.mtp):
        notes.append(f"the files have {counted(further, 'MTP layer')}, the configuration {len(parts.mtp)}")
    if not described:
        return
    for text, stored, expected in (
        ("layers", sum(layer.parameters for layer in layers), sum(layer.parameters for layer in parts.layers)),
        ("the embedding", embedding.parameters, parts.embedding.parameters),
    ):
        if stored != expected:
            notes.append(f"{text}: {stored:,} parameters in the files, {expected:,} by the configuration")
