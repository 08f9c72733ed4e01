"""Ticks, order, peak memory and stage costs of the verifier, on numbers worked out by hand and against the oracles."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import oracles
import pytest
from graph_strategies import LINK, chain, problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_documents import SHA256, graph_document, plan_document

from mtpp.checker.document import STAGE_FIGURES
from mtpp.checker.graph import model_in_ticks
from mtpp.checker.plan import verify_plan
from mtpp.checker.stages import stage_figures
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.machine.link import Link

KILO_LINK = 1000
"""Bytes per second: one byte takes 10^9 ticks."""


def figures(graph: CostGraph, system: Device, stage_of: list[int], k: int = 1) -> dict[int, Any]:
    """Return the verifier's stage figures of an assignment."""
    ticks = model_in_ticks(graph_document(graph), system.link.bandwidth_bytes_per_s, k)
    return stage_figures(ticks, stage_of, system.to_document())


def abstract_ticks(works: list[Any], k: int) -> tuple[int, list[int]]:
    """Return ticks per unit and work in ticks of a chain with free tensors."""
    document = graph_document(chain([0] * len(works), [0] * (len(works) - 1)))
    for op, work in zip(document["ops"], works, strict=True):
        op["work"] = work
    ticks = model_in_ticks(document, 1, k)
    return ticks.ticks_per_unit, ticks.work


def test_the_same_graph_in_every_unit_has_the_same_ticks() -> None:
    """A work of 1.5 ms is 1,500,000,000 ticks however it is written."""
    for unit, work in [("s", "0.0015"), ("ms", "1.5"), ("us", "1500"), ("ns", "1.5e6"), ("ps", "1500000000")]:
        document = graph_document(chain([1], [], unit))
        document["ops"][0]["work"] = Decimal(work)
        assert model_in_ticks(document, 1, 1).work == [1_500_000_000]


def test_timed_costs_are_rounded_up_one_by_one() -> None:
    """0.0001 ns, 2 ns and 7 bytes at 3 bytes/s: each cost goes up to the next picosecond by itself."""
    graph = CostGraph.build(
        name="rounding",
        time_unit="ns",
        ops=[Op("a", Fraction(1, 10000)), Op("b", 2)],
        tensors=[Tensor("t", "a", ("b",), 7, None), Tensor("u", "a", ("b",), 7, Fraction(5, 10000))],
    )
    ticks = model_in_ticks(graph_document(graph), 3, 1)
    assert ticks.work == [1, 2000]
    assert ticks.transfer == [2_333_333_333_334, 1]


@pytest.mark.parametrize(
    ("works", "k", "per_unit", "ticks"),
    [
        ([3, 5], 4, 1, [3, 5]),
        ([Decimal("3.0"), 5], 4, 1, [3, 5]),
        # 2^53 = 9007199254740992: 1 · 0.9 · 10^16 is below, so 10^16 fits; with k = 2 only 10^15 does.
        ([Decimal("0.4"), Decimal("0.5")], 1, 10**16, [4 * 10**15, 5 * 10**15]),
        ([Decimal("0.4"), Decimal("0.5")], 2, 10**15, [4 * 10**14, 5 * 10**14]),
        # Exactly 2^53 does not fit.
        ([Decimal("900719925474099.2")], 1, 1, [900719925474100]),
        ([Decimal("900719925474099.1")], 1, 10, [9007199254740991]),
        # Already too large at one tick per unit: rounded up to whole units.
        ([Fraction(2**54 + 1, 2), 1], 1, 1, [2**53 + 1, 1]),
        ([Fraction(1, 3)], 1, 10**16, [3333333333333334]),
    ],
)
def test_abstract_ticks_per_unit(works: list[Any], k: int, per_unit: int, ticks: list[int]) -> None:
    """Whole costs stay as they are; others get the largest power of ten that keeps k times their sum below 2^53."""
    assert abstract_ticks(works, k) == (per_unit, ticks)


def test_transfers_of_unread_tensors_count_for_the_ticks() -> None:
    """The sum behind ticks per unit is over all tensors, read or not."""
    document = graph_document(chain([Fraction(1, 2)], []))
    assert model_in_ticks(document, 1, 1).ticks_per_unit == 10**16
    document["tensors"] = [{"name": "t", "producer": "op0", "consumers": [], "transfer": 1000}]
    assert model_in_ticks(document, 1, 1).ticks_per_unit == 10**12


def test_one_tensor_with_two_readers_is_paid_once() -> None:
    """Archer et al. (2024), Figure 2 (left): v and w read the same tensor, so io(S, T) is 2 and not 3."""
    graph = CostGraph.build(
        name="figure 2",
        time_unit="1",
        ops=[Op(name, 0) for name in "xuvw"],
        tensors=[Tensor("tx", "x", ("w",), None, 1), Tensor("tu", "u", ("v", "w"), None, 1)],
    )
    both = figures(graph, LINK, [0, 0, 1, 1])
    assert (both[0].output, both[1].input) == (2, 2)
    apart = figures(graph, LINK, [0, 0, 1, 2])
    assert (apart[0].output, apart[1].input, apart[2].input) == (2, 1, 2)


