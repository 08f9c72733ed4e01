"""A language model as one JSON document: all that was read of its headers and its configuration.

Files of a model are many and large; this stands for them wherever a model is one content with one digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs.language_model import FORMAT
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.io.source import Source
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.language_model import DecoderLayer, LanguageModel, Part, Weight
from mtpp.language_models.layer_work import Attention, Experts, LayerWork, Recurrent

VERSION = 1

_PARTS = ("embedding", "head", "other")
_PLAIN = ("name", "model_type", "source", "tied", "files", "types", "sizes", "notes", "caches_known")


def description(model: LanguageModel) -> bytes:
    """Return the document of a model, in UTF-8; equal models have equal ones."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    document |= {key: getattr(model, key) for key in _PLAIN}
    document["notes"] = list(model.notes)
    document["sizes"] = {key: value for key, value in model.sizes.items() if _is_plain(value)}
    document |= {key: _weights(getattr(model, key)) for key in _PARTS}
    document |= {key: [_layer(one) for one in getattr(model, key)] for key in ("layers", "mtp")}
    return dump_json(document).encode()


def model_in(source: Source) -> LanguageModel:
    """Return the model of a description; the last one that was read is kept.

    Raises
    ------
    InputError
        If it is of another version, or is none.
    """
    return _model_in(source.data, source.display)


@lru_cache(maxsize=1)  # a command reads one model for several classes of devices, degrees and loads
def _model_in(data: bytes, source: str) -> LanguageModel:
    document = parse_json(data, source)
    if document.get("version") != VERSION:
        raise InputError("is a description of another version", source=source, where="/version")
    try:
        fields: dict[str, Any] = {key: document[key] for key in _PLAIN}
        fields |= {key: Part(_read_weights(document[key])) for key in _PARTS}
        fields |= {key: tuple(_read_layer(one) for one in document[key]) for key in ("layers", "mtp")}
        return LanguageModel(**fields)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        remedy = "give the model's folder, configuration or checkpoint"
        raise InputError("is no description of a language model", source=source, remedy=remedy) from None


def _is_plain(value: object) -> bool:
    """Tell whether a value of a configuration is a whole number, or a list of such and of texts."""
    return isinstance(value, int) or (isinstance(value, list) and all(isinstance(one, int | str) for one in value))


def _weights(part: Part) -> list[list[Any]]:
    return [[one.name, list(one.shape), one.parameters, one.bytes] for one in part.weights]


def _layer(layer: DecoderLayer) -> dict[str, Any]:
    plain = {"name": layer.name, "part": layer.part, "kind": layer.kind, "expert_bytes": layer.expert_bytes}
    work = None if layer.work is None else asdict(layer.work)
    return plain | {"cache": asdict(layer.cache), "work": work, "weights": _weights(layer)}


def _read_weights(rows: Sequence[Sequence[Any]]) -> tuple[Weight, ...]:
    return tuple(Weight(name, tuple(shape), parameters, size) for name, shape, parameters, size in rows)


def _read_layer(entry: Mapping[str, Any]) -> DecoderLayer:
    given, work = dict(entry), entry["work"]
    given["weights"], given["cache"] = _read_weights(entry["weights"]), LayerCache(**entry["cache"])
    if work is not None:
        inner = {
            "attention": _made(Attention, work["attention"]),
            "cross": _made(Attention, work["cross"]),
            "experts": _made(Experts, work["experts"]),
            "recurrent": _made(Recurrent, work["recurrent"]),
        }
        given["work"] = LayerWork(**{**work, **inner})
    return DecoderLayer(**given)


def _made(record: type[Any], values: Mapping[str, Any] | None) -> Any:
    return None if values is None else record(**values)
