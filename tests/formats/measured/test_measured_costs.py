"""Measured times put onto graphs: joined by name, refused where anything is missing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from profiled_models import kernel, run

from mtpp.errors import InputError
from mtpp.formats.graphs.native import write_native
from mtpp.formats.io.source import Source
from mtpp.formats.measured.measured_costs import caveats, read_costs, with_costs
from mtpp.inference.graph import CostGraph, Op, Tensor


def source(data: bytes | str) -> Source:
    """Return a file."""
    data = data.encode() if isinstance(data, str) else data
    return Source("costs.json", data, hashlib.sha256(data).hexdigest())


def graph(names: tuple[str, ...] = ("a", "b", "c"), size: int = 24, unit: str = "ps", **work: Any) -> CostGraph:
    """Return a chain of Relus, each of 7 units unless told otherwise."""
    ops = [Op(name, work.get(name, 7), "Relu") for name in names]
    ends = zip(names, [*names[1:], None], strict=True)
    tensors = [Tensor(f"t{i}", name, () if then is None else (then,), size) for i, (name, then) in enumerate(ends)]
    return CostGraph.build(name="chain", time_unit=unit, ops=ops, tensors=tensors)


def trace(*events: dict[str, Any]) -> Source:
    """Return a profile of one run."""
    return source(json.dumps([*events, run(0, 10_000)]))


def test_costs_of_a_profiled_graph_come_in_the_graphs_unit() -> None:
    """Microseconds become picoseconds, exactly; sizes and names stay; the file's digest is kept."""
    costs = source(write_native(graph(unit="us", a=5, b=0, c=12)))
    joined = with_costs(graph(), read_costs(costs))
    assert joined.work == (5_000_000, 0, 12_000_000)
    assert joined.time_unit == "ps"
    assert joined.metadata["costs"]["sha256"] == costs.sha256
    assert joined.tensor_bytes.tolist() == [24, 24, 24]


def test_backward_passes_come_with_the_costs() -> None:
    """In the graph's unit, those that were not measured excepted; a file without any leaves the graph's own."""
    timed = replace(graph(unit="us"), backward=(3, None, Fraction(1, 2)))
    joined = with_costs(graph(), read_costs(source(write_native(timed))))
    assert joined.backward == (3_000_000, None, 500_000)
    own = replace(graph(), backward=(1, 2, 3))
    assert with_costs(own, read_costs(source(write_native(graph(unit="us"))))).backward == (1, 2, 3)


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        (graph(("a", "b")), r"1 of 3 ops of chain have no time in it: 'c'"),
        (graph(("a", "b", "d")), r"1 of 3 ops of chain have no time in it: 'c', and 1 of its ops are not"),
        (graph(("a", "b", "c", "d")), r"1 of its ops are not in chain: 'd'"),
        (graph(size=48), r"tensor 't0' has 48 bytes there, and 24 in chain; give the sizes"),
    ],
)
def test_a_profile_of_something_else_is_refused(profile: CostGraph, problem: str) -> None:
    """Ops and sizes have to be the same."""
    with pytest.raises(InputError, match=problem):
        with_costs(graph(), read_costs(source(write_native(profile))))


def test_kinds_have_to_be_the_same() -> None:
    """The same names in another model are no coincidence to rely on."""
    other = write_native(graph()).replace('"kind": "Relu"', '"kind": "Conv"', 1)
    with pytest.raises(InputError, match="op 'a' is a Conv there, and a Relu in chain"):
        with_costs(graph(), read_costs(source(other)))


def test_times_of_a_trace_go_by_names() -> None:
    """A node of no op is counted and left out; an op without work may be missing."""
    file = trace(kernel("a", 1, 5), kernel("shape", 10, 2, "Shape", 7), kernel("c", 20, 9, index=3))
    joined = with_costs(graph(b=0), read_costs(file))
    assert joined.work == (5_000_000, 0, 9_000_000)
    assert joined.metadata["costs"]["other_nodes"] == 1
    assert joined.metadata["costs"]["other_nodes_us"] == 2


