"""ONNX models of a few nodes, and parts of them in ONNX's own text form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper


def nodes_of(text: str) -> list[onnx.NodeProto]:
    """Return the nodes of a text such as ``y = Relu(x) [name] z = Neg(y)``."""
    return list(onnx.parser.parse_graph(f"g () => () {{ {text} }}").node)


def function_of(text: str, opset: int = 20) -> onnx.FunctionProto:
    """Return a function of the domain ``local``, such as ``F (a) => (b) { b = Relu(a) }``."""
    return onnx.parser.parse_function(f'<domain: "local", opset_import: ["": {opset}, "local": 1]> {text}')


def typed(name: str, kind: Any) -> onnx.ValueInfoProto:
    """Describe a tensor by its shape, of float32 unless a pair of an element type and a shape says otherwise."""
    if isinstance(kind, tuple) and len(kind) == 2 and (kind[1] is None or isinstance(kind[1], list | tuple)):
        return helper.make_tensor_value_info(name, *kind)
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, kind)


def built(
    nodes: str | Sequence[onnx.NodeProto],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] | Sequence[str],
    constants: Mapping[str, Any] | None = None,
    *,
    stored: Sequence[TensorProto] = (),
    opset: int = 18,
    ir_version: int = 8,
    domains: Sequence[str] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    value_info: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """Return a model; outputs that are mere names are declared without a type."""
    graph = helper.make_graph(
        nodes_of(nodes) if isinstance(nodes, str) else nodes,
        "graph",
        [typed(*pair) for pair in inputs.items()],
        [typed(name, outputs[name]) if isinstance(outputs, Mapping) else onnx.ValueInfoProto(name=name)
         for name in outputs],
        [*stored, *(numpy_helper.from_array(np.asarray(held), name) for name, held in (constants or {}).items())],
        value_info=[typed(*pair) for pair in (value_info or {}).items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=ir_version)
