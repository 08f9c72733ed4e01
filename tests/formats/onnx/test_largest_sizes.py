"""Sizes that data decides: the largest that they can be, and one estimate for all that one number decides."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest
from sizes_from_data import small_sizes
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp

pytest.importorskip("onnxruntime")

HEADER = '<ir_version: 8, opset_import: ["": %d]>'
COUNT = "i = Cast<to = 7>(m) n = ReduceSum<keepdims = 0>(i)"
STORED = """int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64[1] first = {0},
    int64[1] last = {1}, int64[1] far = {100}, int64[1] step = {1}, int64[1] width = {2}, int64[1] room = {20},
    float[2] values = {0, 1}, int64[2] classes = {0, 1}, float half = {0.5}"""
CASES = {
    "count of a mask in Range": (f"{COUNT} y = Range(zero, n, one)", {"y": [4]}),
    "count of a mask in Expand": (f"{COUNT} k = Reshape(n, step) e = Concat<axis = 0>(k, step, step) y = Expand(x, e)",
                                  {"y": [4, 4, 8]}),
    "count of a mask in Slice": (f"{COUNT} k = Reshape(n, step) y = Slice(x, first, k, last)", {"y": [4, 4]}),
    "count of a mask in ConstantOfShape": (f"{COUNT} k = Reshape(n, step) y = ConstantOfShape(k)", {"y": [4]}),
    "count of a mask as depth": (f"{COUNT} d = Add(n, one) y = OneHot(classes, d, values)", {"y": [2, 5]}),
    "a mask as numbers": ("k = ReduceSum<keepdims = 1>(i) i = Cast<to = 1>(m) s = Cast<to = 7>(k) y = Tile(m, s)",
                          {"y": [16]}),
    "a window anywhere": (f"{COUNT} k = Reshape(n, step) e = Add(k, width) y = Slice(x, k, e, last)", {"y": [4, 2]}),
    "from a place on": (f"{COUNT} k = Reshape(n, step) y = Slice(x, k, far, last)", {"y": [4, 8]}),
    "rest of a size": (
        """f = NonZero(m) s = Shape(f) k = Slice(s, last, width) r = Sub(room, k) y = ConstantOfShape(r)""",
        {"f": [1, 4], "y": [20]},
    ),
    "an index": ("f = Reshape(x, minus) k = ArgMax<axis = 0>(f) y = Tile(m, k)", {"y": [4 * 31]}),
    "rounded probability": (
        "s = ReduceSum<keepdims = 0>(x) p = Sigmoid(s) q = Div(p, half) c = Ceil(q) n = Cast<to = 7>(c) "
        "y = Range(zero, n, one)",
        {"y": [2]},
    ),
    "either branch": (
        """s = ReduceSum<keepdims = 0>(x) go = Greater(s, half)
        n = If (go) <then_branch = a () => (int64 t) { t = Identity(two) },
            else_branch = b () => (int64 e) { e = Add(two, two) }>
        y = Range(zero, n, one)""",
        {"y": [4]},
    ),
    "trips": (f"{COUNT} y = Loop(n, yes) <body = b (int64 t, bool c) => (bool d, float[4,8] r) "
              "{ d = Identity(c) r = Neg(x) }>", {"y": [4, 4, 8]}),
    "number of the trip": (
        """l = Loop(two, yes) <body = b (int64 t, bool c) => (bool d, int64 k) { d = Identity(c) k = Add(t, one) }>
        k = ReduceMax<keepdims = 1>(l) y = Tile(m, k)""",
        None,
    ),
    "sum in a loop": (
        """i = Cast<to = 7>(m) t = Loop(three, yes, zero) <body = b (int64 t, bool c, int64 a) => (bool d, int64 e) {
            d = Identity(c) f = Gather(i, t) e = Add(a, f) }>
        k = Reshape(t, step) y = Slice(x, first, k, last)""",
        {"y": [4, 3]},
    ),
    "sum in a scan": (
        """i = Cast<to = 7>(m) t = Scan<num_scan_inputs = 1, body = b (int64 a, int64 f) => (int64 e) { e = Add(a, f) }>
            (zero, i) k = Reshape(t, step) y = Tile(m, k)""",
        {"y": [16]},
    ),
    "a power": (f"{COUNT} p = Pow(two, n) y = Range(zero, p, one)", {"y": [16]}),
    "larger of two branches": (
        """s = ReduceSum<keepdims = 0>(x) go = Greater(s, half)
        y = If (go) <then_branch = a () => (float[p, 8] t) { t = Compress<axis = 0>(x, m) },
            else_branch = b () => (float[q, 8] e) { e = Concat<axis = 0>(x, x) }>""",
        {"t": [4, 8]},
    ),
    "axes that numbers tell": (
        "i = Cast<to = 7>(m) n = ReduceSum<keepdims = 1>(i) a = Sub(n, n) y = Slice(x, first, last, a)",
        {"y": [1, 8]},
    ),
    "back to the start": (f"{COUNT} k = Reshape(n, step) y = Slice(x, k, first, last, minus)", {"y": [4, 4]}),
    "a new axis anywhere": (f"{COUNT} k = Reshape(n, step) a = Mod(k, width) y = Unsqueeze(x, a)", {"y": [1, 4, 8]}),
    "kept and sorted": (f"{COUNT} k = Reshape(n, step) y, j = TopK<axis = 1>(x, k)", {"y": [4, 4]}),
}  # fmt: skip
"""Nodes from x (4×8) and m (4), and the sizes of tensors; None where the size only has to hold."""


def _model(nodes: str, opset: int = 17, inputs: str = "float[4,8] x, bool[4] m") -> onnx.ModelProto:
    stored = f"{STORED}, int64[1] minus = {{-1}}, bool yes = {{1}}"
    text = f"{HEADER % opset} g ({inputs}) => (z) <{stored}> {{ {nodes} z = Cast<to = 1>(y) }}"
    return onnx.parser.parse_model(text.replace("=> (z)", "=> (float[] z)"))


def _saved(nodes: str, path: Path, **options: object) -> Path:
    model = _model(nodes, **options)  # type: ignore[arg-type]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    return path


def _sizes(path: Path) -> dict[str, int]:
    graph = mtpp.read(path, dims="auto").graph
    return dict(zip(graph.tensor_names, graph.tensor_bytes.tolist(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_size_is_as_large_as_it_can_be(name: str, tmp_path: Path) -> None:
    """What is proposed of an open axis is the largest that it can be; stages leave it open."""
    nodes, expected = CASES[name]
    path = _saved(nodes, tmp_path / "model.onnx")
    reading = mtpp.read(path, dims="auto")
    dims = dict(reading.dims)
    for tensor, shape in (expected or {}).items():
        open_sizes = {key: size for key, size in dims.items() if key.rpartition(":")[0] == tensor}
        assert open_sizes.items() <= {f"{tensor}:{axis}": size for axis, size in enumerate(shape)}.items()
        assert open_sizes or any(f"{tensor}:" in text for text in reading.assumptions())
    plan = mtpp.partition(reading, 2)
    assert_onnx_stages_equal(path, plan, tmp_path / "stages", [random_feeds(path, seed) for seed in range(4)])


def test_rows_and_columns_share_what_there_is(tmp_path: Path) -> None:
    """One or two rows of 32 elements: the first axis is as large as it can be, the second has the rest."""
    nodes = (
        f"{COUNT} r = Mod(n, two) k = Add(r, one) s = Concat<axis = 0>(t, minus) t = Reshape(k, step) y = Reshape(x, s)"
    )
    path = _saved(nodes, tmp_path / "model.onnx")
    assert any("y:0 = 2, y:1 = 16" in text for text in mtpp.read(path, dims="auto").assumptions())


def test_the_larger_branch_says_how_large_a_result_is(tmp_path: Path) -> None:
    """Costs are of the more expensive branch, and the result is as large as that of either."""
    nodes = """s = ReduceSum<keepdims = 0>(x) go = Greater(s, half)
        y = If (go) <then_branch = a () => (float[p, 8] t) { u = Exp(x) v = Exp(u) w = Exp(v) t = Exp(w) },
            else_branch = b () => (float[q, 8] e) { e = Concat<axis = 0>(x, x) }>"""
    path = _saved(nodes, tmp_path / "model.onnx")
    reading = mtpp.read(path)
    assert reading.graph.metadata["control_flow"][0]["note"].endswith("then_branch")
    assert _sizes(path)["y"] == 4 * 8 * 8


@pytest.mark.parametrize("kind", ["Range(zero, n, one)", "ConstantOfShape(k)", "Tile(m, k)"])
def test_sizes_of_one_number_have_one_estimate(kind: str, tmp_path: Path) -> None:
    """A size given for one axis is the size of all that the same number decides, and nothing asks for these."""
    nodes = f"""n = Cast<to = 7>(s) s = ReduceSum<keepdims = 0>(x) k = Reshape(n, step) a = ConstantOfShape(k)
        d = Add(k, last) e = ConstantOfShape(d) u = {kind} v = Cast<to = 1>(u) y = Concat<axis = 0>(a, e, v)"""
    path = _saved(nodes, tmp_path / "model.onnx")
    reading = mtpp.read(path, dims={"a:0": 5})
    sizes = dict(zip(reading.graph.tensor_names, reading.graph.tensor_bytes.tolist(), strict=True))
    assert (sizes["a"], sizes["e"]) == (4 * 5, 4 * 6)
    assert sizes["v"] == 4 * 5 * (4 if kind.startswith("Tile") else 1)
    assert dict(reading.dims) == {"a:0": 5}


def test_declared_results_say_sizes_that_inputs_decide(tmp_path: Path) -> None:
    """Height and width are elements of an input, and of no other tensor: the declared result says what they are."""
    text = f"""{HEADER % 17} g (float[2,3] x, int64[2] size) => (float[5,6] z)
        <int64 zero = {{0}}, int64 one = {{1}}, int64[1] axis = {{1}}> {{
            h = Gather(size, zero) a = Range(zero, h, one) c = Unsqueeze(a, axis)
            w = Gather(size, one) b = Range(zero, w, one) f = Add(c, b) g = Cast<to = 1>(f)
            e = ConstantOfShape(size) k = ReduceSum<keepdims = 0>(x) j = Add(g, e) z = Mul(j, k) }}"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    sizes = _sizes(path)
    assert (sizes["a"], sizes["b"], sizes["e"], sizes["f"]) == (8 * 5, 8 * 6, 4 * 30, 8 * 30)


