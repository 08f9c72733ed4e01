"""Tensors that a model stores, called as in its file: in the main graph, and in bodies of control flow."""

from __future__ import annotations

from typing import NamedTuple

import onnx

from mtpp.formats.modelled.naming import untaken
from mtpp.formats.modelled.parameter import Parameter
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.topology import subgraphs


class Place(NamedTuple):
    """A body: the node that it belongs to, by name and position in its graph, and its attribute there."""

    node: str
    position: int
    body: str

    @classmethod
    def of(cls, node: onnx.NodeProto, position: int, body: str) -> Place:
        """Return the place of a body; a node without a name goes by its kind and position."""
        return cls(node.name or f"{node.op_type}_{position}", position, body)


Path = tuple[Place, ...]
"""Bodies around a graph, the outermost first; none around the main graph."""


class StoredTensors:
    """Names of what is stored, each unique: nodes, and tensors of several bodies, may be called alike."""

    def __init__(self) -> None:
        self._labels: dict[tuple[Path, str], str] = {}
        self._taken: set[str] = set()

    def of(self, path: Path, name: str, size: int) -> Parameter:
        """Return a tensor of a graph; names of tensors in bodies begin with the bodies."""
        label = self._labels.get((path, name))
        if label is None:
            label = "".join(f"{place.node}/{place.body}/" for place in path) + name
            label = self._labels[path, name] = untaken(label or "constant", self._taken)
        return Parameter(label, size)

    def in_body(self, body: onnx.GraphProto, path: Path) -> dict[str, int]:
        """Return the bytes of all that a body which is not walked over holds, by name."""
        stored = {tensor.name: tensor for tensor in body.initializer}
        for node in body.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.HasField("t"):
                    stored[node.output[0]] = attribute.t
        found: dict[str, int] = {}
        for name, tensor in stored.items():
            found |= self.of(path, name, TensorType(tensor.data_type, tuple(tensor.dims)).bytes).stored
        for position, node in enumerate(body.node):
            for name, inner in subgraphs(node):
                found |= self.in_body(inner, (*path, Place.of(node, position, name)))
        return found
