"""Trips of loops: counted by what their condition depends on, walked over where states grow, or given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from random_onnx_models import random_labels, read_model, split_into
from stage_equality import assert_equal, random_feeds, run_onnx, run_onnx_stages

from mtpp.errors import InputError
from mtpp.formats.onnx.control_flow import loops

HEADER = '<ir_version: 8, opset_import: ["": 17]>'


def _model(loop: str, stored: str = "", inputs: str = "float[2,4] x", outputs: str = "float[r,c] z") -> onnx.ModelProto:
    """Return a model from x to z around a loop from h to l."""
    constants = f"<{stored}>" if stored else ""
    return onnx.parser.parse_model(
        f"{HEADER} g ({inputs}) => ({outputs}) {constants} {{ h = Tanh(x) {loop} z = Relu(l) }}"
    )


WHILE = (
    """k, l = Loop (limit, yes, zero, h) <body = b (int64 i, bool c, int64 n, float[2,4] s) =>
        (bool go, int64 m, float[2,4] t) { m = Add(n, step) go = Less(m, until) t = Neg(s) }>""",
    "int64 limit = {%d}, bool yes = {1}, int64 zero = {0}, int64 step = {3}, int64 until = {20}",
)
SIZE = (
    """sh = Shape(h) axis = Constant<value_int = 1>() columns = Gather(sh, axis)
    k, l = Loop ("", yes, zero, h) <body = b (int64 i, bool c, int64 n, float[2,4] s) =>
        (bool go, int64 m, float[2,4] t) {
            m = Add(n, step) a = Cast<to = 1>(m) e = Cast<to = 1>(columns) go = Less(a, e) t = Neg(s) }>""",
    "bool yes = {1}, int64 zero = {0}, int64 step = {1}",
)
NUMBER = (
    """l = Loop (limit, "", h) <body = b (int64 i, bool c, float[2,4] s) =>
        (bool go, float[2,4] t) { go = Less(i, two) t = Neg(s) }>""",
    "int64 limit = {7}, int64 two = {2}",
)
GROWS = (
    """l = Loop (limit, "", h) <body = b (int64 i, bool c, float[r,4] s) =>
        (bool go, float[q,4] t) { go = Identity(c) t = Concat<axis = 0>(s, h) }>""",
    "int64 limit = {5}",
)
DOUBLES = (GROWS[0].replace("(s, h)", "(s, s)"), GROWS[1])
WINDOW = (
    GROWS[0].replace("t = Concat<axis = 0>(s, h)", "u = Concat<axis = 0>(s, h) t = Slice(u, from, to, ax)"),
    GROWS[1] + ", int64[1] from = {-5}, int64[1] to = {100}, int64[1] ax = {0}",
)
UNTIL_LARGE = (
    """l = Loop ("", yes, h) <body = b (int64 i, bool c, float[r,4] s) =>
        (bool go, float[q,4] t) { t = Concat<axis = 0>(s, h) n = Size(t) go = Less(n, most) }>""",
    "bool yes = {1}, int64 most = {50}",
)
BY_NUMBER = (
    """l = Loop (limit, "", h) <body = b (int64 i, bool c, float[r,4] s) => (bool go, float[q,4] t) {
        go = Identity(c) end = Unsqueeze(i, first) part = Slice(h, first, end, first)
        t = Concat<axis = 0>(s, part) }>""",
    "int64 limit = {3}, int64[1] first = {0}",
)
NONE = (GROWS[0], "int64 limit = {0}")
CASES: dict[str, tuple[tuple[str, str], int, list[int]]] = {
    "while": ((WHILE[0], WHILE[1] % 100), 7, [2, 4]),
    "while without limit, int32": ((WHILE[0], WHILE[1] % (2**31 - 1)), 7, [2, 4]),
    "while without limit, int64": ((WHILE[0], WHILE[1] % (2**63 - 1)), 7, [2, 4]),
    "while that the limit ends": ((WHILE[0], WHILE[1] % 2), 2, [2, 4]),
    "while by a size": (SIZE, 4, [2, 4]),
    "break by the number of the trip": (NUMBER, 3, [2, 4]),
    "a state that grows": (GROWS, 5, [12, 4]),
    "a state that doubles": (DOUBLES, 5, [64, 4]),
    "a state in a window": (WINDOW, 5, [5, 4]),
    "until a state is large": (UNTIL_LARGE, 6, [14, 4]),
    "a part by the number of the trip": (BY_NUMBER, 3, [5, 4]),
    "no trip": (NONE, 0, [2, 4]),
}


def _stages_equal(model: onnx.ModelProto, tmp_path: Path, dims: dict[str, int] | None = None) -> Any:
    """Hold stages of every cut, by one stage and two, against the whole; return the graph."""
    path = tmp_path / "model.onnx"
    reading = read_model(model, path, dims)
    graph = reading.graph
    for cut in range(graph.op_count):
        labels = [int(place >= cut) for place in range(graph.op_count)]
        folder = tmp_path / f"cut{cut}"
        split_into(folder, path, reading, labels)
        for seed in range(2):
            feeds = random_feeds(path, seed)
            assert_equal(run_onnx_stages(folder, feeds), run_onnx(path, feeds))
    return graph


@pytest.mark.parametrize("name", CASES)
def test_trips_and_sizes_are_those_that_run(name: str, tmp_path: Path) -> None:
    """Trips are counted, states have the size that they end with, nothing is assumed, and stages compute the same."""
    pytest.importorskip("onnxruntime")
    (loop, stored), trips, shape = CASES[name]
    graph = _stages_equal(_model(loop, stored), tmp_path)
    assert graph.metadata["control_flow"][0]["trip_count"] == trips
    assert graph.metadata["outputs"][0]["shape"] == shape
    assert "assumptions" not in graph.metadata


def test_work_grows_with_the_state(tmp_path: Path) -> None:
    """Each trip costs what it does with its own sizes: 2 + 4 + … rows are read, not five times the first ones."""
    whole = read_model(_model(*GROWS), tmp_path / "m.onnx").graph
    (traffic,) = (work for work, kind in zip(whole.work, whole.op_kinds, strict=True) if kind == "Loop")
    rows = [2 * (trip + 1) for trip in range(5)]
    assert traffic == sum(((before + 2) + (before + 2)) * 16 * 5 for before in rows)  # 5 ps a byte


def test_beyond_a_limit_growth_is_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trips that are not walked over go on as they went, and what follows from that is open."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(loops, "MOST_NODES", 4)
    graph = _stages_equal(_model(*GROWS), tmp_path)
    assert graph.metadata["outputs"][0]["shape"] == [12, 4]
    assert any("l:0 = 12: estimated" in text for text in graph.metadata["assumptions"])


DATA = (
    """s = ReduceSum<keepdims = 0>(h) l = Loop (limit, "", h) <body = b (int64 i, bool c, float[r,4] a) =>
        (bool go, float[q,4] t) { go = Greater(s, half) t = Concat<axis = 0>(a, h) }>""",
    "int64 limit = {4}, float half = {0.5}",
)


def test_trips_that_depend_on_data_are_open(tmp_path: Path) -> None:
    """As many as there can be are counted, and it is said; stages run with any number."""
    pytest.importorskip("onnxruntime")
    graph = _stages_equal(_model(*DATA), tmp_path)
    assert graph.metadata["control_flow"][0]["note"] == "at most 4 trips: it may stop earlier"
    assert graph.metadata["outputs"][0]["shape"] == [10, 4]
    assert any("l:0 = 10: estimated" in text for text in graph.metadata["assumptions"])


ENDLESS = (
    """e = Exp(h) l, out = Loop ("", yes, e) <body = b (int64 i, bool c, float[2,4] a) =>
        (bool go, float[2,4] t, float[4] row) {
            t = Mul(a, half) n = ReduceSum<keepdims = 0>(t) go = Greater(n, one) row = Gather(t, zero) }>""",
    "bool yes = {1}, float half = {0.5}, float one = {1.0}, int64 zero = {0}",
)


def test_trips_are_given_where_nobody_knows_them(tmp_path: Path) -> None:
    """Without, one is counted and named as not modelled; given ones are costs, and in no stage."""
    pytest.importorskip("onnxruntime")
    model = _model(*ENDLESS, outputs="float[2,4] z, float[n,4] out")
    graph = _stages_equal(model, tmp_path)
    assert graph.metadata["not_modelled"] == {"trips of 'l'": 1}
    assert graph.metadata["control_flow"][0]["note"].endswith("set it with --trips l=64")
    (tmp_path / "given").mkdir()
    given = _stages_equal(model, tmp_path / "given", {"l:trips": 64})
    assert given.metadata["dims"] == {"l:trips": 64}
    assert given.metadata["control_flow"][0]["trip_count"] == 64
    assert given.metadata["outputs"][1]["shape"] == [64, 4]
    assert given.metadata["not_modelled"] == {}
    assert given.metadata["flops"] > 20 * graph.metadata["flops"]
    assert any(text.endswith(": 64 trips, as given") for text in given.metadata["assumptions"])


def test_trips_that_the_model_knows_are_not_given_otherwise(tmp_path: Path) -> None:
    """Other trips than those that it makes are refused, as are those of a loop that it has not."""
    model = _model(*NUMBER)
    assert read_model(model, tmp_path / "m.onnx", {"l:trips": 3}).graph.metadata["control_flow"][0]["trip_count"] == 3
    with pytest.raises(InputError, match="the model makes 3 trips"):
        read_model(model, tmp_path / "m.onnx", {"l:trips": 4})
    from mtpp.formats.onnx.reader import read_onnx
    from mtpp.machine.presets import load_device

    with pytest.raises(InputError, match=r"the model has no loop 'k'.*it has: l"):
        read_onnx(None, model.SerializeToString(), source="m.onnx", dims={"k:trips": 4}, system=load_device())


@pytest.mark.parametrize("seed", range(6))
def test_loops_at_random(seed: int, tmp_path: Path) -> None:
    """Counters with random steps, comparisons and limits run as often as ONNX Runtime runs them."""
    pytest.importorskip("onnxruntime")
    random = np.random.default_rng(seed)
    start, step, until = (int(random.integers(*bounds)) for bounds in ((-5, 5), (1, 4), (0, 20)))
    compare = str(random.choice(["Less", "LessOrEqual"]))
    loop = WHILE[0].replace("go = Less(m, until)", f"w = Mul(m, step) go = {compare}(w, until)")
    numbers = {"limit": int(random.choice([3, 1000, 2**31 - 1])), "zero": start, "step": step, "until": until}
    stored = ", ".join(f"int64 {name} = {{{number}}}" for name, number in numbers.items())
    model = _model(loop, f"{stored}, bool yes = {{1}}", outputs="float[2,4] z, int64 k")
    path = tmp_path / "model.onnx"
    reading = read_model(model, path)
    feeds = random_feeds(path, seed)
    made = run_onnx(path, feeds)
    assert reading.graph.metadata["control_flow"][0]["trip_count"] * step + start == int(made[1])
    split_into(tmp_path / "stages", path, reading, random_labels(reading.graph, 2, seed))
    assert_equal(run_onnx_stages(tmp_path / "stages", feeds), made)


EARLIER = """k, l = Loop (limit, yes, zero, h) <body = b (int64 i, bool c, int64 n, float[2,4] s) =>
    (bool go, int64 m, float[2,4] t) {
        m = Add(n, step) a = Less(m, until) e = Exp(s) f = ReduceSum<keepdims = 0>(e) d = Less(f, much)
        %s t = Neg(s) }>"""
EARLIER_STORED = """int64 limit = {%d}, bool yes = {1}, int64 zero = {0}, int64 step = {3}, int64 until = {20},
    float much = {9.0}"""


@pytest.mark.parametrize(
    ("condition", "limit", "trips"),
    [
        ("go = And(a, d)", 2**63 - 1, 7),
        ("go = And(d, a)", 2**31 - 1, 7),
        ("go = And(d, a)", 5, 5),
        ("x1 = Not(a) x2 = Not(d) x3 = Or(x1, x2) go = Not(x3)", 100, 7),
        ("r = Cast<to = 6>(a) q = Cast<to = 6>(zero) w = Where(d, r, q) go = Cast<to = 9>(w)", 100, 7),
        ("r = Cast<to = 6>(a) q = Cast<to = 6>(d) p = Mul(r, q) go = Cast<to = 9>(p)", 100, 7),
    ],
)
def test_a_counter_ends_a_loop_that_data_may_end_earlier(
    condition: str, limit: int, trips: int, tmp_path: Path
) -> None:
    """A while by a counter and by data runs at most until the counter ends it: so many trips count, as is said."""
    pytest.importorskip("onnxruntime")
    graph = _stages_equal(_model(EARLIER % condition, EARLIER_STORED % limit), tmp_path)
    entry = graph.metadata["control_flow"][0]
    assert (entry["trip_count"], entry["note"]) == (trips, f"at most {trips} trips: it may stop earlier")
    assert graph.metadata["not_modelled"] == {}
    assert any("at most" in text for text in graph.metadata["assumptions"])


def test_a_counter_that_data_alone_ends_has_no_most(tmp_path: Path) -> None:
    """Where data alone can end a loop, or keep it going, one trip is counted and that is said."""
    pytest.importorskip("onnxruntime")
    graph = _stages_equal(_model(EARLIER % "x1 = Not(d) go = Less(f, f)", EARLIER_STORED % (2**63 - 1)), tmp_path)
    assert graph.metadata["not_modelled"] == {"trips of 'k'": 1}
