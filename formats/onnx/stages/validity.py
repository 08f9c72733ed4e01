"""Validity of an ONNX model by ``onnx.checker``, without its weights."""

from __future__ import annotations

import onnx
import onnx.checker

from mtpp.formats.onnx.wire import LARGE_BYTES

_LENGTH = 300


def fault_of(model: onnx.ModelProto) -> str | None:
    """Return what ``onnx.checker`` finds wrong with a model, None if nothing.

    Wiring, attributes, types and shapes are checked (``full_check``). Initializers that are large or lie beside the
    model are inputs to the checker: it would copy the ones, and open the files of the others, which may be absent. So
    are sparse ones, which its shape inference does not know (onnx 1.23).

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
    try:
        onnx.checker.check_model(bare, full_check=True)
    except Exception as error:  # of the C++ checker and of shape inference: types of their own
        text = " ".join(str(error).split())
        return text if len(text) <= _LENGTH else text[:_LENGTH] + "…"
    return None


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
