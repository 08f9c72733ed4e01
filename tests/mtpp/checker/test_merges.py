"""Replaying merges: those of the reduction hold, and whatever passes leaves every partition as cheap as it was."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import oracles
import pytest
from graph_strategies import NO_MEMORY, chain, merging_graph
from plan_documents import graph_document, plan_document
from refusals import refusal

from mtpp.checker.claim import together_classes
from mtpp.checker.graph import TickGraph, model_in_ticks
from mtpp.checker.merged import MergedGraph
from mtpp.checker.merges import replay_merges
from mtpp.checker.plan import verify_plan
from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.reduction.reduced_instance import ALL_RULES
from mtpp.solvers.reduction.reduction import reduce_instance

STREAMS = Device("streams", 1, 1, Link(10**12), 15, 3)
LIMITED = Device("limited", 1, 1, Link(10**12), None, 3, memory_bytes=14)
BOTH = Device("both", 1, 1, Link(10**12), 9, 3, memory_bytes=14)


def in_ticks(graph: CostGraph) -> TickGraph:
    """Return a graph as the verifier sees it; costs are whole."""
    return model_in_ticks(graph_document(graph), 10**12, 1)


def replay(graph: CostGraph, merges: list[list[Any]], system: Device = NO_MEMORY) -> MergedGraph | str:
    """Replay merges of a graph in which nothing has to share a stage."""
    return replay_merges(in_ticks(graph), list(range(graph.op_count)), system.to_document(), merges)


def figures(
    work: list[int], params: list[int], tensors: list[tuple[int, int, list[int]]]
) -> tuple[Counter[Any], Counter[Any]]:
    """Return the ops and tensors of a graph whatever their numbers, told apart by work and parameters as far as can be.

    Parameters
    ----------
    tensors
        Transfer, producer and readers.
    """
    op = list(zip(work, params, strict=True))
    return Counter(op), Counter((cost, op[u], tuple(sorted(op[v] for v in readers))) for cost, u, readers in tensors)


@pytest.mark.parametrize("system", [NO_MEMORY, STREAMS, LIMITED, BOTH], ids=lambda system: system.name)
@pytest.mark.slow
def test_what_the_reduction_does_holds(system: Device) -> None:
    """Its record replays to its last instance, with ops that must share a stage merged first."""
    replayed = 0
    for seed in range(150):
        graph = merging_graph(seed, 16, time_unit="ps", largest_params=0 if system is NO_MEMORY else 4)
        first = contract(Instance.build(graph, Machine.uniform(3, system)), [[3, 7]] if seed % 2 else [])
        reduced = reduce_instance(first.instance)
        names = first.group_of.tolist()
        stands_for = [names.index(v) for v in range(first.instance.op_count)]
        merges = reduced.record(stands_for)
        ticks = in_ticks(graph)
        classes = together_classes(ticks, [["op3", "op7"]] if seed % 2 else [])
        merged = replay_merges(ticks, classes, system.to_document(), merges)
        assert isinstance(merged, MergedGraph), (seed, merged)
        last = reduced.instance
        pins = [last.pins[b:e].tolist() for b, e in zip(last.pin_offsets[:-1], last.pin_offsets[1:], strict=True)]
        rows = [(cost, u, rest) for cost, (u, *rest) in zip(last.transfer.tolist(), pins, strict=True) if rest]
        theirs = [(cost, u, list(readers)) for cost, u, readers in merged.tensors]
        assert figures(merged.work, merged.param_bytes, theirs) == figures(
            last.work.tolist(), last.param_bytes.tolist(), rows
        )
        replayed += len(merges)
    assert replayed > 150


def dearer_stages(graph: CostGraph, system: Device, moves: dict[int, int]) -> list[tuple[int, ...]]:
    """Return the partitions into three stages of which a stage gets dearer, or an edge goes back, by moving ops."""
    found = []
    for stages in oracles.monotone_assignments(graph, 3):
        moved = tuple(stages[moves.get(v, v)] for v in range(graph.op_count))
        back = any(moved[u] > moved[v] for u, readers in oracles.tensors_of(graph) for v in readers)
        if back or any(
            oracles.stage_cost(graph, system, [v for v, s in enumerate(moved) if s == b])
            > oracles.stage_cost(graph, system, [v for v, s in enumerate(stages) if s == b])
            for b in range(3)
        ):
            found.append(stages)
    return found


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.slow
def test_what_passes_makes_no_stage_dearer(rule: str) -> None:
    """Any merge that somebody might think of: it is refused, or no partition suffers from it."""
    passed = 0
    for seed in range(400):
        draw = random.Random(seed)
        system = draw.choice([NO_MEMORY, NO_MEMORY, STREAMS, LIMITED])
        graph = merging_graph(seed, 6, time_unit="ps", largest_params=0 if system is NO_MEMORY else 6)
        for _ in range(8):
            *movers, leader = draw.sample(range(6), draw.choice((2, 2, 3, 4)) if "region" in rule else 2)
            if isinstance(replay(graph, [[rule, *movers, leader]], system), MergedGraph):
                passed += 1
                assert dearer_stages(graph, system, dict.fromkeys(movers, leader)) == [], (seed, movers, leader)
    assert passed > 30


def test_an_op_stands_for_its_group() -> None:
    """A later merge may name any member, and is judged by what the whole group costs."""
    graph = chain([9, 1, 1, 9], [2, 3, 4])
    assert isinstance(replay(graph, [["pull-down", 2, 3], ["pull-down", 1, 2]]), MergedGraph)
    assert isinstance(replay(graph, [["pull-down", 2, 3], ["pull-down", 1, 3]]), MergedGraph)
    merged = replay(graph, [["pull-down", 1, 2], ["pull-down", 1, 3]])
    assert merged == MergedGraph([9, 11], [0, 0], [(2, 0, (1,))], [0, 1, 1, 1])
    again = replay(graph, [["pull-down", 1, 2], ["pull-down", 2, 1]])
    assert again == "merge 1 ('pull-down' of op 'op2' to 'op1'): its ops are one already"


def graph_of(ops: dict[str, int], tensors: list[tuple[str, str, int]]) -> CostGraph:
    """Build a graph from the work of ops called by one letter and (producer, readers, transfer) of tensors."""
    return CostGraph.build(
        name="drawn",
        time_unit="ps",
        ops=[Op(name, work, param_bytes=work) for name, work in ops.items()],
        tensors=[Tensor(f"t{i}", u, tuple(readers), None, cost) for i, (u, readers, cost) in enumerate(tensors)],
    )


PATHS = graph_of(
    {"a": 9, "b": 0, "c": 9, "d": 9, "e": 9},
    [("a", "b", 1), ("b", "cd", 5), ("b", "c", 1), ("c", "e", 1), ("e", "d", 1)],
)
GATE = graph_of(
    {"i": 90, "a": 19, "p": 4, "q": 4, "m": 2, "z": 90},
    [("i", "a", 30), ("a", "pm", 40), ("p", "q", 1), ("q", "m", 1), ("m", "z", 20)],
)
MISSED = graph_of({"v": 9, "b": 1, "w": 1, "r": 90}, [("v", "b", 10), ("v", "w", 100), ("b", "w", 0), ("b", "r", 50)])


@pytest.mark.parametrize(
    ("graph", "merge", "fault"),
    [
        (PATHS, ["first-reader", 1, 2], None),
        (PATHS, ["pull-down", 1, 2], "the op that moves has another reader"),
        (PATHS, ["first-reader", 1, 3], "another neighbour of the op that moves does not lie beyond"),
        (PATHS, ["last-producer", 3, 4], "together they cost 15 ticks beside the other's work, that one alone 2"),
        (PATHS, ["last-producer", 1, 2], "no edge that way joins them"),
        (PATHS, ["pull-up", 3, 4], "the op that moves has another producer"),
        (PATHS, ["pull-sideways", 1, 2], "no such rule"),
        (PATHS, ["pull-down", 0, 1, 2], "this rule moves one op"),
        (PATHS, ["first-reader", 1, 5], "there is no op 5"),
        (PATHS, ["first-reader", 1, 1], "its ops are one already"),
        (GATE, ["region-up", 2, 3, 4, 1], None),
        (GATE, ["region-up", 4, 2, 3, 1], None),
        (GATE, ["region-down", 2, 3, 4, 1], "not every op of the region lies on the far side of the one they move to"),
        (GATE, ["region-up", 2, 4, 1], "the region has a neighbour that does not lie beyond the op they move to"),
        (GATE, ["region-up", 2, 3, 4, 5, 1], "a part of the region costs a stage less than all of it"),
        (GATE, ["region-up", 3, 4, 1], "not every op of the region lies on the far side of the one they move to"),
        (MISSED, ["region-up", 1, 2, 0], "a stage without an op of the region might miss it"),
    ],
)
def test_merges_that_hold_and_that_do_not(graph: CostGraph, merge: list[Any], fault: str | None) -> None:
    """Each condition of each rule is looked at, and the first that fails is named."""
    outcome = replay(graph, [merge])
    if fault is None:
        assert isinstance(outcome, MergedGraph)
    else:
        assert isinstance(outcome, str)
        assert outcome.startswith("merge 0 (")
        assert outcome.endswith(fault)


def test_memory_limits_what_may_move() -> None:
    """Parameters are streamed if they do not fit and may not move under a limit; working memory forbids all."""
    merges = [["region-up", 2, 3, 4, 1]]
    for system, fault in [
        (Device("s", 1, 1, Link(10**12), 209), None),
        (Device("s", 1, 1, Link(10**12), 208), None),
        (Device("s", 1, 1, Link(10**12 // 2), 208), "a part of the region costs a stage less than all of it"),
        (Device("s", 1, 1, Link(10**12), None, 0, "reserve", 209), None),
        (Device("s", 1, 1, Link(10**12), None, 0, "reserve", 208), "may not move where a stage's memory is limited"),
        (Device("s", 1, 1, Link(10**12), 208, 0, "order"), "where activations depend on the order of the ops"),
        (Device("s", 1, 1, Link(10**12), 209, 0, "order"), None),
    ]:
        outcome = replay(GATE, merges, system)
        assert isinstance(outcome, MergedGraph) if fault is None else str(outcome).endswith(fault)


def test_large_regions_are_refused() -> None:
    """Checking one takes longer than reading it: there is a limit."""
    graph = chain([0] * 300, [1] * 299)
    assert isinstance(replay(graph, [["region-up", *range(1, 200), 0]]), MergedGraph)
    assert str(replay(graph, [["region-up", *range(1, 300), 0]])).endswith("more than 256 ops is not checked")


def downset_plan(merges: Any) -> dict[str, Any]:
    """Return a correct plan of a chain whose bound says that it was found by enumeration, after some merges."""
    plan: dict[str, Any] = plan_document(chain([9, 1, 9], [2, 3]), NO_MEMORY, 2, [0, 1, 1], embed=True)
    plan["lower_bound"] |= {"method": "downset", "tier": "enumerated", "proof": proof_after(merges)}
    return plan


def proof_after(merges: Any, cutoff: int | None = None) -> dict[str, Any]:
    """Return a proof by a search whose counts nobody looks at."""
    counts = {"rules": ["fit"], "downsets": 1, "pairs": 0, "digest": "0" * 64}
    return {"merges": merges, "cutoff": 10 if cutoff is None else cutoff, "k": 2, **counts}


@pytest.mark.parametrize(
    ("merges", "passed", "detail"),
    [
        ([["pull-down", 1, 2]], None, "downset: 1 merge holds; the search behind it was left out by ‹shallow›"),
        ([], None, "downset: no merges; the search behind it was left out by ‹shallow›"),
        (
            [["pull-up", 1, 0]],
            False,
            "downset: merge 0 ('pull-up' of op 'op1' to 'op0'): "
            "together they cost 4 ticks beside the other's work, that one alone 2",
        ),
    ],
)
def test_verify_replays_the_merges_of_an_enumerated_bound(
    merges: list[list[Any]], passed: bool | None, detail: str
) -> None:
    """They are checked without re-running the search; one that does not hold leaves no bound."""
    report = verify_plan(downset_plan(merges), None)
    check = next(check for check in report.checks if check.name == "lower bound")
    assert (check.passed, check.detail) == (passed, detail)
    assert report.tier == ("none" if passed is False else "enumerated")
    assert not report.bound_rechecked
    assert report.passed is (passed is None)


def test_ops_that_must_share_a_stage_are_merged_first() -> None:
    """A merge may rest on them, and they on it."""
    plan = downset_plan([["pull-down", 0, 2]])
    assert verify_plan(plan, None).tier == "none"
    plan["together"] = [["op1", "op2"]]
    plan["lower_bound"]["proof"] = proof_after([["pull-up", 2, 0]])
    assert verify_plan(plan, None).tier == "none"
    cheap: dict[str, Any] = plan_document(chain([1, 1, 9], [2, 3]), NO_MEMORY, 2, [0, 1, 1], embed=True)
    cheap["lower_bound"] |= {"method": "downset", "tier": "enumerated", "proof": proof_after([["pull-down", 0, 2]], 9)}
    assert verify_plan(cheap, None).tier == "none"
    cheap["together"] = [["op1", "op2"]]
    assert verify_plan(cheap, None).tier == "enumerated"


@pytest.mark.parametrize(
    ("merges", "where"),
    [
        ({}, ""),
        ([3], "/0"),
        ([["pull-down", 1]], "/0"),
        ([["pull-down", 1, 2], [4, 1, 2]], "/1/0"),
        ([["pull-down", 1, "op2"]], "/0/2"),
        ([["pull-down", -1, 2]], "/0/1"),
        ([["pull-down", 1, True]], "/0/2"),
    ],
)
def test_malformed_merges_are_bad_input(merges: Any, where: str) -> None:
    """What is no list of merges is refused at its pointer."""
    assert refusal(verify_plan, downset_plan(merges), None).where == "/lower_bound/proof/merges" + where
