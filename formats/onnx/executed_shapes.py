"""Sizes known only from running a model, put into it where its shapes are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx
from onnx import TensorProto

from mtpp.formats.onnx.tensor_type import TensorType, is_known_dtype
from mtpp.formats.onnx.topology import subgraphs

Outputs = Sequence[tuple[str, tuple[int, ...]]]
"""Element type, as ONNX Runtime calls it, and shape of each output of a node."""


def executed_types(node: onnx.NodeProto, outputs: Outputs) -> dict[str, TensorType]:
    """Return the type of each output of a node by name, from what a run showed of them.

    Nothing, where it does not show all of them: sequences are left out then, and places would be wrong.
    """
    names = [name for name in node.output if name]
    if len(names) != len(outputs):
        return {}
    types = {name: tensor_type(*output) for name, output in zip(names, outputs, strict=True)}
    return {name: kind for name, kind in types.items() if kind is not None}


def tensor_type(dtype: str, shape: tuple[int, ...]) -> TensorType | None:
    """Return the type of a tensor whose elements ONNX Runtime calls *dtype*; None if nobody knows that name."""
    number = _NUMBERS.get(dtype.upper(), 0)
    return TensorType(number, shape) if number and is_known_dtype(number) else None


_NUMBERS: dict[str, int] = dict(TensorProto.DataType.items())


def declare_types(graph: onnx.GraphProto, types: Mapping[str, TensorType]) -> None:
    """Declare the types of tensors in the ``value_info`` of a graph that makes them."""
    made = {name for node in graph.node for name in node.output}
    results = {value.name: value for value in graph.output}
    kept = [value for value in graph.value_info if value.name not in types]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for name, kind in types.items():
        if name in made:
            target = results[name] if name in results else graph.value_info.add(name=name)
            target.type.CopyFrom(kind.to_proto())


def declare_bodies(graph: onnx.GraphProto, outputs: Callable[[str], Outputs], prefix: str) -> None:
    """Declare what a run showed in the ``value_info`` of the bodies in a graph.

    Parameters
    ----------
    outputs
        Of a node, by the name that :func:`name_nodes` gives it; empty where it did not run.
    """
    for i, node in enumerate(graph.node):
        for j, (_, body) in enumerate(subgraphs(node)):
            inside = _inside(prefix, i, j)
            types: dict[str, TensorType] = {}
            for position, inner in enumerate(body.node):
                types |= executed_types(inner, outputs(f"{inside}{position}"))
            declare_types(body, types)
            declare_bodies(body, outputs, inside)


def name_nodes(graph: onnx.GraphProto, prefix: str) -> None:
    """Give every node a name that says where it is, also in the bodies of control flow: no other has it."""
    for i, node in enumerate(graph.node):
        node.name = f"{prefix}{i}"
        for j, (_, body) in enumerate(subgraphs(node)):
            name_nodes(body, _inside(prefix, i, j))


def _inside(prefix: str, position: int, body: int) -> str:
    return f"{prefix}{position}.{body}."
