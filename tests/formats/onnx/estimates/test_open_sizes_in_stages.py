"""Sizes that only a run tells, in small models: what is estimated and certain, what no stage holds as a constant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from random_onnx_models import random_labels
from stage_equality import assert_onnx_stages_equal, random_feeds

import mtpp
from mtpp.errors import InputError

ROWS = "mx = ReduceMax <keepdims = 0> (x, one) m = Greater (mx, half) c = Compress <axis = 0> (x, m)"
"""Keeps rows of a 4×8 tensor."""

NUMBER = (
    "s = ReduceSum <keepdims = 0> (x) a = Abs (s) i = Cast <to = 7> (a) n0 = Clip (i, i1, i3) n = Unsqueeze (n0, zero)"
)
"""A number from 1 to 3 that a run computes."""

COUNT = f"{ROWS} sh = Shape (c) k = Gather (sh, i0)"

SIZE_OF_Y = "size = Size (y) f = Cast <to = 1> (size) z = Mul (x, f)"
BRANCHES = (
    "then_branch = t () => (float[a,8] y1) { y1 = Identity (c) }, "
    "else_branch = e () => (float[4,8] y2) { y2 = Abs (x) }"
)
TRIP = (
    "body = b (int64 i, bool go, float[4,8] st) => (bool on, float[4,8] st2, float[4,8] out) "
    "{ on = Identity (go) st2 = Add (st, st) out = Neg (st) }"
)
WEIGHTS = ", ".join(str(round(np.sin(i), 3)) for i in range(32))
CONSTANTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] eight = {8}, int64[1] all = {-1}, "
    "int64 i0 = {0}, int64 i1 = {1}, int64 i3 = {3}, int64 i8 = {8}, float half = {0.5}, "
    "float[2] bounds = {0, 1}, "
    f"float[8,4] w = {{{WEIGHTS}}}"
)

BODIES = {
    "mean of kept rows": f"{COUNT} f = Cast <to = 1> (k) s = ReduceSum (c) z = Div (s, f)",
    "columns are certain": f"{ROWS} sh = Shape (c) k = Gather (sh, i1) f = Cast <to = 1> (k) z = Div (x, f)",
    "window of a shape": f"{ROWS} sh = Shape <start = 1> (c) q = ConstantOfShape (sh) z = Add (x, q)",
    "reshape by a count": f"{ROWS} sh = Shape (c) r = Concat <axis = 0> (sh, one) q = Reshape (c, r) z = Relu (q)",
    "flat and back": f"{ROWS} q = Reshape (c, all) sh = Shape (c) r = Reshape (q, sh) z = MatMul (r, w)",
    "expand": f"{ROWS} sh = Shape (c) q = Expand (half, sh) z = Add (c, q)",
    "range of a count": f"{COUNT} r = Range (i0, k, i1) f = Cast <to = 1> (r) z = Neg (f)",
    "two masks": f"{ROWS} d = Compress <axis = 0> (x, m) q = Add (c, d) t = Transpose (q) z = MatMul (t, d)",
    "dynamic slice": f"{NUMBER} e = Add (n, two) v = Slice (x, n, e, one) z = Relu (v)",
    "tile": f"{NUMBER} r = Concat <axis = 0> (one, n) v = Tile (x, r) z = Relu (v)",
    "pad": f"{NUMBER} p = Concat <axis = 0> (n, zero, zero, zero) v = Pad (x, p) z = Relu (v)",
    "top rows": f"{NUMBER} v, j = TopK <axis = 0> (x, n) z = Relu (v)",
    "split": f"{NUMBER} o = Sub (eight, n) p = Concat <axis = 0> (n, o) v, u = Split <axis = 1> (x, p) z = Relu (u)",
    "computed axes": f"{NUMBER} d = Sub (n, n) v = ReduceSum <keepdims = 0> (x, d) z = Relu (v)",
    "squeezed": f"{NUMBER} v = Slice (x, zero, n, zero) q = Unsqueeze (v, zero) u = Squeeze (q, zero) z = Relu (u)",
    "sequence of rows": f"{ROWS} q = SplitToSequence (c) n = SequenceLength (q) f = Cast <to = 1> (n) z = Mul (x, f)",
    "branches of two sizes": f"{ROWS} n = Size (c) g = Greater (n, i8) y = If (g) <{BRANCHES}> {SIZE_OF_Y}",
    "trips by a count": f"{COUNT} last, y = Loop (k, , x) <{TRIP}> {SIZE_OF_Y}",
    "part of a shape replaced": f"{COUNT} u = Unsqueeze (k, zero) j = Unsqueeze (zero, zero) q = Shape (x) "
    f"r = ScatterND (q, j, u) y = ConstantOfShape (r) {SIZE_OF_Y}",
    "identity": f"{ROWS} e = EyeLike (c) s = ReduceSum <keepdims = 0> (e) z = Mul (x, s)",
    "unread": f"{ROWS} u = Unique (x) z = Relu (x)",
    "one hot": f"{NUMBER} j = Cast <to = 7> (x) o = OneHot <axis = 0> (j, n0, bounds) z = Relu (o)",
}


def _model(name: str, folder: Path, more: str = "") -> Path:
    head = '<ir_version: 10, opset_import: ["" : 18]> g (float[4,8] x) => (float z)'
    text = f"{head} <{CONSTANTS}{more}> {{ {BODIES[name]} }}"
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    read = {one for node in model.graph.node for one in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("name", BODIES)
def test_every_cut_computes_what_the_whole_does(name: str, tmp_path: Path) -> None:
    """Stages cut before every second op give the whole model's results for inputs with other counts than the plan's."""
    pytest.importorskip("onnxruntime")
    path = _model(name, tmp_path)
    model = mtpp.read(path, dims="auto")
    feeds = [random_feeds(path, seed) for seed in range(2)]
    feeds += [{"x": np.eye(4, 8, dtype=np.float32) * scale} for scale in (0.3, 2)]
    ops = model.graph.op_names
    for cut in range(len(ops) % 2, len(ops), 2):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))


def test_a_certain_element_of_an_open_shape_folds(tmp_path: Path) -> None:
    """The number of columns is a constant although the rows are open; the shape itself is not."""
    model = mtpp.read(_model("columns are certain", tmp_path), dims="auto")
    kinds = model.graph.op_kinds
    assert "Gather" not in kinds
    assert mtpp.read(_model("mean of kept rows", tmp_path), dims="auto").graph.op_kinds.count("Gather") == 1


def test_a_declared_size_of_data_is_an_estimate(tmp_path: Path) -> None:
    """A size that the file declares of kept rows decides costs; stages leave it open, as ONNX Runtime does."""
    pytest.importorskip("onnxruntime")
    path = _model("mean of kept rows", tmp_path, ", float[3,8] c")
    model = mtpp.read(path)
    sizes = dict(zip(model.graph.tensor_names, model.graph.tensor_bytes, strict=True))
    assert sizes["c"] == 4 * 3 * 8
    feeds = [{"x": np.eye(4, 8, dtype=np.float32) * scale + shift} for scale, shift in ((1, 0), (0, 1), (0.6, 0))]
    ops = model.graph.op_names
    for cut in range(len(ops)):
        plan = {op: int(index >= cut) for index, op in enumerate(ops)}
        assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds)


def test_a_given_size_goes_before_an_estimate(tmp_path: Path) -> None:
    """A caller may say what an axis counts although the reading has an estimate of its own."""
    path = _model("tile", tmp_path)
    few, many = (mtpp.read(path, dims={"v:1": columns}) for columns in (8, 24))
    sizes = [dict(zip(one.graph.tensor_names, one.graph.tensor_bytes, strict=True))["z"] for one in (few, many)]
    assert sizes == [4 * 4 * 8, 4 * 4 * 24]


def test_a_state_that_changes_size_is_open_inside_its_loop(tmp_path: Path) -> None:
    """What a body computes from a growing state is open too, whatever its first trip shows."""
    pytest.importorskip("onnxruntime")
    text = """<ir_version: 10, opset_import: ["" : 18]>
    g (float[2,8] x) => (float s, float t) <int64 n = {3}, bool yes = {1}>
    {
        y, last = Loop (n, yes, x, x) <body = b (int64 i, bool go, float[r,8] st, float[q,8] before)
            => (bool on, float[r2,8] st2, float[q2,8] st)
            { on = Identity (go) st2 = Concat <axis = 0> (st, x) }>
        sh = Size (last)
        s = Cast <to = 1> (sh)
        t = ReduceSum <keepdims = 0> (y)
    }"""
    path = tmp_path / "model.onnx"
    model = onnx.parser.parse_model(text)
    onnx.save(model, path)
    reading = mtpp.read(path, dims="auto")
    feeds = [random_feeds(path, seed) for seed in range(2)]
    plan = {op: int(index >= 1) for index, op in enumerate(reading.graph.op_names)}
    assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(reading.dims))


UNRANKED = """<ir_version: 10, opset_import: ["" : 18]>
g (float[4,8] x) => (float s) <float half = {0.5}, int64[1] one = {1}> {
    mx = ReduceMax <keepdims = 0> (x, one) m = Greater (mx, half) c = Compress <axis = 0> (x, m)
    q = Squeeze (c) r = Relu (q) t = Neg (r) s = ReduceSum <keepdims = 0> (t)
}"""
"""One row that is kept loses its axis; two do not."""


def test_no_cut_is_made_where_the_number_of_axes_is_open(tmp_path: Path) -> None:
    """Plans keep the ops together between which only a run tells the rank, and say so; one by hand is refused."""
    pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(UNRANKED), path)
    model = mtpp.read(path, dims="auto")
    names = model.graph.op_names
    plan = mtpp.partition(model, 3)
    assert len({plan.assignment[name] for name in names if name[:3] in ("Squ", "Rel", "Neg")}) == 1
    assert "numbers of axes that depend on data kept together" in repr(plan)
    feeds = [
        {"x": np.eye(4, 8, dtype=np.float32) * np.arange(8, dtype=np.float32) * np.float32(scale)}
        for scale in (0.1, 0.3, 1)
    ]
    assert_onnx_stages_equal(path, plan, tmp_path / "stages", feeds, dims=dict(model.dims))
    by_hand = {name: int(names.index(name) > names.index(next(n for n in names if "Squeeze" in n))) for name in names}
    with pytest.raises(InputError, match="only a run tells the number of axes of tensor 'q'"):
        mtpp.split(path, by_hand, tmp_path / "other", dims=dict(model.dims))


_HEAD = '<ir_version: 8, opset_import: ["" : 17, "l" : 1]>\n'
_ROWS = """<float zero = {0.0}> {
 a1 = Constant<value_ints = [1]>() i0 = Constant<value_ints = [0]>() sums = ReduceSum<keepdims = 0>(x, a1)
 mask = Greater(sums, zero) s = Compress<axis = 0>(x, mask) """

_MODELS = {
    "a part of a shape in Min, Slice and TopK": "g (float[4,6] x) => (float z, float[?,?] v, int64[?] k) "
    + _ROWS
    + """n = Shape<start = 0, end = 1>(s) f = Cast<to = 1>(n) z = ReduceMax<keepdims = 0>(f)
 three = Constant<value_ints = [3]>() most = Min(n, three) part = Slice(x, i0, most, i0) v = Relu(part)
 top, at = TopK<axis = 0>(sums, most) k = Neg(at) }""",
    "the number of rows as trips, of a state that grows": "g (float[4,6] x) => (float[?,6] z, float n, float[?,6] h) "
    + _ROWS
    + """sh = Shape(s) t = Gather<axis = 0>(sh, i0) trips = Squeeze(t, i0)
 a, rows = Loop(trips, , s) <body = b (int64 i, bool c, float[?,6] st) => (bool co, float[?,6] so, float[6] r) {
  co = Identity(c) so = Concat<axis = 0>(st, s) r = ReduceSum<keepdims = 0>(so, i0) }>
 z = Relu(a) zs = Shape(a) f = Cast<to = 1>(zs) n = ReduceSum<keepdims = 0>(f) h = Relu(rows) }""",
    "a sequence that a loop fills": "g (float[4,6] x) => (float[?,?] z, float n) "
    + _ROWS
    + """l = SequenceEmpty<dtype = 1>() t = Constant<value_int = 2>()
 o = Loop(t, , l) <body = b (int64 i, bool c, seq(float[?,?]) st) => (bool co, seq(float[?,?]) so) {
  co = Identity(c) so = SequenceInsert(st, s) }>
 z = ConcatFromSequence<axis = 0>(o) zs = Shape(z) f = Cast<to = 1>(zs) n = ReduceMax<keepdims = 0>(f) }""",
    "an element of a sequence that a run picks": "g (float[4,6] x) => (float[?,6] z, float[2] n) "
    + _ROWS
    + """w = Constant<value_ints = [0, 1]>() short = Gather(x, w) l = SequenceConstruct(x, short)
 r = Shape<start = 0, end = 1>(s) three = Constant<value_ints = [3]>() less = Less(r, three) at = Cast<to = 7>(less)
 p = Squeeze(at) e = SequenceAt(l, p) z = Relu(e) zs = Shape(e) n = Cast<to = 1>(zs) }""",
    "parts of a sequence that a run cuts": "g (float[4,6] x) => (float[?,6] z, float n) "
    + _ROWS
    + """r = Shape<start = 0, end = 1>(s) four = Constant<value_ints = [4]>() rest = Sub(four, r)
 parts = Concat<axis = 0>(r, rest) l = SplitToSequence<axis = 0>(x, parts) p = Constant<value_int = 1>()
 e = SequenceAt(l, p) z = Relu(e) zs = Size(e) n = Cast<to = 1>(zs) }""",
    "functions that ask for the shape of an argument": "g (float[4,6] x) => (float n, float[?,?] y) "
    + _ROWS
    + """n = l.count<ax = 0>(s) y = l.same(s) }
