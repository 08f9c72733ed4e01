"""Headers of GGUF files: keys with values, and tensors; long arrays such as vocabularies are passed over."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.checkpoints.gguf_types import BLOCK_TYPES
from mtpp.formats.checkpoints.stored_tensor import (
    MOST_HEADER_BYTES,
    MOST_TENSORS,
    StoredTensor,
    elements_of,
    refuse_overlaps,
)
from mtpp.units import format_bytes

MAGIC = b"GGUF"

_FIRST_BYTES = 16 * 2**20
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_KEYS = 2**16
_LONGEST_ARRAY = 2**16
"""Numbers of an array that are kept: layers have one each, vocabularies are longer."""

_DEEPEST = 4
_MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class GgufHeader:
    """Tensors of a file, its keys, and the bytes missing of its data (0 also where there is none).

    Attributes
    ----------
    keys
        Values by key: numbers, strings and arrays of numbers; of a long array, or one of strings, its length alone, as
        a :class:`Length`.
    """

    tensors: tuple[StoredTensor, ...]
    keys: Mapping[str, Any]
    missing_bytes: int = 0


class Length(int):
    """Number of elements of an array that was passed over."""


class _Short(Exception):
    """The bytes at hand end too early."""


def read_gguf(path: Path) -> GgufHeader:
    """Read the header of a file; the data behind it may be missing.

    Raises
    ------
    InputError
        If it is no GGUF file of version 2 or 3, truncated within its header, or broken.

    Notes
    -----
    Reads 16 MiB, and twice as many each time that the header turns out to be longer, up to 256 MiB.
    """
    source = str(path)
    try:
        size = path.stat().st_size
        most = min(size, MOST_HEADER_BYTES)
        length = min(most, _FIRST_BYTES)
        while True:
            with path.open("rb") as file:
                data = file.read(length)
            try:
                return _header(data, source, size)
            except _Short:
                if length >= most:
                    break
                length, data = min(most, 2 * length), b""
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source) from None
    if size > MOST_HEADER_BYTES:
        raise InputError(f"the header is above {format_bytes(MOST_HEADER_BYTES)}", source=source)
    raise InputError("ends before its header does", source=source, remedy="the file is truncated")


class _Reader:
    """A position in bytes."""

    def __init__(self, data: bytes, order: str, size: int) -> None:
        self.data, self.at, self.order, self.size = data, 4, order, size

    def numbers(self, code: str, count: int) -> tuple[Any, ...]:
        layout = f"{self.order}{count}{code}"
        begin = self.at
        self.skip(struct.calcsize(layout))
        return struct.unpack_from(layout, self.data, begin)

    def number(self, code: str) -> Any:
        return self.numbers(code, 1)[0]

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > MOST_HEADER_BYTES:
            raise ValueError(f"it is above {format_bytes(MOST_HEADER_BYTES)}")
        if self.at > len(self.data):
            raise _Short

    def length(self, least: int = 1) -> int:
        """Read a number of things of *least* bytes each, which the file has to have room for."""
        count = int(self.number("Q"))
        if count * least > self.size:
            raise ValueError(f"{count:,} elements are more than the file has bytes")
        return count

    def text(self) -> str:
        length = self.length()
        begin = self.at
        self.skip(length)
        return self.data[begin : self.at].decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise ValueError(f"the type {kind} of a value is unknown")
        if depth > _DEEPEST:
            raise ValueError("arrays are nested too deeply")
        inner = int(self.number("I"))
        if inner in _SCALARS:
            width = struct.calcsize(f"={_SCALARS[inner]}")
            count = self.length(width)
            if count <= _LONGEST_ARRAY:
                return list(self.numbers(_SCALARS[inner], count))
            self.skip(count * width)
            return Length(count)
        count = self.length(8)
        if inner == _STRING:
            self._skip_texts(count)
        else:
            for _ in range(count):
                self.value(inner, depth + 1)
        return Length(count)

    def _skip_texts(self, count: int) -> None:
        unpack, data, at, last = struct.Struct(f"{self.order}Q").unpack_from, self.data, self.at, len(self.data) - 8
        for _ in range(count):
            if at > last:
                raise _Short
            at += 8 + unpack(data, at)[0]
        self.at = at
        self.skip(0)


def _header(data: bytes, source: str, size: int) -> GgufHeader:
    if data[:4] != MAGIC:
        raise InputError("is no GGUF file", source=source)
    if len(data) < 24:
        raise _Short
    little, big = int.from_bytes(data[4:8], "little"), int.from_bytes(data[4:8], "big")
    reader = _Reader(data, "<" if little <= big else ">", size)
    version = reader.number("I")
    if version not in (2, 3):
        raise InputError(f"GGUF version {version} is not read", source=source, remedy="convert it to version 3")
    try:
        return _contents(reader, source)
    except (ValueError, OverflowError, struct.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the header is broken: {error}", source=source) from None


def _contents(reader: _Reader, source: str) -> GgufHeader:
    tensor_count, key_count = reader.numbers("Q", 2)
    if tensor_count > MOST_TENSORS:
        raise InputError(f"has {tensor_count:,} tensors, more than {MOST_TENSORS:,}", source=source)
    if key_count > _MOST_KEYS:
        raise InputError(f"has {key_count:,} keys, more than {_MOST_KEYS:,}", source=source)
    keys = {}
    for _ in range(key_count):
        name = reader.text()
        if name in keys:
            raise InputError("stands twice", source=source, where=name)
        keys[name] = reader.value(reader.number("I"))
    alignment = keys.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
        raise InputError(f"{alignment} is no power of two", source=source, where="general.alignment")
    spans: list[tuple[int, StoredTensor]] = []
    names: set[str] = set()
    for _ in range(tensor_count):
        spans.append(_tensor(reader, source, alignment))
        names.add(spans[-1][1].name)
        if len(names) < len(spans):
            raise InputError("stands twice", source=source, where=spans[-1][1].name or "''")
    end = refuse_overlaps([(begin, begin + one.bytes, one.name) for begin, one in spans], source, gaps=True)
    data_begin = -(-reader.at // alignment) * alignment
    data_bytes = reader.size - data_begin
    return GgufHeader(tuple(one for _, one in spans), keys, max(0, end - data_bytes) if data_bytes > 0 else 0)


def _tensor(reader: _Reader, source: str, alignment: int) -> tuple[int, StoredTensor]:
    """Return the begin of a tensor in the data, and the tensor; dimensions are stored in reverse."""
    name = reader.text()
    dimensions = reader.number("I")
    if dimensions > _MOST_DIMENSIONS:
        raise InputError(f"has {dimensions:,} dimensions", source=source, where=name)
    sizes = reader.numbers("Q", dimensions)
    number, begin = reader.number("I"), reader.number("Q")
    if number not in BLOCK_TYPES:
        raise InputError(f"the type {number} is unknown", source=source, where=name)
    type_name, block, block_bytes = BLOCK_TYPES[number]
    elements = elements_of(sizes, source, name)
    if elements and sizes and sizes[0] % block:
        raise InputError(f"rows of {sizes[0]:,} are no blocks of {block} ({type_name})", source=source, where=name)
    if begin % alignment:
        raise InputError(f"begins at {begin:,}, no multiple of {alignment}", source=source, where=name)
    return begin, StoredTensor(name, type_name, tuple(reversed(sizes)), elements // block * block_bytes)
