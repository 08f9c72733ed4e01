"""Stripping a model: large weights become external, small tensors stay, names and traces as described."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper
from onnx_text import built, typed

from mtpp.datasets.weightless import WEIGHTS_LOCATION, name_after_modules, remove_traces, remove_weights


def noted(node: onnx.NodeProto, scopes: str) -> onnx.NodeProto:
    """Return the node with the metadata that PyTorch's exporter writes."""
    for key, held in (("pkg.torch.onnx.name_scopes", scopes), ("pkg.torch.onnx.stack_trace", "File x.py, line 1")):
        entry = node.metadata_props.add()
        entry.key, entry.value = key, held
    return node


def small_model() -> onnx.ModelProto:
    """Return two linear layers with a Relu, a Split and an If between them, full of traces."""
    weights = {
        "first.weight": np.ones((8, 8), np.float32), "folded": np.ones((8, 8), np.float64), "sizes": np.array([4, 4]),
    }  # fmt: skip
    branch = onnx.parser.parse_graph("branch () => (float c) { c = Relu(a) }")
    branch.doc_string = "inside"
    branch.output[0].CopyFrom(typed("c", None))
    noted(branch.node[0], "['', 'inner', 'relu']")
    nodes = [
        noted(helper.make_node("MatMul", ["x", "first.weight"], ["a"]), "['', 'norm', 'matmul']"),
        noted(helper.make_node("Relu", ["a"], ["b"], doc_string="why"), "['', 'block', 'relu']"),
        helper.make_node("Split", ["b", "sizes"], ["b1", "b2"], name="node_Split_7"),
        noted(helper.make_node("Add", ["b1", "b2"], ["s"]), "['', 'add']"),
        noted(helper.make_node("Relu", ["s"], ["t"]), "['', 'block', 'relu_1']"),
        noted(helper.make_node("If", ["flag"], ["y"], then_branch=branch, else_branch=branch), "['', '_hook', 'if']"),
    ]
    model = built(nodes, {"x": ["n", 8]}, {"y": None}, weights)
    model.doc_string, model.graph.input[0].doc_string = "model", "input"
    return model


def test_large_weights_become_external_and_small_ones_stay() -> None:
    """Offsets follow one another, shapes and types are kept, values are gone; a list of sizes is left alone."""
    model = small_model()
    remove_weights(model)
    first, folded, sizes = model.graph.initializer
    for tensor, data_type, offset, length in (
        (first, TensorProto.FLOAT, 0, 256),
        (folded, TensorProto.DOUBLE, 256, 512),
    ):
        assert (list(tensor.dims), tensor.data_type, tensor.data_location) == ([8, 8], data_type, TensorProto.EXTERNAL)
        assert {entry.key: entry.value for entry in tensor.external_data} == {
            "location": WEIGHTS_LOCATION,
            "offset": str(offset),
            "length": str(length),
        }
        assert not tensor.HasField("raw_data")
    assert numpy_helper.to_array(sizes).tolist() == [4, 4]


def test_nodes_are_called_after_their_modules() -> None:
    """A weight's owner wins, then the noted module, then the node before; repeats are numbered, hooks left out."""
    model = small_model()
    name_after_modules(model)
    names = [node.name for node in model.graph.node]
    assert names == ["first/MatMul", "block/Relu", "block/Split", "Add", "block/Relu_2", "If"]


def test_no_trace_is_left_at_any_level() -> None:
    """Metadata and doc strings are cleared in the model, its graph, values, nodes and the graphs inside nodes."""
    model = small_model()
    remove_traces(model)
    content = model.SerializeToString()
    for trace in (b"pkg.", b"x.py", b"why", b"inside", b"doc", b"input"):
        assert trace not in content
    assert [node.op_type for node in model.graph.node] == ["MatMul", "Relu", "Split", "Add", "Relu", "If"]
    assert model.graph.node[5].attribute[0].g.node[0].op_type == "Relu"
