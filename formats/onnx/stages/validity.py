"""Validity of an ONNX model by ``onnx.checker``, without its weights."""

from __future__ import annotations

import onnx
import onnx.checker

from mtpp.formats.onnx.shape_rules.executed_sizes import is_sized_by_runs
from mtpp.formats.onnx.topology import subgraphs
from mtpp.formats.onnx.wire import LARGE_BYTES

_LENGTH = 300


def fault_of(model: onnx.ModelProto) -> str | None:
    """Return what ``onnx.checker`` finds wrong with a model, None if nothing.

    Wiring, attributes, types and shapes are checked (``full_check``); types and ranks alone where onnx infers other
    sizes than a run has (:mod:`mtpp.formats.onnx.shape_rules.executed_sizes`). Initializers that are large or beside
    the model are inputs to the checker: it would copy the ones, and open the files of the others, which may be absent.
    So are sparse ones, which its shape inference does not know (onnx 1.23).

    Notes
    -----
    O(size of the graph) time and memory.
    """
    bare = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            continue
        if isinstance(value, str | bytes | int | float):
            setattr(bare, field.name, value)
        else:
            getattr(bare, field.name).MergeFrom(value)
    _copy_without_weights(model.graph, bare.graph)
    fault = _checked(bare)
    if fault is not None and _is_sized_by_runs(bare.graph):
        _leave_out_sizes(bare.graph)
        fault = _checked(bare)
    return fault


def _checked(model: onnx.ModelProto) -> str | None:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # of the C++ checker and of shape inference: types of their own
        text = " ".join(str(error).split())
        return text if len(text) <= _LENGTH else text[:_LENGTH] + "…"
    return None


def _is_sized_by_runs(graph: onnx.GraphProto) -> bool:
    """Say whether a graph, or a body in it, has an op for which onnx infers other sizes than a run has."""
    return any(
        is_sized_by_runs(node) or any(_is_sized_by_runs(body) for _, body in subgraphs(node)) for node in graph.node
    )


def _leave_out_sizes(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type"):
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
    for node in graph.node:
        for _, body in subgraphs(node):
            _leave_out_sizes(body)


def _copy_without_weights(graph: onnx.GraphProto, bare: onnx.GraphProto) -> None:
    for field, value in graph.ListFields():
        if field.name in ("initializer", "sparse_initializer"):
            continue
        if isinstance(value, str):
            setattr(bare, field.name, value)
        else:
            getattr(bare, field.name).MergeFrom(value)
    inputs = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.ByteSize() <= LARGE_BYTES:
            bare.initializer.append(tensor)
        elif tensor.name not in inputs:
            bare.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    for sparse in graph.sparse_initializer:
        name, dtype = sparse.values.name, sparse.values.data_type
        bare.input.append(onnx.helper.make_tensor_value_info(name, dtype, sparse.dims))