<opset_import: ["" : 17], domain: "l"> count <ax: int = 1> (x) => (n) {
 sh = Shape(x) c = Constant<value_int: int = @ax>() g = Gather(sh, c) n = Cast<to = 1>(g) }
<opset_import: ["" : 17], domain: "l"> same (x) => (y) { sh = Shape(x) q = ConstantOfShape(sh) y = Add(q, x) }""",
}


@pytest.mark.parametrize("name", _MODELS)
@pytest.mark.parametrize("dims", ["auto", {"s:0": 2, "*": "auto"}], ids=["proposed", "given"])
def test_sizes_of_runs_stay_open_in_stage_files(name: str, dims: Any, tmp_path: Path) -> None:
    """Stages of any plan equal the whole model on inputs of which other numbers of rows are left."""
    model = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(_HEAD + _MODELS[name]), model)
    rows = np.random.default_rng(5).random((4, 6)).astype(np.float32)
    feeds = [random_feeds(model, seed) for seed in range(3)]
    feeds += [{"x": rows}, {"x": rows * np.array([[-1], [1], [-1], [-1]], np.float32)}]
    reading = mtpp.read(model, dims=dims)
    names = reading.graph.op_names
    for k in (1, 2, 3):
        plans = [mtpp.partition(reading, k), dict(zip(names, random_labels(reading.graph, k, k), strict=True))]
        for number, plan in enumerate(plans):
            assert_onnx_stages_equal(model, plan, tmp_path / f"stages-{k}-{number}", feeds, dims=dims)
