"""Serialized models of empty messages: parsed, one takes a hundred times the two bytes that it has in a file.

What protobuf makes of a file is bounded before it is made: by the fields of messages, which exporters fill with names.
"""

from __future__ import annotations

from mtpp.errors import InputError
from mtpp.formats.onnx.wire import LENGTH, fields_of

_FEWEST_FIELDS = 500_000
"""Fields that are parsed whatever they hold: a hundred megabytes or two."""
_BYTES_OF_TWO_FIELDS = 7
"""Least that two fields of an exported model take on average: names, types and sizes take 4 bytes and more each."""
_DEEPEST = 100

_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 11: "value", 12: "value", 13: "value", 15: "sparse tensor"},
    "function": {7: "node", 11: "attribute", 12: "value"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor", 23: "sparse tensor"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
    "value": {2: "type"},
    "type": {1: "tensor type", 4: "type", 8: "tensor type"},
    "tensor type": {2: "shape"},
    "shape": {1: "dimension"},
    "dimension": {},
}


def refuse_crowded(data: bytes | memoryview, source: str) -> None:
    """Refuse a model that would take far more memory than its file, before it is parsed.

    Notes
    -----
    O(number of fields), for files that can hold too many; none are looked at in smaller ones.
    """
    most = max(_FEWEST_FIELDS, 2 * len(data) // _BYTES_OF_TWO_FIELDS)
    if len(data) <= 2 * _FEWEST_FIELDS:  # a field takes two bytes
        return
    view = memoryview(data)
    count = 0
    waiting = [(0, len(view), "model", 0)]
    while waiting:
        begin, end, message, depth = waiting.pop()
        children = _CHILDREN[message]
        for number, wire_type, _, content, stop in fields_of(view, begin, end):
            if wire_type != LENGTH:
                continue
            count += 1
            if count > most:
                raise InputError(
                    f"more than {most:,} messages and names in {len(view):,} bytes: most of them are empty",
                    source=source,
                    remedy="the file may be damaged: export the model again",
                )
            if number in children and stop > content and depth < _DEEPEST:
                waiting.append((content, stop, children[number], depth + 1))
