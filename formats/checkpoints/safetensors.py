"""Headers of safetensors files: eight bytes of length, JSON, and no byte of the data behind it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from mtpp.errors import InputError
from mtpp.formats.checkpoints.stored_tensor import (
    MOST_HEADER_BYTES,
    MOST_TENSORS,
    StoredTensor,
    elements_of,
    refuse_overlaps,
)
from mtpp.formats.io.json_text import json_fault, no_garbage_collection
from mtpp.units import format_bytes
from mtpp.wording import counted

TYPE_BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""Bits of an element by type."""

_LENGTH_BYTES = 8


@dataclass(frozen=True)
class Header:
    """Tensors of a file in the order of their bytes, its metadata, and the bytes missing of its data.

    Attributes
    ----------
    missing_bytes
        Data that the file lacks; 0 also where it ends right after the header.
    """

    tensors: tuple[StoredTensor, ...]
    metadata: Mapping[str, str]
    missing_bytes: int = 0


def read_safetensors(path: Path) -> Header:
    """Read the header of a file; the data behind it may be missing.

    Raises
    ------
    InputError
        If the header is truncated, above 256 MiB, no JSON of tensors, or tensors overlap or leave gaps.
    """
    text, data_bytes = _header_text(path)
    source = str(path)
    try:
        with no_garbage_collection():
            document = json.loads(text, object_pairs_hook=_object, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the header is {json_fault(error)}", source=source) from None
    if not isinstance(document, dict):
        raise InputError("the header is no JSON object", source=source)
    if len(document) > MOST_TENSORS:
        raise InputError(f"has {counted(len(document), 'tensor')}, more than {MOST_TENSORS:,}", source=source)
    metadata = document.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise InputError("is no object of strings", source=source, where="__metadata__")
    spans = [_span(name, entry, source) for name, entry in document.items()]
    end = refuse_overlaps([(begin, begin + one.bytes, one.name) for begin, one in spans], source, gaps=False)
    tensors = tuple(one for _, one in sorted(spans, key=lambda pair: pair[0]))
    return Header(tensors, metadata, max(0, end - data_bytes) if data_bytes else 0)


def _header_text(path: Path) -> tuple[bytes, int]:
    """Return the text of the header, and the number of bytes behind it."""
    source = str(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_LENGTH_BYTES)
            length = int.from_bytes(head, "little")
            if len(head) < _LENGTH_BYTES:
                raise InputError("ends before its header", source=source, remedy="the file is truncated")
            if length > MOST_HEADER_BYTES:
                problem = f"a header of {format_bytes(length)} is above {format_bytes(MOST_HEADER_BYTES)}"
                raise InputError(problem, source=source, remedy="is it a safetensors file?")
            text = file.read(min(length, size))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source) from None
    if len(text) < length:
        problem = f"the header has {length:,} bytes, the file {len(text):,} of them"
        raise InputError(problem, source=source, remedy="the file is truncated")
    return text, size - _LENGTH_BYTES - length


def _span(name: str, entry: Any, source: str) -> tuple[int, StoredTensor]:
    """Return the begin of a tensor in the data, and the tensor."""

    def fail(problem: str) -> InputError:
        return InputError(problem, source=source, where=name or "''", remedy="the header is broken")

    if not isinstance(entry, dict):
        raise fail("is no object with dtype, shape and data_offsets")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in TYPE_BITS:
        raise fail(f"the type {str(dtype)[:40]!r} is unknown")
    if not _whole(shape):
        raise fail("the shape is no list of whole numbers")
    if not _whole(offsets) or len(offsets) != 2:
        raise fail("data_offsets are no two whole numbers")
    begin, end = offsets
    size = (elements_of(tuple(shape), source, name) * TYPE_BITS[dtype] + 7) // 8
    if begin < 0 or end - begin != size:
        raise fail(f"data_offsets hold {str(end - begin)[:40]} bytes, type and shape {size:,}")
    return begin, StoredTensor(name, dtype, tuple(shape), size)


def _whole(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int for value in values)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice")
    return result


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
