"""Which modules ops came from: three kinds of evidence, and what looks like evidence and is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mtpp.formats.onnx.module_names import module_names
from mtpp.formats.onnx.reader import read_with_nodes
from mtpp.machine.presets import load_device


def _modules(model: onnx.ModelProto) -> dict[str, str]:
    data = model.SerializeToString()
    return module_names(read_with_nodes(None, data, source="x", system=load_device(), name="x"))


def _chain(reading: Any, names: list[str], properties: list[dict[str, str]] | None = None) -> onnx.ModelProto:
    """Return Relus one after the other with these names and properties."""
    nodes = []
    for i, name in enumerate(names):
        node = helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name=name)
        for key, value in (properties[i] if properties else {}).items():
            node.metadata_props.add(key=key, value=value)
        nodes.append(node)
    model: onnx.ModelProto = reading.model(nodes, {"t0": [1, 4]}, [f"t{len(names)}"])
    return model


def test_metadata_of_the_dynamo_exporter(reading: Any) -> None:
    """The module before the node's own name counts; a node that says nothing is not in the answer."""
    scopes = "pkg.torch.onnx.name_scopes"
    properties = [
        {scopes: "['', 'layers.0', 'layers.0.mlp', 'relu']"},
        {scopes: "['', 'relu_1']"},
        {"namespace": "m.Net: m.Net/net: torch.nn.Sequential/net.0: torch.nn.ReLU/relu: aten.relu.default"},
        {},
    ]
    assert _modules(_chain(reading, list("abcd"), properties)) == {"a": "layers.0.mlp", "b": "", "c": "net.0"}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "[",
        "['']",
        "[1, 2, 3]",
        "{}",
        "__import__('os').abort()",
        "(" * 9000,
        "['', 'a b\\n', 'x']",
        "['', '../x', 'y']",
    ],
)
def test_metadata_that_say_nothing(reading: Any, value: str) -> None:
    """Nothing of it is run, and what is no path is no module."""
    assert _modules(_chain(reading, ["a"], [{"pkg.torch.onnx.name_scopes": value}])) == {}


def test_names_of_the_torchscript_exporter(reading: Any) -> None:
    """Children of a Sequential repeat its name, and a second call of a module has a number."""
    names = [
        "/conv1/Conv",
        "/layer1/layer1.0/conv1/Conv",
        "/layer1/layer1.0/relu/Relu",
        "/layer1/layer1.0/relu_1/Relu",
        "/layer1/layer1.0/downsample/downsample.1/Relu",
        "/model.22/cv2.0/cv2.0.0/conv/Conv",
        "/encoder/layer.3/attention/self/query/MatMul",
        "/Add",
    ]
    assert list(_modules(_chain(reading, names)).values()) == [
        "conv1",
        "layer1.0.conv1",
        "layer1.0.relu",
        "layer1.0.relu",
        "layer1.0.downsample.1",
        "model.22.cv2.0.0.conv",
        "encoder.layer.3.attention.self.query",
        "",
    ]


def test_names_of_others_are_none(reading: Any) -> None:
    """Names with slashes inside, or without any, say nothing of modules."""
    assert _modules(_chain(reading, ["Relu_0", "model/conv1/Relu", "node_relu", "conv1/BiasAdd"])) == {}


def test_names_of_the_samples(reading: Any) -> None:
    """A path, a slash, and the type of the operator, with a number where a module has several."""
    names = ["h.0.mlp/Relu", "h.0.mlp/Relu_2", "Relu"]
    assert _modules(_chain(reading, names)) == {"h.0.mlp/Relu": "h.0.mlp", "h.0.mlp/Relu_2": "h.0.mlp"}


def test_names_of_weights(reading: Any) -> None:
    """A weight tells the one op that reads it, through a transposition too; one that two ops read tells nothing."""
    nodes = [
        helper.make_node("MatMul", ["x", "layers.0.up.weight"], ["a"], name="up"),
        helper.make_node("Transpose", ["layers.0.down.weight"], ["turned"], name="turn"),
        helper.make_node("MatMul", ["a", "turned"], ["b"], name="down"),
        helper.make_node("Add", ["b", "layers.0.norm.bias"], ["c"], name="shift"),
        helper.make_node("Relu", ["c"], ["d"], name="relu"),
        helper.make_node("Add", ["d", "layers.0.norm.bias"], ["e"], name="shift again"),
        helper.make_node("LayerNormalization", ["e", "layers.1.norm.weight", "layers.1.norm.bias"], ["f"], name="norm"),
        helper.make_node("Mul", ["f", "val_7"], ["g"], name="scale"),
    ]
    square, vector = [4, 4], [4]
    parameters = {
        "layers.0.up.weight": square,
        "layers.0.down.weight": square,
        "layers.0.norm.bias": vector,
        "layers.1.norm.weight": vector,
        "layers.1.norm.bias": vector,
    }
    model = reading.model(nodes, {"x": [2, 4]}, ["g"], parameters, {"val_7": np.float32(2)})
    assert _modules(model) == {"up": "layers.0.up", "down": "layers.0.down", "norm": "layers.1.norm"}
