"""Attributes of local functions, held against ONNX Runtime, which knows defaults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper
from onnx_text import built, function_of
from random_onnx_models import random_labels, read_model, split_into
from stage_equality import assert_equal, random_feeds, run_onnx, run_onnx_stages

from mtpp.errors import InputError
from mtpp.formats.onnx.local_functions.attributes import bind_attributes
from mtpp.formats.onnx.local_functions.inline import inline_functions

HEADER = '<ir_version: 10, opset_import: ["": 18, "loc": 1]>'
FUNCTIONS = """
<domain: "loc", opset_import: ["": 18, "loc": 1]>
Outer <slope, axes, shift: tensor = float[1] {0.25}>(a) => (b) {
    t = loc.Inner <slope: float = @slope, axes: ints = @axes>(a)
    c = Constant <value: tensor = @shift>()
    u = Add(t, c)
    s = ReduceSum <keepdims: int = 0>(u)
    z = Constant <value_float: float = 0.0>()
    positive = Greater(s, z)
    b = If (positive) <
        then_branch = then () => (d) { d = loc.Inner <axes: ints = @axes>(u) },
        else_branch = otherwise () => (e) { e = LeakyRelu <alpha: float = @slope>(u) }
    >
}
<domain: "loc", opset_import: ["": 18]>
Inner <slope: float = 0.5, axes: ints = [0, 1]>(a) => (b) {
    l = LeakyRelu <alpha: float = @slope>(a)
    b = Transpose <perm: ints = @axes>(l)
}
"""


def _calls(seed: int) -> onnx.ModelProto:
    """Return a chain of ops and calls on a 4 × 4 tensor, with attributes at random."""
    random = np.random.default_rng(seed)
    lines, last = [], "x"
    for i in range(6):
        kind = random.choice(["Tanh", "loc.Inner", "loc.Outer"])
        given = []
        if kind != "Tanh" and random.random() < 0.5:
            given.append(f"slope: float = {random.choice([0.1, 0.2])}")
        if kind != "Tanh" and random.random() < 0.5:
            given.append("axes: ints = " + random.choice(["[1, 0]", "[0, 1]"]))
        if kind == "loc.Outer" and random.random() < 0.5:
            given.append("shift: tensor = float[1] {-0.75}")
        lines.append(f"t{i} = {kind} <{', '.join(given)}>({last})" if given else f"t{i} = {kind}({last})")
        last = f"t{i}"
    graph = f"g (float[4, 4] x) => (float[4, 4] y) {{ {' '.join(lines)} y = Neg({last}) }}"
    return onnx.parser.parse_model(HEADER + graph + FUNCTIONS)


@pytest.mark.parametrize("seed", range(8))
def test_calls_at_random(seed: int, tmp_path: Path) -> None:
    """Nested calls with given, handed on, default and absent attributes give what ONNX Runtime makes of the whole."""
    pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    reading = read_model(_calls(seed), path)
    for k in (1, 3):
        folder = tmp_path / f"k{k}"
        split_into(folder, path, reading, random_labels(reading.graph, k, seed))
        for draw in range(3):
            feeds = random_feeds(path, draw)
            assert_equal(run_onnx_stages(folder, feeds), run_onnx(path, feeds))


def _attributes(model: onnx.ModelProto) -> list[dict[str, object]]:
    nodes = inline_functions(model, "model.onnx").graph.node
    return [{a.name: helper.get_attribute_value(a) for a in node.attribute} for node in nodes]


def test_a_callee_takes_its_own_default_where_the_caller_has_none() -> None:
    """A reference to an attribute that the caller was not given is absent, so that the callee's default holds."""
    text = """
    g (float[2] x) => (float[2] z) { y = loc.F(x) z = loc.F <al: float = 0.75>(y) }
    <domain: "loc", opset_import: ["": 18, "loc": 1]> F <al>(a) => (b) { b = loc.G <be: float = @al>(a) }
    <domain: "loc", opset_import: ["": 18]> G <be: float = 0.25>(a) => (b) { b = LeakyRelu <alpha: float = @be>(a) }
    """
    assert _attributes(onnx.parser.parse_model(HEADER + text)) == [{"alpha": 0.25}, {"alpha": 0.75}]


def test_overloads_have_defaults_of_their_own() -> None:
    """Functions that share a name are told apart by their overload, also where one calls the other."""
    leaky = "LeakyRelu <alpha: float = @steep>"
    functions = [
        function_of(f"F <steep: float = 0.5>(a) => (b) {{ b = {leaky}(a) }}"),
        function_of(f"F <steep: float = 0.25>(a) => (b) {{ c = local.F:one(a) b = {leaky}(c) }}"),
    ]
    functions[0].overload, functions[1].overload = "one", "two"
    more = {"domains": ["local"], "functions": functions, "opset": 20, "ir_version": 10}
    model = built("y = local.F:two(x)", {"x": [2]}, {"y": [2]}, **more)
    assert _attributes(model) == [{"alpha": 0.5}, {"alpha": 0.25}]


def test_functions_without_attributes_are_left_alone() -> None:
    """A model whose functions take no attributes is not copied."""
    text = """
    g (float[2] x) => (float[2] z) { z = loc.F(x) }
    <domain: "loc", opset_import: ["": 18]> F (a) => (b) { b = Neg(a) }
    """
    model = onnx.parser.parse_model(HEADER + text)
    assert bind_attributes(model, "model.onnx") is model


def test_a_graph_that_captures_cannot_be_an_attribute_of_a_call() -> None:
    """A body that a call hands on and that reads tensors around the call is refused: its names mean nothing inside."""
    text = """
    g (float[2] x, bool c) => (float[2] z) { z = loc.F <body = inside () => (o) { o = Neg(x) }>(c) }
    <domain: "loc", opset_import: ["": 18]> F <body>(c) => (b) {
        b = If (c) <then_branch: graph = @body, else_branch: graph = @body>
    }
    """
    with pytest.raises(InputError, match="hands to a function as 'body' reads 'x'"):
        inline_functions(onnx.parser.parse_model(HEADER + text), "model.onnx")
