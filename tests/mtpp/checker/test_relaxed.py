"""Relaxed graphs of the verifier: what they keep, and which rule a wrong record breaks."""

from __future__ import annotations

import random
from typing import Any

import oracles
import pytest
from flow_proofs import claim_of, random_problem
from graph_strategies import LINK

from mtpp.checker.checks import check_bound
from mtpp.checker.graph import TickGraph
from mtpp.checker.relaxed import Relaxation, relaxation_of, relaxed_graph
from mtpp.checker.report import Tier
from mtpp.checker.stages import stage_figures
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
    graph = relaxed_graph(_ticks(), Relaxation(["v"], ["v"], {}, {}))
    assert isinstance(graph, TickGraph)
    assert graph.op_names == ["a", "b", "c", "d"]
    assert _tensors(graph) == [
        (6, "a", ["b", "c"]),
        (4, "b", ["c"]),
        (2, "c", ["d"]),
        (0, "a", ["c"]),
    ]


def test_charges_are_what_a_stage_pays_in_any_case() -> None:
    """``c`` pays for ``b``, or for its tensor, which is cheaper; what hangs on ``b`` is no more than that either."""
    graph = relaxed_graph(_ticks(), Relaxation(["b"], [], {"b": "c"}, {}))
    assert isinstance(graph, TickGraph)
    assert graph.work == [10, 0, 5 + 4, 1]
    graph = relaxed_graph(_ticks(), Relaxation(["b"], [], {"b": "c"}, {"tb": 3}))
    assert isinstance(graph, TickGraph)
    assert graph.work == [10, 0, 5 + 3, 1]
    graph = relaxed_graph(_ticks(), Relaxation(["a", "b", "c"], [], {"a": "b", "b": "c", "c": "d"}, {}))
    assert isinstance(graph, TickGraph)
    assert graph.work == [0, 1 + 2]  # of ``a`` 6 at most, with ``b`` 4, with ``c`` 2


def test_what_is_charged_is_taken_off_a_bypassed_tensor() -> None:
    """A stage with ``c`` that cuts the tensor of ``d`` has not paid for that and for the work before it."""
    graph = _ticks()
    graph.work[1] = 5
    graph = relaxed_graph(graph, Relaxation(["v"], ["v"], {"v": "c"}, {}))
    assert isinstance(graph, TickGraph)
    assert graph.work == [10, 7, 5 + 5, 1]
    assert _tensors(graph)[0] == (9 - 5, "a", ["b", "c"])


def test_paths_through_left_out_ops_stay() -> None:
    """Without the ops in between, ``a`` still comes before ``d``, at no cost."""
    graph = relaxed_graph(_ticks(), Relaxation(["v", "b", "c"], [], {}, {"ta": 1}))
    assert isinstance(graph, TickGraph)
    assert _tensors(graph) == [(1, "a", []), (0, "a", ["d"])]


