"""Proofs of the simple bound: which ops must share a stage, and what the proofs may say."""

from __future__ import annotations

from typing import Any

import oracles
import pytest
from graph_strategies import LINK, abstract_graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_documents import graph_document, plan_document
from refusals import refusal

from mtpp.checker.claim import together_classes
from mtpp.checker.graph import model_in_ticks
from mtpp.checker.plan import Report, verify_plan
from mtpp.inference.graph import CostGraph, Op, Tensor


def ladder() -> CostGraph:
    """Make a → b → c → d → e and a side op s that reads a and feeds e; works 1, 2, 4, 8, 16 and 32."""
    names = "abcdes"
    arcs = ["ab", "bc", "cd", "de", "as", "se"]
    return CostGraph.build(
        name="ladder",
        time_unit="1",
        ops=[Op(name, 2**i) for i, name in enumerate(names)],
        tensors=[Tensor(arc, arc[0], (arc[1],), None, 1) for arc in arcs],
    )


def check_largest(together: list[list[str]], ops: list[str], **changes: Any) -> Report:
    """Verify the one-stage plan of the ladder whose bound says that *ops* share a stage."""
    graph = ladder()
    work = sum(int(graph.work[graph.op_names.index(name)]) for name in set(ops) & set(graph.op_names))
    plan = plan_document(graph, LINK, 2, [0] * 6, together=together, embed=True)
    proof = {"rule": "largest-op", "ops": ops, "work": work, **changes}
    plan["lower_bound"] = {"value": work, "method": "simple", "tier": "exact", "proof": proof}
    plan["ratio"] = plan["bottleneck"] / work
    plan["optimal"] = plan["bottleneck"] == work
    return verify_plan(plan, None)


@pytest.mark.parametrize(
    ("together", "ops", "proven"),
    [
        ([], ["s"], True),
        ([], ["a"], True),
        ([], ["a", "b"], False),
        ([["a", "b"]], ["a", "b"], True),
        ([["a", "b"]], ["a", "b", "c"], False),
        ([["a", "b"], ["b", "d"]], ["a", "d"], True),
        ([["a", "b"], ["b", "d"]], ["a", "b", "c", "d"], True),
        ([["a", "d"]], ["b", "c"], True),
        ([["a", "d"]], ["a", "s"], False),
        ([["a", "e"]], ["a", "b", "c", "d", "e", "s"], True),
        ([["a", "c"], ["b", "d"]], ["a", "b", "c", "d"], True),
        ([["a", "b"], ["c", "d"]], ["a", "c"], False),
        ([["a", "b", "c", "d", "e", "s"]], ["b", "s"], True),
        ([["c", "s"], ["b", "d"]], ["b", "c", "d", "s"], True),
    ],
)
def test_ops_of_a_proof_must_be_bound_to_one_stage(together: list[list[str]], ops: list[str], proven: bool) -> None:
    """Overlapping groups merge and take in whatever lies on a path between their members; nothing else does."""
    report = check_largest(together, ops)
    assert report.passed is proven
    assert report.tier == ("exact" if proven else "none")


def test_two_groups_that_cross_merge() -> None:
    """Groups {a, d} and {b, c} with edges a → b and c → d form a cycle when contracted, so all four share a stage."""
    graph = CostGraph.build(
        name="crossing",
        time_unit="1",
        ops=[Op(name, 1) for name in "abcd"],
        tensors=[Tensor("t", "a", ("b",), None, 1), Tensor("u", "c", ("d",), None, 1)],
    )
    ticks = model_in_ticks(graph_document(graph), 1, 1)
    assert len(set(together_classes(ticks, [["a", "d"], ["b", "c"]]))) == 1
    assert len(set(together_classes(ticks, [["a", "d"]]))) == 3


@pytest.mark.parametrize("work", [32, 64])
def test_an_op_is_listed_once(work: int) -> None:
    """Listing an op twice is no proof, whether its work is counted once or twice."""
    report = check_largest([], ["s", "s"], work=work)
    assert not report.passed
    assert report.tier == "none"


