"""Headers of checkpoints without weights, written for tests."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from mtpp.formats.checkpoints.gguf_types import BLOCK_TYPES
from mtpp.formats.checkpoints.safetensors import TYPE_BITS

Tensors = Mapping[str, tuple[str, Sequence[int]]]
"""Type and shape by name."""


def header_of(tensors: Tensors) -> dict[str, Any]:
    """Return the document of a safetensors header, data of tensors one after the other."""
    document, at = {}, 0
    for name, (kind, shape) in tensors.items():
        end = at + (prod(shape) * TYPE_BITS[kind] + 7) // 8
        document[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return document


def safetensors_bytes(document: object) -> bytes:
    """Return a header, length and JSON."""
    text = json.dumps(document).encode()
    return len(text).to_bytes(8, "little") + text


def write_safetensors(path: Path, tensors: Tensors) -> Path:
    """Write a file that ends after its header."""
    path.write_bytes(safetensors_bytes(header_of(tensors)))
    return path


def write_model(folder: Path, configuration: Mapping[str, Any], tensors: Tensors) -> Path:
    """Write a folder of a model: configuration and one file of weights."""
    (folder / "config.json").write_text(json.dumps(configuration))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def gguf_text(text: str) -> bytes:
    """Return a string as GGUF has it."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value: Any) -> bytes:
    """Return the type of a value, and the value."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<IQ", 10, value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    inner = b"".join(gguf_value(item)[4:] for item in value)
    kind = struct.unpack("<I", gguf_value(value[0])[:4])[0] if value else 4
    return struct.pack("<IIQ", 9, kind, len(value)) + inner


def gguf_bytes(keys: Mapping[str, Any], tensors: Tensors) -> bytes:
    """Return a header of version 3; shapes are row-major, as numpy has them."""
    numbers = {one.name: number for number, one in BLOCK_TYPES.items()}
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        data += gguf_text(key) + gguf_value(value)
    at = 0
    for name, (kind, shape) in tensors.items():
        block = BLOCK_TYPES[numbers[kind]]
        sizes = list(reversed(shape))
        data += gguf_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, numbers[kind], at)
        at += -(-(prod(shape) // block.elements * block.bytes) // 32) * 32
    return data
