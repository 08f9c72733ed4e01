"""What is a parameter: everything that depends on no input, folded into the ops that read it."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from mtpp.datasets import sample_path
from mtpp.formats.onnx import read_onnx
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


def test_a_shared_parameter_counts_in_full_at_each_reader_and_once_in_the_sum(reading):
    """Also when one reader sees it through a view, as exporters write tied weights."""
    nodes = [
        node("MatMul", ["x", "W"], ["a"], name="first"),
        node("Identity", ["W"], ["tied"]),
        node("Reshape", ["tied", "shape"], ["view"]),
        node("MatMul", ["a", "view"], ["y"], name="second"),
    ]
    graph = reading.graph(nodes, {"x": [2, 8]}, ["y"], {"W": [8, 8]}, {"shape": np.array([8, 8])})
    assert graph.param_bytes.tolist() == [256, 256]
    assert graph.metadata["parameter_bytes"] == 256
    assert graph.metadata["shared_parameters"] == [{"name": "W", "bytes": 256, "ops": ["first", "second"]}]


def test_a_parameter_read_twice_by_one_op_counts_once(reading):
    """x·W + W in one op reads W once."""
    graph = reading.graph([node("Gemm", ["x", "W", "W"], ["y"])], {"x": [4, 4]}, ["y"], {"W": [4, 4]})
    assert graph.param_bytes.tolist() == [64]
    assert graph.metadata["shared_parameters"] == []


def test_initializers_listed_as_inputs_are_parameters(reading):
    """As IR versions below 4 demand."""
    model = reading.model(
        [node("MatMul", ["x", "W"], ["y"])], {"x": [2, 8], "W": [8, 8]}, ["y"], {"W": [8, 8]}, ir_version=3, opset=8
    )
    graph = reading.read(model)
    assert graph.param_bytes.tolist() == [256]
    assert [port["name"] for port in graph.metadata["inputs"]] == ["x"]


def test_a_sparse_initializer_counts_what_is_stored(reading):
    """Values and indices, not the dense shape; the op sees the dense shape."""
    model = reading.model([node("MatMul", ["x", "W"], ["y"])], {"x": [2, 100]}, ["y"])
    values = helper.make_tensor("W", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [3], [0, 50, 99])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [100, 10]))
    graph = reading.read(model)
    assert graph.param_bytes.tolist() == [3 * 4 + 3 * 8]
    assert graph.metadata["macs"] == 2000


def test_the_shape_of_an_activation_is_a_constant(reading):
    """Nothing flows along Shape and Size: the tensors they look at have one consumer only."""
    nodes = [
        node("Relu", ["x"], ["h"], name="relu"),
        node("Shape", ["h"], ["shape"]),
        node("Size", ["h"], ["count"]),
        node("Cast", ["count"], ["n"], to=TensorProto.FLOAT),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Add", ["h", "zeros"], ["a"], name="add"),
        node("Div", ["a", "n"], ["y"], name="divide"),
    ]
    graph = reading.graph(nodes, {"x": [2, 8]}, ["y"])
    assert graph.op_names == ("relu", "add", "divide")
    assert graph.param_bytes.tolist() == [0, 64, 4]
    assert graph.tensor_consumers(0).tolist() == [1]


def test_random_sources_are_ops(reading):
    """What draws random numbers depends on no input and is no parameter all the same."""
    nodes = [
        node("RandomNormal", [], ["noise"], shape=[2, 8], name="noise"),
        node("Mul", ["noise", "S"], ["scaled"], name="scale"),
        node("Add", ["x", "scaled"], ["y"], name="add"),
    ]
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
    nodes = [
        node("Split", ["x", "parts"], ["a", "b", "c"], axis=1, name="split"),
        node("Relu", ["a"], ["ra"], name="ra"),
        node("Add", ["a", "b"], ["y"], name="add"),
    ]
    graph = reading.graph(nodes, {"x": [2, 6]}, ["ra", "y"], constants={"parts": np.array([2, 2, 2])})
    tensors = {
        name: (int(graph.tensor_bytes[t]), [graph.op_names[v] for v in graph.tensor_consumers(t)])
        for t, name in enumerate(graph.tensor_names)
    }
    assert tensors == {"a": (16, ["ra", "add"]), "b": (16, ["add"]), "c": (16, []), "ra": (16, []), "y": (16, [])}


def test_a_computed_configuration_is_an_edge(reading):
    """Where k or a shape is computed from data, the op that computes it must come first."""
    nodes = [
        node("ReduceMax", ["x"], ["m"], keepdims=0, name="max"),
        node("Cast", ["m"], ["i"], to=TensorProto.INT64, name="cast"),
        node("Unsqueeze", ["i", "zero"], ["k"], name="k"),
        node("TopK", ["x", "k"], ["v", "w"], name="top"),
    ]
    graph = reading.graph(nodes, {"x": [16]}, ["v"], constants={"zero": np.array([0])}, dims={"v:0": 4, "w:0": 4})
    assert graph.tensor_consumers(graph.tensor_names.index("k")).tolist() == [3]


def test_names_are_unique_and_stable(reading):
    """Empty names are made of kind and position, taken ones get a number; a real name is never changed."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"], name="same"),
        node("Relu", ["b"], ["c"], name="same"),
        node("Relu", ["c"], ["d"], name="Relu_0"),
        node("Mystery", ["d"], ["y"], domain="acme"),
    ]
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
    dims = {"batch": 1, "sequence": 1024}  # shorter ones read only part of the positions
    graph = read_onnx(path, path.read_bytes(), source="gpt2", dims=dims, system=load_device())
    constants = 4 * 1024 * 1024 + 4  # the causal mask and the scale of attention
    assert graph.metadata["parameter_bytes"] == 4 * 124_439_808 + constants
    sizes = {entry["name"]: entry["bytes"] for entry in graph.metadata["shared_parameters"]}
    assert 4 * 50_257 * 768 in sizes.values()