@pytest.mark.parametrize(("taken", "expected"), [("n", 8), ("u", 1)])
def test_a_number_that_picks_rows_is_none_beyond_the_table(taken: str, expected: int, tmp_path: Path) -> None:
    """An input that picks one of eight rows is at most 7 elsewhere; of two that it is one of, nothing is known."""
    text = f"""{HEADER % 17} g (float[4] x, int64[2] n) => (float[p] z)
        <int64 zero = {{0}}, int64 one = {{1}}, float[8] t = {{0, 1, 2, 3, 4, 5, 6, 7}}> {{
            u = Gather(n, one) r = Gather(t, {taken}) q = ReduceSum<keepdims = 0>(r)
            o = Gather(n, zero) e = Add(o, one) a = Range(zero, e, one) b = Cast<to = 1>(a) z = Mul(b, q) }}"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert _sizes(path)["a"] == 8 * expected


def test_pieces_of_text_have_a_largest_where_it_is_limited(tmp_path: Path) -> None:
    """A text that is split at most twice has three pieces."""
    text = """<ir_version: 9, opset_import: ["": 20]> g (string[2] t) => (string[2, p] z, int64[2] n)
        { z, n = StringSplit<delimiter = ",", maxsplit = 2>(t) }"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert dict(mtpp.read(path, dims="auto").dims) in ({"p": 3}, {"z:1": 3})


@pytest.mark.parametrize("seed", range(34))
def test_no_run_has_more_than_is_said(seed: int, tmp_path: Path) -> None:
    """Tensors of a random model that computes a size from data are at most as large as is said in 100 runs."""
    wrong, _ = small_sizes(seed, tmp_path, runs=100)
    assert not wrong, "\n".join(wrong)
