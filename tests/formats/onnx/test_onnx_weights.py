"""Weights are stepped over, never read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from mtpp.formats.onnx.wire import LARGE_BYTES, WireError, without_large_payloads

node = helper.make_node


def _weighty(reading) -> onnx.ModelProto:
    """Return a model with large payloads everywhere: initializer, Constant, branch, function, typed fields."""
    big = np.ones((200, 200), np.float32)
    typed = helper.make_tensor("typed", TensorProto.FLOAT, [40_000], np.ones(40_000).tolist())
    branch = helper.make_graph(
        [node("Add", ["h", "inner"], ["o"])],
        "b",
        [],
        [onnx.ValueInfoProto(name="o")],
        [onnx.numpy_helper.from_array(big, "inner")],
    )
    function = helper.make_function(
        "local",
        "Shift",
        ["a"],
        ["b"],
        [node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(big, "v")), node("Add", ["a", "c"], ["b"])],
        [helper.make_opsetid("", 20)],
    )
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(big, "v")),
        node("Add", ["h", "k"], ["h2"]),
        node("If", ["c"], ["h3"], then_branch=branch, else_branch=branch),
        node("Shift", ["h3"], ["h4"], domain="local"),
        node("Reshape", ["h4", "shape"], ["flat"]),
        node("Add", ["flat", "typed"], ["y"]),
    ]
    model = reading.model(
        nodes,
        {"x": [200, 200], "c": (TensorProto.BOOL, [])},
        ["y"],
        constants={"w": big, "shape": np.array([-1])},
        domains=["local"],
        functions=[function],
    )
    model.graph.initializer.append(typed)
    return model


def test_large_payloads_are_cut_out_and_small_ones_kept(reading):
    """What is left parses, knows every shape, and holds the contents of the shape operand."""
    data = _weighty(reading).SerializeToString()
    small = without_large_payloads(data)
    assert len(data) > 5 * 160_000
    assert len(small) < 4_000
    model = onnx.ModelProto.FromString(small)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    assert onnx.numpy_helper.to_array(tensors["shape"]).tolist() == [-1]
    assert list(tensors["w"].dims) == [200, 200]
    assert tensors["w"].data_location == TensorProto.EXTERNAL
    assert not tensors["typed"].float_data


def test_a_model_costs_the_same_with_and_without_its_weights(reading, monkeypatch):
    """The graph read from the emptied model is the graph read from the whole one."""
    data = _weighty(reading).SerializeToString()
    emptied, whole = reading.read(without_large_payloads(data)), reading.read(data)
    monkeypatch.setattr("mtpp.formats.onnx.loading.STRIP_ABOVE_BYTES", 0)
    stripped = reading.read(data)
    for graph in (whole, stripped):
        assert graph.op_names == emptied.op_names
        assert graph.work == emptied.work
        assert graph.param_bytes.tolist() == emptied.param_bytes.tolist()
        assert graph.metadata == emptied.metadata


def test_more_than_two_gigabytes_of_weights_can_be_embedded(reading):
    """No protobuf library parses such a file; stepping over its payload does, without touching it."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**20, 600])
    header = tensor.SerializeToString()
    raw_bytes = 4 * 600 * 2**20

    def field(number: int, length: int) -> bytes:
        return _varint(number << 3 | 2) + _varint(length)

    payload = field(9, raw_bytes)
    model = reading.model([node("MatMul", ["x", "w"], ["y"])], {"x": [1, 2**20]}, ["y"])
    rest = model.graph.SerializeToString()
    model.ClearField("graph")
    tensor_length = len(header) + len(payload) + raw_bytes
    tensor_field = field(5, tensor_length)
    graph_field = field(7, len(rest) + len(tensor_field) + tensor_length)
    front = model.SerializeToString() + graph_field + rest + tensor_field + header + payload
    sparse = _Zeros(front, raw_bytes)
    small = b"".join(sparse.stripped())
    graph = reading.read(small)
    assert graph.param_bytes.tolist() == [raw_bytes]
    assert graph.metadata["macs"] == 600 * 2**20


class _Zeros:
    """A buffer that begins with *front* and goes on with zeros that are never allocated (mapped, not written)."""

    def __init__(self, front: bytes, zeros: int) -> None:
        import mmap

        self.map = mmap.mmap(-1, len(front) + zeros)
        self.map[: len(front)] = front

    def stripped(self) -> list[bytes]:
        with memoryview(self.map) as view:
            return [without_large_payloads(view)]


def _varint(value: int) -> bytes:
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


@given(st.binary(max_size=60))
def test_arbitrary_bytes_never_break_the_stripper(data):
    """It returns them unchanged (nothing in them is large) or says where they break off."""
    try:
        offset = len(data) if without_large_payloads(data) == data else None
    except WireError as error:
        offset = error.offset
    assert offset is not None
    assert 0 <= offset <= len(data)


@pytest.mark.parametrize("size", [LARGE_BYTES - 64, LARGE_BYTES + 1])
def test_the_limit_decides_what_is_kept(reading, size):
    """A payload below it stays."""
    model = reading.model([node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"], constants={"w": np.zeros(size, np.int8)})
    kept = onnx.ModelProto.FromString(without_large_payloads(model.SerializeToString())).graph.initializer[0]
    assert len(kept.raw_data) == (size if size <= LARGE_BYTES else 0)
