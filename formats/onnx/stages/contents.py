"""A model as it stands in its file, weights included, next to the nodes that a reading found its ops in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from google.protobuf.message import DecodeError

from mtpp.errors import InputError
from mtpp.formats.onnx.external_data import all_tensors
from mtpp.formats.onnx.loading import LARGEST_MESSAGE_BYTES
from mtpp.formats.onnx.local_functions.attributes import standard_domain
from mtpp.formats.onnx.local_functions.inline import inline_functions
from mtpp.formats.onnx.reader import Reading


@dataclass(frozen=True)
class Contents:
    """What goes into the stages.

    Attributes
    ----------
    model
        As in the file, but for the initializers, which are taken out.
    initializers
        Dense ones by name.
    nodes
        Of the main graph with all functions inlined, in the order of ``Reading.model``; contents included.
    opsets
        Imports of the model, and those that inlining added.
    """

    model: onnx.ModelProto
    initializers: Mapping[str, onnx.TensorProto]
    nodes: Sequence[onnx.NodeProto]
    opsets: Sequence[onnx.OperatorSetIdProto]

    def tensors(self) -> Iterator[onnx.TensorProto]:
        """Yield every tensor stored in the file, those of functions included."""
        yield from self.initializers.values()
        yield from all_tensors(self.model.graph)
        for function in self.model.functions:
            yield from all_tensors(onnx.GraphProto(node=function.node))


def contents_of(data: bytes, reading: Reading, source: str) -> Contents:
    """Parse a model in full.

    Parameters
    ----------
    data
        What *reading* was read from.

    Notes
    -----
    Memory: once the size of *data*. Initializers are kept out of the way of the inliner, which copies all it is given.
    """
    if len(data) > LARGEST_MESSAGE_BYTES:
        raise InputError(
            "the model is above 2 GiB, more than ONNX Runtime can load",
            source=source,
            remedy="store the weights as external data (onnx.save_model(…, save_as_external_data=True))",
        )
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError):
        raise InputError("not a valid protobuf", source=source, remedy="export it again") from None
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    del model.graph.initializer[:]
    nodes: Sequence[onnx.NodeProto] = model.graph.node
    imports = list(model.opset_import)
    if model.functions:
        model.graph.initializer.extend(reading.model.graph.initializer)
        inlined = inline_functions(model, source)
        del model.graph.initializer[:]
        nodes = inlined.graph.node
        known = {standard_domain(entry.domain) for entry in imports}
        imports += [entry for entry in inlined.opset_import if standard_domain(entry.domain) not in known]
    kinds = [(node.op_type, list(node.output)) for node in nodes]
    if kinds != [(node.op_type, list(node.output)) for node in reading.model.graph.node]:
        raise InputError("its functions cannot be inlined twice in the same way", source=source, where="functions")
    return Contents(model, initializers, nodes, imports)
