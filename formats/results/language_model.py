"""Figures of a language model, ``mtpp-language-model`` version 1: layers, parts around them, caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.language_models.cache import cache_bytes
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part
from mtpp.language_models.tensor_degrees import possible_degrees
from mtpp.wording import counted

FORMAT = "mtpp-language-model"

_OF_CACHES = {
    "cache_bytes_per_token", "cache_bytes_per_token_beyond_window", "cache_bytes_per_sequence", "cache_bytes",
    "state_bytes_per_sequence",
}  # fmt: skip


def language_model_document(
    model: LanguageModel, kv_dtype: str, context: int, sequences: int, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the parts of a model, as JSON takes them.

    Parameters
    ----------
    kv_dtype
        Type of an element of caches, one of :data:`mtpp.names.CACHE_TYPES`.
    context, sequences
        Tokens of a sequence, and the number of sequences that the cache in all is of. The source of an encoder is as
        long as the context.
    notes
        Further ones.
    """
    decoders = [layer for layer in model.layers if layer.part == "decoder"]
    source = sum(cache_bytes(layer.cache.per_source_token, kv_dtype) for layer in decoders)
    held = sum(layer.cache.bytes(context, kv_dtype, source=context) for layer in decoders)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "name": model.name,
        "model_type": model.model_type,
        "source": model.source,
        "files": model.files,
        "parameters": model.parameters,
        "bytes": model.bytes,
        "bytes_by_type": dict(model.types),
        "tied": model.tied,
        "tensor_parallel": possible_degrees(model),
        "kv_dtype": kv_dtype,
        "context": context,
        "sequences": sequences,
        "cache_bytes_per_token": sum(cache_bytes(layer.cache.per_token, kv_dtype) for layer in decoders),
        "cache_bytes_per_token_beyond_window": sum(
            cache_bytes(layer.cache.per_token, kv_dtype) for layer in decoders if layer.cache.window is None
        ),
        **({"cache_bytes_per_source_token": source} if source else {}),
        "cache_bytes_per_sequence": held,
        "cache_bytes": sequences * held,
        "embedding": _part(model.embedding),
        "head": {"parameters": model.head_parameters, "bytes": model.head.bytes},
        "other": _part(model.other),
        "layers": [_layer(layer, kv_dtype) for layer in model.layers],
        "mtp": [_layer(layer, kv_dtype) for layer in model.mtp],
        "notes": [*model.notes, *_on_further_layers(model), *notes],
    }
    if not model.caches_known:
        for entry in (document, *document["layers"], *document["mtp"]):
            entry |= dict.fromkeys(_OF_CACHES & entry.keys())
    return document


def _on_further_layers(model: LanguageModel) -> list[str]:
    """Say of layers for further tokens and others beyond that their bytes count, and nothing else of them."""
    notes = []
    for part, name in (("mtp", "MTP layer"), ("beyond", "further layer")):
        found = [layer for layer in model.mtp if layer.part == part]
        if found:
            size, parameters = sum(layer.bytes for layer in found), sum(layer.parameters for layer in found)
            layers = counted(len(found), name)
            notes.append(f"{layers} in weights ({size:,} B), but not in parameters ({parameters:,}), caches and steps")
    return notes


def _part(part: Part) -> dict[str, int]:
    return {"parameters": part.parameters, "bytes": part.bytes}


def _layer(layer: DecoderLayer, kv_dtype: str) -> dict[str, Any]:
    cache = layer.cache
    entry = {
        "name": layer.name,
        "part": layer.part,
        "kind": layer.kind,
        **_part(layer),
        "cache_bytes_per_token": cache_bytes(cache.per_token, kv_dtype),
        "window": cache.window,
        "state_bytes_per_sequence": cache.bytes_of_states,
    }
    if cache.per_source_token:
        entry["cache_bytes_per_source_token"] = cache_bytes(cache.per_source_token, kv_dtype)
    return entry