@settings(max_examples=60, deadline=None)
@given(graph=abstract_graphs(min_ops=2, max_ops=5, fractional=False), data=st.data())
def test_classes_are_what_every_partition_agrees_on(graph: CostGraph, data: st.DataObject) -> None:
    """Two ops have the same class exactly if no partition that keeps the groups puts them apart."""
    ops = st.integers(0, graph.op_count - 1)
    groups = data.draw(st.lists(st.lists(ops, min_size=1, max_size=3), max_size=2))
    kept = [
        stages
        for stages in oracles.monotone_assignments(graph, graph.op_count)
        if all(len({stages[v] for v in group}) == 1 for group in groups)
    ]
    ticks = model_in_ticks(graph_document(graph), 1, 1)
    classes = together_classes(ticks, [[graph.op_names[v] for v in group] for group in groups])
    for u in range(graph.op_count):
        for v in range(u):
            assert (classes[u] == classes[v]) == all(stages[u] == stages[v] for stages in kept)


@settings(max_examples=60, deadline=None)
@given(graph=abstract_graphs(max_ops=5), k=st.integers(1, 3))
def test_simple_bound_is_below_every_partition(graph: CostGraph, k: int) -> None:
    """What passes as proven is at most the optimum by brute force."""
    plan = plan_document(graph, LINK, k, [0] * graph.op_count, embed=True)
    assert verify_plan(plan, None).tier == "exact"
    assert plan["lower_bound"]["value"] <= oracles.brute_force_optimum(graph, LINK, k)


@pytest.mark.parametrize(
    ("change", "passes"),
    [({}, True), ({"k": 2}, False), ({"total_work": 62}, False)],
)
def test_average_work_is_recomputed(change: dict[str, int], passes: bool) -> None:
    """The average is over the plan's own k and the work of all ops, rounded up."""
    plan = plan_document(ladder(), LINK, 4, [0] * 6, embed=True)
    proof = {"rule": "average-work", "total_work": 63, "k": 4, **change}
    plan["lower_bound"] = {"value": 16, "method": "simple", "tier": "exact", "proof": proof}
    plan["ratio"] = 63 / 16
    report = verify_plan(plan, None)
    assert report.passed is passes


def test_average_rounded_down_or_up_too_far_fails() -> None:
    """63 ticks in 4 stages leave 16 for one of them: 15 is not what the proof gives and 17 is not proven."""
    for value in (15, 17):
        plan = plan_document(ladder(), LINK, 4, [0] * 6, embed=True)
        proof = {"rule": "average-work", "total_work": 63, "k": 4}
        plan["lower_bound"] = {"value": value, "method": "simple", "tier": "exact", "proof": proof}
        plan["ratio"] = 63 / value
        assert verify_plan(plan, None).tier == "none"


@pytest.mark.parametrize(
    ("proof", "where"),
    [
        ({"rule": "largest-op", "ops": "a", "work": 1}, "/lower_bound/proof/ops"),
        ({"rule": "largest-op", "ops": ["a", 7], "work": 1}, "/lower_bound/proof/ops/1"),
        ({"rule": "largest-op", "ops": ["a"]}, "/lower_bound/proof/work"),
        ({"rule": "largest-op", "ops": ["a"], "work": 1, "extra": 0}, "/lower_bound/proof/extra"),
        ({"rule": "average-work", "total_work": 1.5, "k": 1}, "/lower_bound/proof/total_work"),
        ({"rule": "average-work", "total_work": 1, "k": 0}, "/lower_bound/proof/k"),
        ({"rule": 3}, "/lower_bound/proof/rule"),
        ({}, "/lower_bound/proof/rule"),
    ],
)
def test_malformed_proofs_are_bad_input(proof: dict[str, Any], where: str) -> None:
    """A proof that is not of its rule's shape is refused at its pointer."""
    plan = plan_document(ladder(), LINK, 4, [0] * 6, embed=True)
    plan["lower_bound"]["proof"] = proof
    assert refusal(verify_plan, plan, None).where == where


def test_a_long_path_between_members_needs_no_recursion() -> None:
    """A group of the two ends of a chain of 20,000 ops takes in the whole chain."""
    count = 20_000
    document = graph_document(random_graph(0, 1))
    document["ops"] = [{"name": f"op{i}", "work": 1} for i in range(count)]
    document["tensors"] = [
        {"name": f"t{i}", "producer": f"op{i}", "consumers": [f"op{i + 1}"], "transfer": 1} for i in range(count - 1)
    ]
    ticks = model_in_ticks(document, 1, 1)
    assert len(set(together_classes(ticks, [["op0", f"op{count - 1}"]]))) == 1
    assert len(set(together_classes(ticks, [["op5", "op9"]]))) == count - 4
