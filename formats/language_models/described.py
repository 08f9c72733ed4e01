"""Models of a configuration alone: parameters by the table, bytes by the type that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.language_models.architecture import Architecture
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.packed_weights import quantization_of
from mtpp.formats.language_models.skeleton import Skeleton, skeleton
from mtpp.language_models.language_model import LanguageModel

ELEMENT_BYTES = {
    "float32": 4, "float": 4, "float64": 8, "float16": 2, "half": 2, "bfloat16": 2, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "int8": 1,
}  # fmt: skip


Counted = Callable[[Mapping[str, Any], str, int], tuple[Skeleton, str] | None]
"""Counts an architecture: keys of a configuration, their file, bytes of a parameter → parts and a note, or None."""


def nobody(values: Mapping[str, Any], source: str, element_bytes: int) -> tuple[Skeleton, str] | None:
    """Count no architecture."""
    return None


class UnknownArchitecture(InputError):
    """A ``model_type`` that the table of architectures does not have (exit code 2)."""


def described_model(
    name: str, model_type: str, values: Mapping[str, Any], source: str, has_towers: bool, counted: Counted = nobody
) -> LanguageModel:
    """Return the model of a configuration.

    Parameters
    ----------
    counted
        Counts architectures that the table does not have.

    Raises
    ------
    InputError
        If its architecture is unknown, or a key that it needs is absent.
    """
    type_name, element_bytes = element_type(values)
    parts, more = structure(model_type, values, source, element_bytes, counted)
    notes = [f"bytes are those of {type_name}, the type of the configuration" if type_name else
             "the configuration names no type: 2 bytes a parameter"]  # fmt: skip
    packed = quantization_of(values)
    if packed:
        notes.append(f"weights are packed ({packed}): their bytes are in the files alone")
    if has_towers:
        notes.append("towers for images or sound are not counted: their weights are in the files alone")
    if parts.mtp:
        notes.append("MTP layers use embedding and head of the model; copies of them are not counted")
    notes += more
    whole = sum(part.bytes for part in (parts.embedding, parts.head, parts.other, *parts.layers, *parts.mtp))
    return LanguageModel(
        name, model_type, "configuration", parts.layers, parts.embedding, parts.head, parts.other, parts.tied,
        parts.mtp, 0, {type_name or "bfloat16": whole}, sizes_of(values), tuple(notes),
    )  # fmt: skip


def structure(
    model_type: str, values: Mapping[str, Any], source: str, element_bytes: int, counted: Counted = nobody
) -> tuple[Skeleton, list[str]]:
    """Return the parts that a configuration describes, and notes on them."""
    row = ARCHITECTURES.get(model_type)
    if row is not None:
        c = row.configured(values, source)
        return skeleton(row, c, element_bytes), notes_on(c, row)
    found = counted(values, source, element_bytes) if model_type else None
    if found is not None:
        return found[0], [f"the architecture {model_type!r} is counted by transformers: {found[1]}"]
    if not model_type:
        raise InputError("is absent", source=source, where="model_type", remedy="it names the architecture")
    raise UnknownArchitecture(
        f"the architecture {model_type!r} is unknown, and nothing is taken from the configuration",
        source=source,
        where="model_type",
        remedy="pip install 'mtpp[hf]' counts what transformers knows; a folder with weights is read by their names",
    )


def element_type(values: Mapping[str, Any]) -> tuple[str | None, int]:
    """Return the type of parameters by the configuration, if it names one, and the bytes of one."""
    for key in ("dtype", "torch_dtype"):
        name = str(values.get(key) or "").removeprefix("torch.")
        if name in ELEMENT_BYTES:
            return name, ELEMENT_BYTES[name]
    return None, 2


def notes_on(c: Configuration, row: Architecture) -> list[str]:
    """Return notes on defaults and on caches."""
    notes = []
    if c.assumed:
        listed = ", ".join(f"{key} {value:,}" for key, value in sorted(c.assumed.items()))
        notes.append(f"absent keys have the defaults of {row.name}: {listed}")
    if "index_head_dim" in c and row.name in ("deepseek_v32", "glm_moe_dsa"):
        notes.append(f"keys of the indexer, {c.size('index_head_dim')} a token and layer, are not in the cache")
    return notes


def sizes_of(values: Mapping[str, Any]) -> dict[str, object]:
    """Return the numbers and lists of a configuration."""
    return {key: value for key, value in values.items() if isinstance(value, int | list) and len(str(value)) < 2**16}
