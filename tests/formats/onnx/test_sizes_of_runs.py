"""Sizes that only a run tells, read again by ops, bodies and functions: no stage file makes constants of them."""

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
