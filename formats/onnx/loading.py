"""From bytes to a ``ModelProto`` that holds no large weights, or one line that says why not."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from google.protobuf.message import DecodeError

from mtpp.errors import InputError
from mtpp.formats.onnx.wire import (
    LENGTH,
    WireError,
    fields_of,
    first_broken_field,
    looks_like_model,
    without_large_payloads,
)

STRIP_ABOVE_BYTES = 1 << 20
"""Files below this are parsed as they are: stepping over their fields first would cost more than it saves."""

LARGEST_MESSAGE_BYTES = 2**31 - 1
"""What protobuf can parse."""

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


def looks_like_onnx(data: bytes) -> bool:
    """Say cheaply whether *data* is a serialized ONNX model, or the beginning of one.

    JSON, gzip, zip and text are not. A truncated model is: its reader then says so.
    """
    return looks_like_model(data)


def parse_model(data: bytes, source: str) -> onnx.ModelProto:
    """Parse a serialized model, its large tensors emptied first; files of external data are never opened.

    Raises
    ------
    InputError
        If *data* is empty, no ONNX model, truncated, or a model without a graph or without nodes.
    """
    if not data:
        raise InputError("the file is empty", source=source, remedy="give an ONNX model")
    if not looks_like_model(data):
        raise InputError("not an ONNX model", source=source, remedy="export the network to ONNX (a binary .onnx file)")
    try:
        small = without_large_payloads(data) if len(data) > STRIP_ABOVE_BYTES else data
        if len(small) > LARGEST_MESSAGE_BYTES:
            raise InputError(
                "the graph itself is above 2 GiB, more than protobuf can hold",
                source=source,
                remedy="store the weights as external data (onnx.save_model(…, save_as_external_data=True))",
            )
        refuse_crowded(small, source)
        model = onnx.ModelProto()
        model.ParseFromString(small)
    except InputError:
        raise
    except WireError as error:
        raise _damaged(data, source, error.offset) from None
    except (DecodeError, RuntimeError, ValueError):
        raise _damaged(data, source, first_broken_field(data)) from None
    _check(model, source)
    return model


def _damaged(data: bytes, source: str, offset: int | None) -> InputError:
    if offset is None:
        return InputError("the ONNX model is damaged: not a valid protobuf", source=source, remedy="export it again")
    return InputError(
        f"the ONNX model is truncated or damaged: a field runs past its end ({len(data)} bytes)",
        source=source,
        where=f"byte {offset}",
        remedy="copy or export it again",
    )


def _check(model: onnx.ModelProto, source: str) -> None:
    if not model.HasField("graph"):
        raise InputError("the ONNX model has no graph", source=source, remedy="the file may be truncated")
    if not model.graph.node:
        raise InputError("the graph has no nodes", source=source, where="graph", remedy="there is nothing to partition")
    if not model.opset_import and model.ir_version >= 3:
        raise InputError(
            "the ONNX model names no operator set (opset_import)",
            source=source,
            remedy="the file may be truncated: copy or export it again",
        )
    _check_text(model, source)


def _check_text(model: onnx.ModelProto, source: str) -> None:
    """Refuse names that are no UTF-8: protobuf hands them out as bytes, which would surface anywhere later."""
    texts: list[object] = [model.producer_name, model.producer_version, *(x.domain for x in model.opset_import)]
    for function in model.functions:
        texts += [function.name, function.domain, *function.input, *function.output, *function.attribute]
        texts += [x.domain for x in function.opset_import]
        _collect_node_texts(function.node, texts)
    _collect_texts(model.graph, texts)
    for text in texts:
        if isinstance(text, bytes):
            shown = text.decode("utf-8", "backslashreplace")[:60]
            raise InputError(f"the name {shown!r} is not UTF-8", source=source, remedy="the file may be damaged")


def _collect_texts(graph: onnx.GraphProto, texts: list[object]) -> None:
    texts.append(graph.name)
    texts += [tensor.name for tensor in graph.initializer]
    texts += [tensor.values.name for tensor in graph.sparse_initializer]
    for group in (graph.input, graph.output, graph.value_info):
        for value in group:
            texts.append(value.name)
            texts += [dim.dim_param for dim in value.type.tensor_type.shape.dim]
    _collect_node_texts(graph.node, texts)


def _collect_node_texts(nodes: Iterable[onnx.NodeProto], texts: list[object]) -> None:
    for node in nodes:
        texts += [node.name, node.op_type, node.domain, *node.input, *node.output]
        for attribute in node.attribute:
            texts += [attribute.name, attribute.ref_attr_name]
            if attribute.HasField("g"):
                _collect_texts(attribute.g, texts)
            for graph in attribute.graphs:
                _collect_texts(graph, texts)


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each operator set by its domain; the default domain is always ``""``."""
    versions = {"" if entry.domain == "ai.onnx" else entry.domain: int(entry.version) for entry in model.opset_import}
    versions.setdefault("", 1)
    return versions


def refuse_crowded(data: bytes | memoryview, source: str) -> None:
    """Refuse a model that would take far more memory than its file, before it is parsed.

    A message that is empty takes a hundred times the two bytes that it has in a file. The size of a parsed model is
    bounded before it is parsed: by the fields of messages, which exporters fill with names.

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