def test_a_fused_op_is_missing() -> None:
    """Its time is in another node: nobody can say how much."""
    with pytest.raises(
        InputError, match=r"1 of 3 ops of chain have no time in it: 'b'; nodes that are no ops of it: 'f'"
    ):
        with_costs(graph(), read_costs(trace(kernel("a", 1, 5), kernel("f", 7, 5), kernel("c", 20, 9))))


def test_sizes_of_a_trace_have_to_be_the_graphs() -> None:
    """Another batch size has other times."""
    shape = {"output_type_shape": [{"float": [2, 2, 3]}]}
    with pytest.raises(InputError, match=r"tensor 't0' has 48 bytes there, and 24 in chain.*dim"):
        with_costs(graph(("a", "b")), read_costs(trace(kernel("a", 1, 5, **shape), kernel("b", 7, 5, **shape))))


def test_equal_names_go_by_the_order_of_the_file() -> None:
    """The second node called ``a`` is the op ``a_2``; the index says which is the second."""
    file = trace(kernel("a", 1, 5, index=9), kernel("a", 10, 6, index=4), kernel("c", 20, 7))
    assert with_costs(graph(("a", "a_2", "c")), read_costs(file)).work == (6_000_000, 5_000_000, 7_000_000)


def test_nameless_nodes_go_by_their_order() -> None:
    """Their index leaves out constants, so it is no position in the file."""
    file = trace(kernel("Relu_0", 1, 5, index=0), kernel("Relu_1", 10, 6, index=1))
    joined = with_costs(graph(("Relu_1", "Relu_3")), read_costs(file))
    assert joined.work == (5_000_000, 6_000_000)


def test_nameless_nodes_that_cannot_be_told_apart_are_refused() -> None:
    """Three ran, and two are ops."""
    file = trace(*(kernel(f"Relu_{i}", 10 * i + 1, 5, index=i) for i in range(3)))
    with pytest.raises(InputError, match="3 nodes without names cannot be told apart"):
        with_costs(graph(("Relu_1", "Relu_3")), read_costs(file))


def test_abstract_costs_and_times_do_not_mix() -> None:
    """Neither as the model nor as the profile."""
    abstract = CostGraph.build(name="x", time_unit="1", ops=[Op("a", 1)], tensors=[Tensor("t", "a", (), transfer=1)])
    with pytest.raises(InputError, match="abstract costs"):
        with_costs(abstract, read_costs(source(write_native(graph(("a",))))))
    with pytest.raises(InputError, match="no times"):
        read_costs(source(write_native(abstract)))


@pytest.mark.parametrize("data", [b"\x08\x07", b"[1, 2]", b"{}", b"nothing"])
def test_other_files_hold_no_times(data: bytes) -> None:
    """One line says what to give."""
    with pytest.raises(InputError, match=r"holds no measured times.*mtpp profile"):
        read_costs(source(data))


def test_what_a_user_should_know_is_said() -> None:
    """Times of launching kernels are no times of kernels; more than a twentieth of the time may not go unsaid."""
    shape = kernel("shape", 10, 2, "Shape", 7)
    events = [kernel("a", 1, 5, provider="CUDAExecutionProvider"), shape, kernel("b", 20, 9), kernel("c", 40, 4)]
    assert caveats(with_costs(graph(), read_costs(trace(*events))).metadata["costs"]) == [
        "kernels of CUDAExecutionProvider: their times may be those of launching them",
        "1 nodes are no ops of the model: 10.0% of the time is left out",
    ]
    quiet = [kernel("a", 1, 500), shape, kernel("b", 2000, 9), kernel("c", 4000, 4)]
    assert caveats(with_costs(graph(), read_costs(trace(*quiet))).metadata["costs"]) == []
    assert caveats(with_costs(graph(), read_costs(source(write_native(graph())))).metadata["costs"]) == []
