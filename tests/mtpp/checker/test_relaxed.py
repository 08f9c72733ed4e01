"""Relaxed graphs of the verifier: what they keep, and which rule a wrong record breaks."""

from __future__ import annotations

from typing import Any

import pytest
from flow_proofs import claim_of
from graph_strategies import LINK

from mtpp.checker.checks import check_bound
from mtpp.checker.graph import TickGraph
from mtpp.checker.relaxed import Relaxation, relaxation_of, relaxed_graph
from mtpp.checker.tier import Tier
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor


def _graph() -> CostGraph:
    """Return a graph in which ``a`` feeds a view ``v`` and an op ``b``; both feed ``c``, which feeds ``d``."""
    return CostGraph.build(
        name="diamond",
        time_unit="ps",
        ops=[Op("a", 10), Op("v", 0), Op("b", 7), Op("c", 5), Op("d", 1)],
        tensors=[
            Tensor("ta", "a", ("v", "b"), None, 6),
            Tensor("tv", "v", ("c",), None, 9),
            Tensor("tb", "b", ("c",), None, 4),
            Tensor("tc", "c", ("d",), None, 2),
        ],
    )


def _ticks() -> TickGraph:
    return claim_of(_graph(), LINK, 2, [], 0, {}).graph


def _tensors(graph: TickGraph) -> list[tuple[int, str, list[str]]]:
    names = graph.op_names
    return [
        (cost, names[u], [names[v] for v in readers])
        for cost, u, readers in zip(graph.transfer, graph.producer, graph.consumers, strict=True)
    ]


def test_a_bypassed_op_joins_its_tensors() -> None:
    """Those who read its output read its input, at the smaller transfer; the path that it was on stays."""
    graph = relaxed_graph(_ticks(), Relaxation(["v"], ["v"], {}))
    assert isinstance(graph, TickGraph)
    assert graph.op_names == ["a", "b", "c", "d"]
    assert _tensors(graph) == [
        (6, "a", ["b", "c"]),
        (4, "b", ["c"]),
        (2, "c", ["d"]),
        (0, "a", ["c"]),
    ]


def test_paths_through_left_out_ops_stay() -> None:
    """Without the ops in between, ``a`` still comes before ``d``, at no cost."""
    graph = relaxed_graph(_ticks(), Relaxation(["v", "b", "c"], [], {"ta": 1}))
    assert isinstance(graph, TickGraph)
    assert _tensors(graph) == [(1, "a", []), (0, "a", ["d"])]


@pytest.mark.parametrize(
    ("left_out", "bypassed", "lowered", "fault"),
    [
        (["x"], [], {}, "the graph has no op 'x', which is said to be left out"),
        (["v"], ["x"], {}, "the graph has no op 'x', which is said to be bypassed"),
        (["v", "v"], [], {}, "an op is said to be left out twice"),
        (["v"], ["b"], {}, "op 'b' is bypassed but not left out"),
        (["c"], ["c"], {}, "op 'c' cannot be bypassed: it reads 2 tensors and makes 1 that are read"),
        (["d"], ["d"], {}, "op 'd' cannot be bypassed: it reads 1 tensors and makes 0 that are read"),
        ([], [], {"t": 0}, "the graph has no tensor 't', whose transfer is said to be lowered"),
        ([], [], {"ta": 7}, "the transfer of tensor 'ta' was raised from 6 ticks to 7"),
        (["a", "v", "b", "c", "d"], [], {}, "all ops are left out"),
    ],
)
def test_broken_rules_are_named(left_out: list[str], bypassed: list[str], lowered: dict[str, int], fault: str) -> None:
    """A record that does not relax the graph says which rule it breaks, also as the proof of a bound."""
    assert relaxed_graph(_ticks(), Relaxation(left_out, bypassed, lowered)) == fault
    proof = {"relaxed": {"left_out": left_out, "bypassed": bypassed, "lowered": lowered}}
    check, tier = check_bound(claim_of(_graph(), LINK, 2, [], 1, proof), "simple", Tier.EXACT, None, None)
    assert (check.passed, check.detail, tier) == (False, f"simple: {fault}", Tier.NONE)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"left_out": []},
        {"left_out": ["v"], "bypassed": [], "lowered": {}, "more": 1},
        {"left_out": "v", "bypassed": [], "lowered": {}},
        {"left_out": [1], "bypassed": [], "lowered": {}},
        {"left_out": [], "bypassed": [], "lowered": {"ta": -1}},
        {"left_out": [], "bypassed": [], "lowered": {"ta": 0.5}},
    ],
)
def test_malformed_records_are_refused(value: Any) -> None:
    """Other keys and other types are errors that name the place."""
    with pytest.raises(InputError, match="relaxed"):
        relaxation_of({"relaxed": value}, ("lower_bound", "proof"))


def test_proofs_of_the_whole_graph_leave_nothing_out() -> None:
    """Most proofs say nothing of it."""
    assert relaxation_of({"merges": []}, ("lower_bound", "proof")) is None


def test_too_many_paths_leave_the_claim_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A left-out hub stands for all pairs of its makers and readers; who forges a proof is not given the memory."""
    monkeypatch.setattr("mtpp.checker.relaxed.MOST_PATHS", 24)
    ops = [Op(f"a{i}", 1) for i in range(5)] + [Op("hub", 0)] + [Op(f"z{i}", 1) for i in range(5)]
    tensors = [Tensor(f"t{i}", f"a{i}", ("hub",), None, 1) for i in range(5)]
    tensors.append(Tensor("out", "hub", tuple(f"z{i}" for i in range(5)), None, 1))
    graph = CostGraph.build(name="hub", time_unit="ps", ops=ops, tensors=tensors)
    proof = {"relaxed": {"left_out": ["hub"], "bypassed": [], "lowered": {}}}
    check, _ = check_bound(claim_of(graph, LINK, 2, [], 1, proof), "simple", Tier.EXACT, None, None)
    assert check.passed is None
    assert "too many" in check.detail
