"""Parameters: everything that depends on no input, folded into the ops that read it; stepped over, never read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_text import function_of, nodes_of

from mtpp.datasets import sample_path
from mtpp.formats.onnx import read_onnx
from mtpp.formats.onnx.wire import LARGE_BYTES, WireError, without_large_payloads
from mtpp.inference.weights import Weight
from mtpp.machine.presets import load_device

node = helper.make_node


def test_chains_of_constants_fold(reading):
    """Constant, ConstantOfShape, Cast, Transpose and Identity on weights alone leave no op behind."""
    nodes = [
        node("ConstantOfShape", ["dims"], ["filled"]),
        node("Transpose", ["filled"], ["turned"]),
        node("Identity", ["turned"], ["same"]),
        node("Constant", [], ["c"], value=helper.make_tensor("v", TensorProto.FLOAT, [4], [1.0] * 4)),
        node("Cast", ["W"], ["half"], to=TensorProto.FLOAT16),
        node("Cast", ["half"], ["back"], to=TensorProto.FLOAT),
        node("MatMul", ["x", "same"], ["a"], name="product"),
        node("Add", ["a", "c"], ["b"], name="sum"),
        node("Mul", ["b", "back"], ["y"], name="scale"),
    ]
    graph = reading.graph(nodes, {"x": [2, 8]}, ["y"], {"W": [4]}, {"dims": np.array([4, 8])})
    assert graph.op_names == ("product", "sum", "scale")
    assert graph.param_bytes.tolist() == [4 * 32, 16, 16]
    assert graph.metadata["folded_constants"] == 6
    assert graph.metadata["parameter_bytes"] == 160


def test_a_shared_parameter_is_one_weight(reading):
    """Also when one reader sees it through a view, as exporters write tied weights."""
    nodes = nodes_of(
        "[first] a = MatMul(x, W) tied = Identity(W) view = Reshape(tied, shape) [second] y = MatMul(a, view)"
    )
    graph = reading.graph(nodes, {"x": [2, 8]}, ["y"], {"W": [8, 8]}, {"shape": np.array([8, 8])})
    assert graph.param_bytes.tolist() == [0, 0]
    assert graph.weights.rows(graph.op_names) == [Weight("W", 256, ["first", "second"])]
    assert graph.metadata["parameter_bytes"] == graph.all_bytes == 256
    assert graph.metadata["shared_parameters"] == [{"name": "W", "bytes": 256, "ops": ["first", "second"]}]


def test_a_parameter_read_twice_by_one_op_counts_once(reading):
    """x·W + W in one op reads W once."""
    graph = reading.graph("y = Gemm(x, W, W)", {"x": [4, 4]}, ["y"], {"W": [4, 4]})
    assert graph.param_bytes.tolist() == [64]
    assert graph.metadata["shared_parameters"] == []


def test_initializers_listed_as_inputs_are_parameters(reading):
    """As IR versions below 4 demand."""
    model = reading.model("y = MatMul(x, W)", {"x": [2, 8], "W": [8, 8]}, ["y"], {"W": [8, 8]}, ir_version=3, opset=8)
    graph = reading.read(model)
    assert graph.param_bytes.tolist() == [256]
    assert [port["name"] for port in graph.metadata["inputs"]] == ["x"]


def test_a_sparse_initializer_counts_what_is_stored(reading):
    """Values and indices, not the dense shape; the op sees the dense shape."""
    model = reading.model("y = MatMul(x, W)", {"x": [2, 100]}, ["y"])
    values = helper.make_tensor("W", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [3], [0, 50, 99])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [100, 10]))
    graph = reading.read(model)
    assert graph.param_bytes.tolist() == [3 * 4 + 3 * 8]
    assert graph.metadata["macs"] == 2000


def test_the_shape_of_an_activation_is_a_constant(reading):
    """Nothing flows along Shape and Size: the tensors they look at have one consumer only."""
    nodes = nodes_of(
        f"[relu] h = Relu(x) shape = Shape(h) count = Size(h) n = Cast <to = {TensorProto.FLOAT}>(count) "
        "zeros = ConstantOfShape(shape) [add] a = Add(h, zeros) [divide] y = Div(a, n)"
    )
    graph = reading.graph(nodes, {"x": [2, 8]}, ["y"])
    assert graph.op_names == ("relu", "add", "divide")
    assert graph.param_bytes.tolist() == [0, 64, 8]
    assert graph.tensor_consumers(0).tolist() == [1]


def test_random_sources_are_ops(reading):
    """What draws random numbers depends on no input and is no parameter all the same."""
    nodes = nodes_of(
        "[noise] noise = RandomNormal <shape = [2, 8]>() [scale] scaled = Mul(noise, S) [add] y = Add(x, scaled)"
    )
    graph = reading.graph(nodes, {"x": [2, 8]}, ["y"], {"S": [8]})
    assert graph.op_names == ("noise", "scale", "add")
    assert graph.param_bytes.tolist() == [0, 32, 0]


def test_optional_operands_that_are_left_out_are_skipped(reading):
    """Empty names are neither inputs nor outputs."""
    nodes = [node("Clip", ["x", "", "HI"], ["c"]), node("LSTM", ["c", "W", "R", "", "", "h"], ["", "y"], hidden_size=4)]
    graph = reading.graph(nodes, {"x": [7, 2, 3], "h": [1, 2, 4]}, ["y"], {"HI": [], "W": [1, 16, 3], "R": [1, 16, 4]})
    assert graph.tensor_names == ("c", "y")
    assert graph.param_bytes.tolist() == [4, 4 * (48 + 64)]


def test_every_output_is_a_tensor_of_its_own(reading):
    """A Split has as many tensors as parts, each with its size and its readers; unread ones stay."""
    nodes = nodes_of("[split] a, b, c = Split <axis = 1>(x, parts) [ra] ra = Relu(a) [add] y = Add(a, b)")
    graph = reading.graph(nodes, {"x": [2, 6]}, ["ra", "y"], constants={"parts": np.array([2, 2, 2])})
    tensors = {
        name: (int(graph.tensor_bytes[t]), [graph.op_names[v] for v in graph.tensor_consumers(t)])
        for t, name in enumerate(graph.tensor_names)
    }
    assert tensors == {"a": (16, ["ra", "add"]), "b": (16, ["add"]), "c": (16, []), "ra": (16, []), "y": (16, [])}


def test_a_computed_configuration_is_an_edge(reading):
    """Where k or a shape is computed from data, the op that computes it must come first."""
    nodes = nodes_of(
        f"[max] m = ReduceMax <keepdims = 0>(x) [cast] i = Cast <to = {TensorProto.INT64}>(m) "
        "[k] k = Unsqueeze(i, zero) [top] v, w = TopK(x, k)"
    )
    graph = reading.graph(nodes, {"x": [16]}, ["v"], constants={"zero": np.array([0])}, dims={"v:0": 4, "w:0": 4})
    assert graph.tensor_consumers(graph.tensor_names.index("k")).tolist() == [3]


def test_names_are_unique_and_stable(reading):
    """Empty names are made of kind and position, taken ones get a number; a real name is never changed."""
    nodes = nodes_of("a = Relu(x) [same] b = Relu(a) [same] c = Relu(b) [Relu_0] d = Relu(c) y = acme.Mystery(d)")
    model = reading.model(nodes, {"x": [8]}, ["y"], domains=["acme"], value_info={"y": [8]})
    names = reading.read(model).op_names
    assert names == ("Relu_0_2", "same", "same_2", "Relu_0", "acme:Mystery_4")
    assert reading.read(model).op_names == names


def test_reading_twice_gives_the_same_graph(reading, light_model):
    """Nothing depends on hashes, time or what was read before."""
    first, second = (reading.read(light_model("squeezenet")) for _ in range(2))
    assert (first.op_names, first.work, first.tensor_names) == (second.op_names, second.work, second.tensor_names)
    assert first.metadata == second.metadata


def test_metadata_are_plain_json(reading, light_model):
    """They survive a round trip and have the keys that other commands read."""
    import json

    metadata = reading.read(light_model("squeezenet")).metadata
    assert json.loads(json.dumps(metadata)) == metadata
    assert list(metadata) == [
        "format", "producer", "ir_version", "opsets", "inputs", "outputs", "dims", "symbolic_dims", "macs", "flops",
        "parameter_bytes", "folded_constants", "shared_parameters", "not_modelled", "control_flow",
    ]  # fmt: skip
    assert metadata["format"] == "onnx"


def test_a_tied_embedding_is_one_parameter() -> None:
    """GPT-2's token embedding, transposed for the output layer, is stored once and listed as shared."""
    path = sample_path("gpt2")
    dims = {"batch": 1, "sequence": 1024}
    graph = read_onnx(path, path.read_bytes(), source="gpt2", dims=dims, system=load_device())
    constants = 8 * 1024 + 3 * 4  # the causal mask is made of positions and two numbers, and the scale of attention
    assert graph.metadata["parameter_bytes"] == 4 * 124_439_808 + constants
    sizes = {entry["name"]: entry["bytes"] for entry in graph.metadata["shared_parameters"]}
    assert 4 * 50_257 * 768 in sizes.values()


