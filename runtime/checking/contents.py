"""Contents of an ``OrtValue`` as numpy arrays: tensors of any element type, and sequences of them."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.array_types import Array
from mtpp.runtime.random_values import NoValues
from mtpp.runtime.session import onnxruntime, open_session

if TYPE_CHECKING:
    import onnx

_OPSET, _IR_VERSION = 13, 8


def contents_of(value: Any) -> list[Array]:
    """Return what an ``OrtValue`` holds: a tensor, or the tensors of a sequence; copied.

    Types that numpy has no name for come as :mod:`ml_dtypes`; those below one byte as they are packed, as bytes.
    """
    if value.is_tensor_sequence():
        return _parts(value)
    if not value.is_tensor():
        raise NoValues(
            f"outputs of type {value.data_type()} cannot be compared", parameter="check", remedy="cut the model before"
        )
    try:
        return [np.asarray(value.numpy())]
    except RuntimeError:  # numpy has no such type
        return [_raw(value)]


def _raw(value: Any) -> Array:
    from onnx import helper

    shape = value.shape()
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(value.element_type()))
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    count = math.prod(shape)
    if len(data) < count * dtype.itemsize:
        return np.frombuffer(data, np.uint8)
    return np.frombuffer(data, dtype)[:count].reshape(shape)


def _parts(value: Any) -> list[Array]:
    """Return the tensors of a sequence, which ONNX Runtime hands out by an op only."""
    from onnx import TensorProto, helper

    element = value.element_type()
    sequence = helper.make_tensor_sequence_value_info("sequence", element, None)
    position = helper.make_tensor_value_info("position", TensorProto.INT64, [])
    length = helper.make_tensor_value_info("length", TensorProto.INT64, [])
    (count,) = _run_op("SequenceLength", [sequence], length, [value])
    part = helper.make_tensor_value_info("part", element, None)
    number = onnxruntime().OrtValue.ortvalue_from_numpy
    found: list[Array] = []
    for i in range(int(count)):
        found += _run_op("SequenceAt", [sequence, position], part, [value, number(np.array(i, np.int64))])
    return found


def _run_op(
    kind: str, inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto, values: list[Any]
) -> list[Array]:
    from onnx import helper

    node = helper.make_node(kind, [info.name for info in inputs], [output.name])
    model = helper.make_model(
        helper.make_graph([node], kind, inputs, [output]),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
    )
    session = open_session(model.SerializeToString(), display="‹check›")
    feeds = {info.name: value for info, value in zip(inputs, values, strict=True)}
    return contents_of(session.run_with_ort_values([output.name], feeds)[0])
