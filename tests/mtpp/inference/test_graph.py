"""CostGraph: what it refuses, its order, and the way to networkx and back."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import oracles
import pytest
from graph_strategies import graphs
from hypothesis import given

from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor


def _build(ops: list[Op], tensors: list[Tensor], time_unit: str = "1") -> CostGraph:
    return CostGraph.build(name="g", time_unit=time_unit, ops=ops, tensors=tensors)


A, B, C = Op("a", 1), Op("b", 2), Op("c", 3)


@pytest.mark.parametrize(
    ("ops", "tensors", "where", "problem"),
    [
        ([], [], "/ops", "no ops"),
        ([A, A], [], "/ops/1/name", "duplicate name 'a'"),
        ([Op("", 1)], [], "/ops/0/name", "empty name"),
        ([Op("a", -1)], [], "/ops/0/work", "negative"),
        ([Op("a", 0.5)], [], "/ops/0/work", "not an exact number"),  # type: ignore[arg-type]
        ([Op("a", 1, "", 2**62)], [], "/ops/0/param_bytes", "below 2^62"),
        ([A, B], [Tensor("t", "x", ("b",), transfer=1)], "/tensors/0/producer", "no op is called 'x'"),
        ([A, B], [Tensor("t", "a", ("x",), transfer=1)], "/tensors/0/consumers/0", "no op is called 'x'"),
        ([A, B], [Tensor("t", "a", ("b", "b"), transfer=1)], "/tensors/0/consumers/1", "duplicate consumer"),
        ([A, B], [Tensor("t", "a", ("b", "a"), transfer=1)], "/tensors/0/consumers/1", "self-loop"),
        ([A, B], [Tensor("t", "a", ("b",))], "/tensors/0", "no cost"),
        ([A, B], [Tensor("t", "a", ("b",), bytes=5)], "/tensors/0", "bytes without transfer"),
        ([A, B], [Tensor("t", "a", ("b",), transfer=-1)], "/tensors/0/transfer", "negative"),
        (
            [A, B, C],
            [Tensor(u + v, u, (v,), transfer=1) for u, v in ("ab", "bc", "ca")],
            "/tensors",
            "a -> b -> c -> a",
        ),
    ],
)
def test_refuses_what_is_no_graph(ops: list[Op], tensors: list[Tensor], where: str, problem: str) -> None:
    """Every kind of broken graph is refused with a JSON pointer to the place."""
    with pytest.raises(InputError) as caught:
        _build(ops, tensors)
    assert caught.value.where == where
    assert problem in caught.value.problem


@given(graphs(max_ops=8))
def test_order_is_first_come_first_served(graph: CostGraph) -> None:
    """The graph's own order equals the naive rule: the first op in the file whose inputs are done."""
    assert tuple(graph.order.tolist()) == oracles.own_order(graph)


@given(graphs(max_ops=8))
def test_networkx_round_trip_keeps_everything(graph: CostGraph) -> None:
    """A graph that goes to networkx and back has the same ops, hyperedges and exact costs."""
    back = CostGraph.from_networkx(graph.to_networkx())
    for field in ("name", "time_unit", "op_names", "op_kinds", "work", "tensor_names", "transfer"):
        assert getattr(back, field) == getattr(graph, field)
    for field in ("param_bytes", "tensor_producer", "consumer_offsets", "consumers", "tensor_bytes"):
        assert np.array_equal(getattr(back, field), getattr(graph, field))


def test_networkx_tables_may_hold_floats() -> None:
    """A table of tensors that went through JSON comes back with floats, read as the decimals they print as."""
    graph = _build([A, B], [Tensor("t", "a", ("b",), transfer=Fraction(1, 2))])
    digraph = graph.to_networkx()
    digraph.graph["tensors"]["t"]["transfer"] = 0.5
    assert CostGraph.from_networkx(digraph).transfer == (Fraction(1, 2),)


def test_reads_a_plain_networkx_graph() -> None:
    """The papers' attributes on nodes make one tensor per op, with floats read as the decimals they print as."""
    digraph = nx.DiGraph()
    digraph.add_node("a", work=0.1, size_out=10, size_param=7)
    digraph.add_node("b", work=2, bytes=3)
    digraph.add_edge("a", "b")
    graph = CostGraph.from_networkx(digraph, time_unit="ms")
    assert graph.work == (Fraction(1, 10), 2)
    assert graph.param_bytes.tolist() == [7, 0]
    assert graph.tensor_names == ("a", "b")
    assert graph.tensor_bytes.tolist() == [10, 3]


def test_arrays_are_read_only() -> None:
    """A graph cannot be changed after it was checked."""
    graph = _build([A, B], [Tensor("t", "a", ("b",), transfer=1)])
    with pytest.raises(ValueError, match="read-only"):
        graph.tensor_producer[0] = 1
