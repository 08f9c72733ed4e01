"""Large weights cut out of a serialized model before it is parsed.

Works on the protobuf wire format (https://protobuf.dev/programming-guides/encoding/) with the field numbers of
``onnx.proto``: payloads of tensors are skipped without being touched, and the tensors they belong to are marked
as external. So memory stays at the size of the graph, and a model with more than 2 GiB of embedded weights,
which no protobuf library parses, can be read.
"""

from __future__ import annotations

from collections.abc import Iterator

LARGE_BYTES = 1 << 16
"""A payload above this is a weight; one below may be the shape that a Reshape asks for and is kept."""

_VARINT, _FIXED64, LENGTH, _FIXED32 = 0, 1, 2, 5

_MODEL_FIELDS = {1: _VARINT, 5: _VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), LENGTH)
_IR_VERSION, _GRAPH = 1, 7

_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor", 23: "sparse tensor"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
_PAYLOADS = frozenset({4, 5, 6, 7, 9, 10, 11})
"""``float_data``, ``int32_data``, ``string_data``, ``int64_data``, ``raw_data``, ``double_data``, ``uint64_data``."""

_MARKED_EXTERNAL = bytes([14 << 3, 1])
_DEEPEST = 100
"""Protobuf itself refuses messages nested deeper than this."""


class WireError(ValueError):
    """The bytes are no protobuf message; *offset* is the first byte of the field that breaks off."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        super().__init__(f"the field at byte {offset} is broken off")


def _varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise WireError(position)


def fields_of(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield (number, wire type, start of the field, start and end of its content)."""
    position = begin
    while position < end:
        start = position
        tag, position = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        content = position
        if wire_type == _VARINT:
            _, position = _varint(data, position, end)
        elif wire_type == LENGTH:
            length, content = _varint(data, position, end)
            position = content + length
        elif wire_type in (_FIXED64, _FIXED32):
            position += 8 if wire_type == _FIXED64 else 4
        else:
            raise WireError(start)
        if position > end or number == 0:
            raise WireError(start)
        yield number, wire_type, start, content, position


def looks_like_model(data: bytes | memoryview) -> bool:
    """Say whether *data* starts like a ``ModelProto``; a truncated file, or the start of one, does too.

    Notes
    -----
    Looks at the first dozen top-level fields at most.
    """
    view = memoryview(data)
    seen: set[int] = set()
    try:
        for count, (number, wire_type, *_) in enumerate(fields_of(view, 0, len(view))):
            if _MODEL_FIELDS.get(number) != wire_type:
                return False
            seen.add(number)
            if count == 12:
                break
    except WireError as error:
        if error.offset >= len(view):
            return _IR_VERSION in seen
        tag = view[error.offset]
        return tag & 7 == LENGTH == _MODEL_FIELDS.get(tag >> 3) and (_IR_VERSION in seen or tag >> 3 == _GRAPH)
    return _IR_VERSION in seen or _GRAPH in seen


def first_broken_field(data: bytes | memoryview) -> int | None:
    """Return the offset of the top-level field that breaks off, or None if all are whole."""
    view = memoryview(data)
    try:
        for _ in fields_of(view, 0, len(view)):
            pass
    except WireError as error:
        return error.offset
    return None


def without_large_payloads(data: bytes | memoryview) -> bytes:
    """Return the serialized model without the payloads of its large tensors.

    Notes
    -----
    O(number of fields) time: it steps into submessages only where they are large enough to hold a payload, and
    skips a payload in one step.
    """
    view = memoryview(data)
    return b"".join(_stripped(view, 0, len(view), "model", 0)[0])


def _stripped(view: memoryview, begin: int, end: int, message: str, depth: int) -> tuple[list[memoryview | bytes], int]:
    children = _CHILDREN[message]
    pieces: list[memoryview | bytes] = []
    size = 0
    kept_from = begin
    emptied = False
    for number, wire_type, start, content, stop in fields_of(view, begin, end):
        if wire_type != LENGTH or stop - content <= LARGE_BYTES:
            continue
        if message == "tensor" and number in _PAYLOADS:
            inner: list[memoryview | bytes] = []
            emptied = True
        elif number in children and depth < _DEEPEST:
            body, inner_size = _stripped(view, content, stop, children[number], depth + 1)
            inner = [_encoded(number << 3 | LENGTH) + _encoded(inner_size), *body]
            size += len(inner[0]) + inner_size
        else:
            continue
        pieces += [view[kept_from:start], *inner]
        size += start - kept_from
        kept_from = stop
    pieces.append(view[kept_from:end])
    size += end - kept_from
    if emptied:
        pieces.append(_MARKED_EXTERNAL)
        size += len(_MARKED_EXTERNAL)
    return pieces, size


def _encoded(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)