def test_a_tensor_made_and_read_inside_is_paid_once_when_it_leaves() -> None:
    """A tensor read by its own stage and two later ones costs its maker one output and each reader one input."""
    graph = CostGraph.build(
        name="fan",
        time_unit="1",
        ops=[Op(name, 1) for name in "abcde"],
        tensors=[Tensor("t", "a", tuple("bcde"), None, 10), Tensor("unread", "a", (), None, 99)],
    )
    stages = figures(graph, LINK, [0, 0, 1, 2, 2])
    assert [stages[s].cost for s in range(3)] == [2 + 10, 1 + 10, 2 + 10]


def peak_graph() -> CostGraph:
    """Make x, then a → b → c → d: x feeds a and d, a feeds b and c; b also makes a tensor that nothing reads."""
    return CostGraph.build(
        name="peak",
        time_unit="s",
        ops=[Op("x", 1), Op("a", 1, "", 40), Op("b", 1), Op("c", 1), Op("d", 1, "", 2)],
        tensors=[
            Tensor("tx", "x", ("a", "d"), 1, None),
            Tensor("ta", "a", ("b", "c"), 10, None),
            Tensor("tb", "b", ("c",), 100, None),
            Tensor("unread", "b", (), 1000, None),
            Tensor("tc", "c", ("d",), 10000, None),
            Tensor("unknown", "a", ("d",), None, 0),
        ],
    )


@pytest.mark.parametrize(
    ("stage_of", "peaks"),
    [
        # Steps of x a b c d: 1; 1+10; 1+10+100+1000; 1+10+100+10000; 1+10000.
        ([0, 0, 0, 0, 0], [10111]),
        # x alone: its tensor leaves. a b c d: tx from a to d; as above.
        ([0, 1, 1, 1, 1], [1, 10111]),
        # x a: tx and ta leave. b c d: 10+100+1000; 10+100+10000; 10000+1 (tx is first used by d).
        ([0, 0, 1, 1, 1], [11, 10110]),
        # a b: tx is used at a only (1+10), then 10+100+1000. c d: 10+100+10000.
        ([0, 1, 1, 2, 2], [1, 1110, 10110]),
        # d alone: tx and tc.
        ([0, 0, 0, 0, 1], [10111, 10001]),
    ],
)
def test_peak_in_order_by_hand(stage_of: list[int], peaks: list[int]) -> None:
    """The most bytes live at any step, for spans that begin, end and cross at different stages."""
    system = Device("order", 1, 1, Link(KILO_LINK), fast_memory_bytes=1000, peak="order")
    stages = figures(peak_graph(), system, stage_of)
    assert [stages[s].peak_bytes for s in range(len(peaks))] == peaks
    for stage in stages.values():
        excess = max(0, stage.param_bytes + stage.peak_bytes - 1000)
        assert stage.overflow == excess * 10**9


def test_overflow_with_a_reserve_by_hand() -> None:
    """42 bytes of parameters and 8 reserved in 45 bytes: 5 too many, 5·10^12 / 3 ticks, rounded up."""
    system = Device("reserve", 1, 1, Link(3), fast_memory_bytes=45, activation_reserve_bytes=8)
    stages = figures(peak_graph(), system, [0, 0, 0, 0, 0])
    assert (stages[0].param_bytes, stages[0].peak_bytes) == (42, 8)
    assert stages[0].overflow == 1_666_666_666_667
    apart = figures(peak_graph(), system, [0, 0, 0, 0, 1])
    assert [apart[s].overflow for s in (0, 1)] == [1_000_000_000_000, 0]


def test_own_order_is_file_order_as_far_as_edges_allow() -> None:
    """With c → a in the file order a b c d the order is b c a d: the first op in the file that is ready."""
    graph = CostGraph.build(
        name="order",
        time_unit="1",
        ops=[Op(name, 1) for name in "abcd"],
        tensors=[Tensor("t", "c", ("a",), None, 1)],
    )
    assert model_in_ticks(graph_document(graph), 1, 1).order == [1, 2, 0, 3]
    stages = figures(graph, LINK, [0, 0, 0, 0])
    assert (stages[0].first, stages[0].last) == ("b", "d")


@settings(max_examples=150, deadline=None)
@given(problem=problems(), data=st.data())
def test_stage_figures_are_the_oracles(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """Every figure of every stage is the oracle's, for any assignment, monotone or not."""
    graph, system, k = problem
    stage_of = data.draw(st.lists(st.integers(0, k - 1), min_size=graph.op_count, max_size=graph.op_count))
    for s, stage in figures(graph, system, stage_of, k).items():
        expected = oracles.stage_figures(graph, system, [v for v, b in enumerate(stage_of) if b == s], k)
        assert {name: getattr(stage, name) for name in STAGE_FIGURES if name in expected} == expected


def test_a_large_plan_is_verified() -> None:
    """A graph of 400 ops with hyperedges, shuffled file order and fractional costs passes against its model."""
    graph = random_graph(5, 400, time_unit="us", fractional=True)
    order = oracles.own_order(graph)
    stages = [0] * graph.op_count
    for place, v in enumerate(order):
        stages[v] = place // 50
    plan = plan_document(graph, LINK, 8, stages, embed=True)
    report = verify_plan(plan, graph_document(graph), graph_sha256=SHA256, model_given=True)
    assert report.passed
    assert report.tier == "exact"
