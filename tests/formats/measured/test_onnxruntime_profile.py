"""Profiles of ONNX Runtime read: kernels per run, bodies of control flow left out, broken files named."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from profiled_models import kernel, run

from mtpp.errors import InputError
from mtpp.formats.measured.onnxruntime_profile import looks_like_trace, read_trace


def encoded(events: list[dict[str, Any]]) -> bytes:
    """Return events as a file."""
    return json.dumps(events).encode()


def three_runs() -> list[dict[str, Any]]:
    """Return two nodes in three runs, the first of them cold."""
    events = [{"cat": "Session", "ts": 1, "dur": 5, "ph": "X", "name": "session_initialization", "args": {}}]
    for r, (a, b) in enumerate([(90, 900), (10, 20), (12, 22)]):
        start = 1000 * (r + 1)
        events += [kernel("a", start + 1, a), kernel("b", start + 99, b, "Conv", 1), run(start, 999)]
    return events


def test_the_first_run_is_cold() -> None:
    """Of several runs the first is left out; of each node there is one time per run that is left."""
    trace = read_trace(encoded(three_runs()), "p")
    assert [(n.name, n.kind, n.index, n.durations_us) for n in trace.nodes] == [
        ("a", "Relu", 0, (10, 12)),
        ("b", "Conv", 1, (20, 22)),
    ]
    assert trace.walls_us == (999, 999)
    assert trace.nodes[0].outputs == (("float", (2, 3)),)


def test_a_single_run_counts() -> None:
    """There is nothing to leave out."""
    trace = read_trace(encoded([kernel("a", 5, 7), run(0, 20)]), "p")
    assert trace.nodes[0].durations_us == (7,)


def test_without_events_of_runs_each_time_seen_is_one() -> None:
    """Old profiles have none."""
    trace = read_trace(encoded([kernel("a", 5, 50), kernel("a", 105, 7), kernel("a", 205, 8.5)]), "p")
    assert trace.nodes[0].durations_us == (7, Fraction(17, 2))
    assert trace.walls_us == ()


def test_bodies_are_within_the_node_around_them() -> None:
    """What ran inside another node on its thread does not count again; its shapes are kept."""
    inside = [kernel("add", 20, 10, "Add", 0), kernel("add", 40, 10, "Add", 0, output_type_shape=[{"float": [5]}])]
    trace = read_trace(encoded([kernel("r", 1, 9), *inside, kernel("loop", 15, 60, "Loop", 1), run(0, 100)]), "p")
    assert [node.name for node in trace.nodes] == ["r", "loop"]
    assert trace.inner == {"add": (("float", (5,)),)}


def test_kernels_on_other_threads_are_not_inside() -> None:
    """A parallel executor runs two nodes at once: both count."""
    trace = read_trace(encoded([kernel("a", 1, 50), kernel("b", 10, 20, tid=2), run(0, 100)]), "p")
    assert [node.name for node in trace.nodes] == ["a", "b"]


def test_nodes_of_one_name_are_told_apart_by_their_index() -> None:
    """Names in a model need not be unique."""
    trace = read_trace(encoded([kernel("a", 1, 5, index=3), kernel("a", 10, 6, index=4), run(0, 100)]), "p")
    assert [(node.index, node.durations_us) for node in trace.nodes] == [(3, (5,)), (4, (6,))]


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_profile_that_is_cut_off_says_so(cut: int) -> None:
    """A process that was killed leaves a list that is not closed."""
    data = encoded(three_runs())[:-cut]
    assert looks_like_trace(data)
    with pytest.raises(InputError, match="cut off: the list of events is not closed"):
        read_trace(data, "p")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([kernel("a", 1, -5)], r"/0/dur: .*negative"),
        ([kernel("a", 1, 10**13)], r"/0/dur: .*longer than"),
        ([kernel("a", 1, "5")], r"/0/dur: must be a number, not a string"),
        ([kernel("a", 1, None)], r"/0/dur: must be a number, not null"),
        ([{**kernel("a", 1, 5), "args": []}], r"/0/args: must be an object"),
        ([{key: value for key, value in kernel("a", 1, 5).items() if key != "ts"}], r"/0: missing key 'ts'"),
        ([run(0, 5)], "no kernel of ONNX Runtime is in it"),
        ([kernel("a", 1, 5), 7], "/1: must be an object"),
        ([kernel("a", 1, 5, kind=3)], "op_name: must be a string"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(events: list[Any], problem: str) -> None:
    """Durations that are none, wrong types and empty profiles."""
    with pytest.raises(InputError, match=problem):
        read_trace(encoded(events), "p")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    """JSON has no NaN, and no time is infinite."""
    data = encoded([kernel("a", 1, 5)]).replace(b'"dur": 5', f'"dur": {number}'.encode())
    with pytest.raises(InputError):
        read_trace(data, "p")


def test_shapes_in_another_form_are_left_out() -> None:
    """Nothing is guessed from them."""
    trace = read_trace(encoded([kernel("a", 1, 5, output_type_shape=[{"float": "2x3"}])]), "p")
    assert trace.nodes[0].outputs == ()
