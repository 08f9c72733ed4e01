"""Contents of an ``OrtValue`` as numpy arrays: tensors of any element type, and sequences of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.array_types import Array
from mtpp.runtime.element_types import unpacked
from mtpp.runtime.random_values import NoValues
from mtpp.runtime.session import onnxruntime, open_session, tensor_contents

if TYPE_CHECKING:
    import onnx

_OPSET, _IR_VERSION = 13, 8


def contents_of(value: Any) -> list[Array]:
    """Return what an ``OrtValue`` holds: a tensor, or the tensors of a sequence; copied.

    Types that numpy has no name for come as :mod:`ml_dtypes`, one element to a byte where several share one.
    """
    if value.is_tensor_sequence():
        return _parts(value)
    if not value.is_tensor():
        raise NoValues(
            f"outputs of type {value.data_type()} cannot be compared", parameter="check", remedy="cut the model before"
        )
    return [unpacked(tensor_contents(value))]


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