def _weighty(reading) -> onnx.ModelProto:
    """Return a model with large payloads everywhere: initializer, Constant, branch, function, typed fields."""
    big = np.ones((200, 200), np.float32)
    typed = helper.make_tensor("typed", TensorProto.FLOAT, [40_000], np.ones(40_000).tolist())
    (stored,) = nodes_of("c = Constant <value = float[1] {0}>()")
    stored.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(big, "v"))
    function = function_of("Shift (a) => (b) { b = Add(a, c) }")
    function.node.insert(0, stored)
    body = "b () => (o) { o = Add(h, inner) }"
    nodes = nodes_of(
        "h = MatMul(x, w) k = Constant <value = float[1] {0}>() h2 = Add(h, k) "
        f"h3 = If(c) <then_branch = {body}, else_branch = {body}> "
        "h4 = local.Shift(h3) flat = Reshape(h4, shape) y = Add(flat, typed)"
    )
    nodes[1].attribute[0].CopyFrom(stored.attribute[0])
    for branch in nodes[3].attribute:
        branch.g.initializer.append(onnx.numpy_helper.from_array(big, "inner"))
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
    model = reading.model("y = MatMul(x, w)", {"x": [1, 2**20]}, ["y"])
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
    model = reading.model("y = Relu(x)", {"x": [1]}, ["y"], constants={"w": np.zeros(size, np.int8)})
    kept = onnx.ModelProto.FromString(without_large_payloads(model.SerializeToString())).graph.initializer[0]
    assert len(kept.raw_data) == (size if size <= LARGE_BYTES else 0)
