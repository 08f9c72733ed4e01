"""Models of a configuration alone: parameters by the table, bytes by the type that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.language_models.architecture import Architecture
from mtpp.formats.language_models.architectures import ARCHITECTURES
from mtpp.formats.language_models.configuration import Configuration
from mtpp.formats.language_models.packed_weights import quantization_of
from mtpp.formats.language_models.skeleton import skeleton
from mtpp.language_models.language_model import LanguageModel

ELEMENT_BYTES = {
    "float32": 4, "float": 4, "float64": 8, "float16": 2, "half": 2, "bfloat16": 2, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "int8": 1,
}  # fmt: skip


class UnknownArchitecture(InputError):
    """A ``model_type`` that the table of architectures does not have (exit code 2)."""


def described_model(
    name: str, model_type: str, values: Mapping[str, Any], source: str, has_towers: bool
) -> LanguageModel:
    """Return the model of a configuration.

    Raises
    ------
    InputError
        If its architecture is unknown, or a key that it needs is absent.
    """
    row = known(model_type, source)
    c = row.configured(values, source)
    type_name, element_bytes = element_type(values)
    parts = skeleton(row, c, element_bytes)
    notes = [f"bytes are those of {type_name}, the type of the configuration" if type_name else
             "the configuration names no type: 2 bytes a parameter"]  # fmt: skip
    packed = quantization_of(values)
    if packed:
        notes.append(f"weights are packed ({packed}): their bytes are in the files alone")
    if has_towers:
        notes.append("towers for images or sound are not counted: their weights are in the files alone")
    if parts.mtp:
        notes.append("MTP layers use embedding and head of the model; copies of them are not counted")
    notes += notes_on(c, row)
    whole = sum(part.bytes for part in (parts.embedding, parts.head, parts.other, *parts.layers, *parts.mtp))
    return LanguageModel(
        name, model_type, "configuration", parts.layers, parts.embedding, parts.head, parts.other, parts.tied,
        parts.mtp, 0, {type_name or "bfloat16": whole}, sizes_of(c), tuple(notes),
    )  # fmt: skip


def known(model_type: str, source: str) -> Architecture:
    """Return the row of an architecture."""
    if model_type in ARCHITECTURES:
        return ARCHITECTURES[model_type]
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


def sizes_of(c: Configuration) -> dict[str, object]:
    """Return the numbers and lists of a configuration."""
    return {key: value for key, value in c.values.items() if isinstance(value, int | list) and len(str(value)) < 2**16}