@pytest.mark.parametrize(
    ("left_out", "bypassed", "charged", "lowered", "fault"),
    [
        (["x"], [], {}, {}, "the graph has no op 'x', which is said to be left out"),
        (["v"], ["x"], {}, {}, "the graph has no op 'x', which is said to be bypassed"),
        (["v", "v"], [], {}, {}, "an op is said to be left out twice"),
        (["v"], ["b"], {}, {}, "op 'b' is bypassed but not left out"),
        (["c"], ["c"], {}, {}, "op 'c' cannot be bypassed: it reads 2 tensors and makes 1 that are read"),
        (["d"], ["d"], {}, {}, "op 'd' cannot be bypassed: it reads 1 tensor and makes 0 that are read"),
        ([], [], {}, {"t": 0}, "the graph has no tensor 't', whose transfer is said to be lowered"),
        ([], [], {}, {"ta": 7}, "the transfer of tensor 'ta' was raised from 6 ticks to 7"),
        (["a", "v", "b", "c", "d"], [], {}, {}, "all ops are left out"),
        (["b"], [], {"x": "c"}, {}, "the graph has no op 'x', which charges are said to be for"),
        (["b"], [], {"b": "x"}, {}, "the graph has no op 'x', which charges are said to be for"),
        ([], [], {"b": "c"}, {}, "op 'b' is charged on another but not left out"),
        (["b"], [], {"b": "d"}, {}, "op 'b' is charged on 'd', which reads nothing from it"),
        (["b"], [], {"b": "b"}, {}, "op 'b' is charged on 'b', which reads nothing from it"),
        (["b", "c"], [], {"b": "c"}, {}, "op 'b' is charged on 'c', which is left out and not charged"),
    ],
)
def test_broken_rules_are_named(
    left_out: list[str], bypassed: list[str], charged: dict[str, str], lowered: dict[str, int], fault: str
) -> None:
    """A record that does not relax the graph says which rule it breaks, also as the proof of a bound."""
    assert relaxed_graph(_ticks(), Relaxation(left_out, bypassed, charged, lowered)) == fault
    proof = {"relaxed": {"left_out": left_out, "bypassed": bypassed, "charged": charged, "lowered": lowered}}
    check, tier = check_bound(claim_of(_graph(), LINK, 2, [], 1, proof), "simple", Tier.EXACT, None, None)
    assert (check.passed, check.detail, tier) == (False, f"simple: {fault}", Tier.NONE)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"left_out": []},
        {"left_out": ["v"], "bypassed": [], "lowered": {}},
        {"left_out": ["v"], "bypassed": [], "charged": ["v"], "lowered": {}},
        {"left_out": ["v"], "bypassed": [], "charged": {"v": 1}, "lowered": {}},
        {"left_out": ["v"], "bypassed": [], "charged": {}, "lowered": {}, "more": 1},
        {"left_out": "v", "bypassed": [], "charged": {}, "lowered": {}},
        {"left_out": [1], "bypassed": [], "charged": {}, "lowered": {}},
        {"left_out": [], "bypassed": [], "charged": {}, "lowered": {"ta": -1}},
        {"left_out": [], "bypassed": [], "charged": {}, "lowered": {"ta": 0.5}},
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
    proof = {"relaxed": {"left_out": ["hub"], "bypassed": [], "charged": {}, "lowered": {}}}
    check, _ = check_bound(claim_of(graph, LINK, 2, [], 1, proof), "simple", Tier.EXACT, None, None)
    assert check.passed is None
    assert "too many" in check.detail


def _record(pick: random.Random, graph: TickGraph) -> Relaxation:
    """Draw a record that keeps the rules: any ops, charged on any of their readers, any bypassed that may be."""
    names = graph.op_names
    out = [v for v in range(graph.op_count) if pick.random() < 0.6]
    if len(out) == graph.op_count:
        out.pop(pick.randrange(len(out)))
    charged: dict[int, int] = {}
    for u in reversed(graph.order):
        readers = [v for t, maker in enumerate(graph.producer) if maker == u for v in graph.consumers[t]]
        readers = [v for v in readers if v not in out or v in charged]
        if u in out and readers and pick.random() < 0.8:
            charged[u] = pick.choice(readers)
    inputs = [sum(v in readers for readers in graph.consumers) for v in range(graph.op_count)]
    made = [t for t, readers in enumerate(graph.consumers) if readers]
    outputs = [sum(graph.producer[t] == v for t in made) for v in range(graph.op_count)]
    bypassed = [v for v in out if inputs[v] == outputs[v] == 1 and pick.random() < 0.6]
    lowered = {graph.tensor_names[t]: pick.randint(0, graph.transfer[t]) for t in made if pick.random() < 0.2}
    pick.shuffle(bypassed)
    return Relaxation(
        [names[v] for v in out],
        [names[v] for v in bypassed],
        {names[u]: names[v] for u, v in charged.items()},
        lowered,
    )


@pytest.mark.parametrize("part", range(4))
def test_no_record_that_keeps_the_rules_raises_the_cost_of_a_stage(part: int) -> None:
    """Whatever is left out, charged and bypassed: relaxed stages cost and hold no more than whole ones."""
    compared = charged = 0
    for seed in range(part, 600, 4):
        pick = random.Random(seed)
        problem = random_problem(seed, op_count=pick.randint(3, 7))
        graph, system, k, _ = problem
        whole = claim_of(graph, system, k, [], 0, {}).graph
        relaxation = _record(pick, whole)
        relaxed = relaxed_graph(whole, relaxation)
        assert isinstance(relaxed, TickGraph), relaxed
        charged += relaxed.work != [whole.work[whole.op_names.index(name)] for name in relaxed.op_names]
        assignments = [list(stages) for stages in oracles.monotone_assignments(graph, k)]
        for stages in pick.sample(assignments, min(12, len(assignments))):
            stage_of = dict(zip(whole.op_names, stages, strict=True))
            figures = stage_figures(whole, stages, system.to_document())
            again = stage_figures(relaxed, [stage_of[name] for name in relaxed.op_names], system.to_document())
            for stage, figure in again.items():
                assert figure.cost <= figures[stage].cost, (seed, relaxation, stages)
                assert figure.peak_bytes <= figures[stage].peak_bytes, (seed, relaxation, stages)
                compared += 1
    assert compared > 1_000
    assert charged > 40
