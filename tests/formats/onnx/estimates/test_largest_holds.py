"""Largest sizes where ranges of numbers meet the corners of operators, and the bases of sizes among the assumptions."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from sizes_from_data import largest_bytes

import mtpp
from mtpp.errors import InputError
from mtpp.formats.onnx.reader import read_with_nodes
from mtpp.machine.presets import load_device

pytest.importorskip("onnxruntime")

STORED = """int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64[1] first = {0},
    int64[1] last = {1}, int64[1] minus = {-1}, int64[1] far = {9223372036854775807}, int64[1] low = {-10},
    int64[1] five = {5}, int64[1] ten = {10}, int64[2] rest = {1, -1}, int64[4] lengths = {4, 4, 4, 4}, bool yes = {1},
    float nothing = {0}, float unit = {1}, float half = {0.5}, float part = {0.7}, float tenth = {0.1},
    float[4] fives = {5, 5, 5, 5}, float16 seven = {7}, uint8 quarter = {2}, uint8 point = {100},
    uint8[4,1] column = {90, 90, 90, 90}, float[5] v = {1, 2, 3, 4, 5}"""
COUNT = "i = Cast<to = 7>(m) n = ReduceSum<keepdims = 0>(i) k = Reshape(n, last)"
CASES = {
    "back from any place to the largest integer": f"{COUNT} y = Slice(v, k, far, first, minus)",
    "back from before the first element": f"""{COUNT} s = Sub(low, k) w = Slice(v, s, low, first, minus)
        y = Concat<axis = 0>(w, w)""",
    "a part in float32": """u = Tile(m, five) b = NonZero(u) f = Slice(b, first, ten, last) s = Shape(f)
        c = Gather(s, one) r = Cast<to = 1>(c) p = Mul(r, part) q = Floor(p) t = Cast<to = 7>(q)
        y = Range(zero, t, one)""",
    "a quotient in float32": f"""{COUNT} r = Cast<to = 1>(n) p = Div(r, tenth) q = Floor(p) t = Cast<to = 7>(q)
        y = Range(zero, t, one)""",
    "numbers up to a limit that is not whole": """s = ReduceSum<keepdims = 0>(x) g = Sigmoid(s) l = Add(g, half)
        a = Range(nothing, l, unit) e = ReduceMax<keepdims = 0>(a) b = Cast<to = 7>(e) c = Add(b, one)
        y = Range(zero, c, one)""",
    "sum of fewer": """j = NonZero(m) h = Add(j, three) t = ReduceSum<keepdims = 0>(h) a = Neg(t) b = Add(a, two)
        c = Add(b, three) y = Range(zero, c, one)""",
    "sum of rows that are none": """f = Compress<axis = 0>(lengths, m) t = ReduceSum<keepdims = 0>(f)
        a = Sub(three, t) y = Range(zero, a, one)""",
    "product of rows that are none": """f = Compress<axis = 0>(fives, m) t = MatMul(f, f) a = Cast<to = 7>(t)
        c = Sub(three, a) y = Range(zero, c, one)""",
    "eight bits around a zero point": """b = Cast<to = 2>(m) o = Reshape(b, rest)
        p = MatMulInteger(o, column, point, point) q = ReduceMax<keepdims = 0>(p) c = Cast<to = 7>(q)
        y = Range(zero, c, one)""",
    "a bound of half precision": """s = ReduceSum<keepdims = 0>(x) g = Sigmoid(s) h = Cast<to = 10>(g)
        c = Clip(h, seven) t = Cast<to = 7>(c) y = Range(zero, t, one)""",
    "sum along axes that a run computes": f"""{COUNT} j = Mul(k, first) t = ReduceSum<keepdims = 1>(i, j)
        w = ReduceMax<keepdims = 0>(t) y = Range(zero, w, one)""",
    "differences of neighbours in a scan": """b = Cast<to = 7>(m) i = Mul(b, three)
        o, t = Scan<num_scan_inputs = 1, body = b (int64 a, int64 p, int64 f) => (int64 e, int64 q)
            { e = Sub(f, p) q = Identity(f) }>(zero, zero, i)
        y = Range(zero, o, one)""",
    "differences of draws in a loop": """o, t = Loop(three, yes, zero, zero)
        <body = b (int64 j, bool c, int64 a, int64 p) => (bool d, int64 e, int64 q) {
            d = Identity(c) w = Gather(m, j) u = Cast<to = 2>(w) s = BitShift<direction = "LEFT">(u, quarter)
            f = Cast<to = 7>(s) e = Sub(p, f) q = Identity(f) }>
        y = Range(zero, o, one)""",
}
"""Nodes from x (4), v (5) and m (4), and a result."""


def _model(nodes: str) -> onnx.ModelProto:
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[4] x, bool[4] m) => (float[] z)
        <{STORED}> {{ {nodes} z = Cast<to = 1>(y) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("name", CASES)
def test_no_run_has_more_than_is_said(name: str, tmp_path: Path) -> None:
    """Each tensor is at most as large as is said, over runs in which data takes both ends."""
    model = _model(CASES[name])
    onnx.save(model, tmp_path / "model.onnx")
    most = largest_bytes(model, tmp_path / "all.onnx", 60)
    assert max(most.values(), default=0) > 0
    graph = mtpp.read(tmp_path / "model.onnx", dims="auto").graph
    said = dict(zip(graph.tensor_names, graph.tensor_bytes.tolist(), strict=True))
    assert {name: (size, said[name]) for name, size in most.items() if size > said.get(name, size)} == {}


def _assumptions(text: str, dims: dict[str, int | str]) -> list[str]:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 17, "other": 1]> {text}')
    found = read_with_nodes(None, model.SerializeToString(), source="m", system=load_device(), dims=dims)
    return found.graph.metadata.get("assumptions", [])


UNRULED = "b = other.Foo (a) c = Relu (b)"
KEPT = "f = Flatten <axis = 0> (a) r = Squeeze (f) m = Greater (r, r) b = Compress (r, m) c = Relu (b)"


@pytest.mark.parametrize(
    ("declared", "body", "dims", "told"),
    [
        ("float[4,4] b", UNRULED, {}, ["b:0 = 4, b:1 = 4: as the file declares; open in stages"]),
        ("float[4,rows] b", UNRULED, {"rows": 3}, ["b:0 = 4: as the file declares; open in stages",
                                                   "b:1 = 3: as given; open in stages"]),
        ("float[4,4] d", UNRULED, {"b:0": 2, "b:1": 5}, ["b:0 = 2, b:1 = 5: as given; open in stages"]),
        ("float[4,rows] b", UNRULED, {"*": "auto"}, ["b:0 = 4: as the file declares; open in stages",
                                                     "b:1 = 1: estimated, as proposed; open in stages"]),
        ("float[4,4] d", KEPT, {"b:0": 5}, ["b:0 = 5: as given; open in stages"]),
        ("float[8] b", KEPT, {}, ["b:0 = 8: as the file declares; open in stages"]),
    ],
)  # fmt: skip
def test_each_size_is_told_with_who_says_it(declared, body, dims, told):
    """A size that a file declares for an op without a rule is no estimate, and nor is one that the caller gives."""
    assert _assumptions(f"g (float[4,4] a) => (c) <{declared}> {{ {body} }}", dims) == told


def test_an_axis_is_asked_for_by_one_key():
    """One that has a name is listed by that, not by its place as well."""
    text = f"g (float[4,4] a) => (c) <float[rows,cols] b> {{ {UNRULED} }}"
    with pytest.raises(InputError) as caught:
        _assumptions(text, {})
    assert "'rows'" in str(caught.value)
    assert "b:0" not in str(caught.value)
