"""Tensors that are optionals: a reading knows what is in them, and no stage hands them on."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import onnx

from mtpp.formats.onnx.topology import subgraphs


def optional_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of the optionals of a graph: those declared, and what makes them or passes them on."""
    found = _declared([*graph.input, *graph.output, *graph.value_info])
    before = -1
    while len(found) > before:  # nodes may stand in any order
        before = len(found)
        _follow(graph.node, found)
    return found


def _declared(values: Iterable[onnx.ValueInfoProto]) -> set[str]:
    return {value.name for value in values if value.type.WhichOneof("value") == "optional_type"}


def _follow(nodes: Iterable[onnx.NodeProto], found: set[str]) -> None:
    """Add the optionals that nodes make; those around them are in *found*."""
    for node in nodes:
        bodies = [body for _, body in subgraphs(node)]
        if node.op_type == "Optional" or (node.op_type == "Identity" and found.intersection(node.input)):
            found.update(node.output)
        for body in bodies:
            found.update(_made_by(node, body, found))


def _made_by(node: onnx.NodeProto, body: onnx.GraphProto, around: Collection[str]) -> set[str]:
    """Return the outputs of control flow that are optionals of one of its bodies."""
    inside = {*around} | _declared([*body.input, *body.output, *body.value_info])
    if node.op_type == "Loop":
        inside |= {own.name for own, name in zip(body.input, node.input, strict=False) if name in around}
    _follow(body.node, inside)
    returned = body.output[1:] if node.op_type == "Loop" else body.output
    return {name for name, own in zip(node.output, returned, strict=False) if name and own.name in inside}
