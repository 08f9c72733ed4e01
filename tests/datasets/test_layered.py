"""Layered networks have the size asked for and the structure of real models, up to a hundred thousand ops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.datasets.layered import HEADS, layered_network
from mtpp.datasets.roofline_network import ELEMENT_BYTES
from mtpp.errors import InputError
from mtpp.machine.presets import load_device

PINNED = (1441, 1646365440, 146443264, 4459264)


@given(st.integers(1, 400), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_every_size_comes_out_exactly(n: int, seed: int) -> None:
    """Any draw has n ops, edges forward in the file, one tensor per op, and one end."""
    graph = layered_network(n, seed)
    assert graph.op_count == graph.tensor_count == n
    assert graph.time_unit == "ps"
    sources, targets = graph.edges
    assert (sources < targets).all()
    assert all(isinstance(work, int) and work > 0 for work in graph.work)
    assert (graph.tensor_bytes > 0).all()
    unread = [v for v in range(n) if not len(graph.tensor_consumers(v))]
    kept_aside_but_never_joined = 6
    assert n - 1 in unread
    assert len(unread) <= 1 + kept_aside_but_never_joined


def test_same_seed_same_network() -> None:
    """A seed fixes the network; another seed gives another one."""
    first, second, other = layered_network(500, 3), layered_network(500, 3), layered_network(500, 4)
    assert (first.op_names, first.work) == (second.op_names, second.work)
    assert first.consumers.tolist() == second.consumers.tolist()
    assert first.work != other.work


def test_a_drawn_network_is_pinned() -> None:
    """A known draw keeps its totals: changing the generator must be a decision."""
    graph = layered_network(1000, 0)
    totals = (len(graph.consumers), sum(graph.work), int(graph.tensor_bytes.sum()), int(graph.param_bytes.sum()))
    assert totals == PINNED


def test_networks_have_branches_heads_and_skips() -> None:
    """Residuals, eight-headed fan-outs and long skips occur, and most tensors have one reader as in real models."""
    graph = layered_network(5000, 1)
    readers = np.diff(graph.consumer_offsets)
    counts = Counter(readers.tolist())
    assert counts[HEADS] > 50
    assert counts[2] > 100
    assert counts[1] > 0.6 * graph.op_count
    sources, targets = graph.edges
    assert int((targets - sources).max()) > 100
    assert {"Conv", "MatMul", "Add", "Softmax", "Concat", "LayerNormalization"} <= set(graph.op_kinds)


def test_work_is_the_roofline_of_the_reference_system() -> None:
    """An elementwise op moves its input and output through memory, and nothing takes less than its own output does."""
    graph = layered_network(300, 2)
    system = load_device()
    producer_of = {int(v): t for t, v in enumerate(graph.tensor_producer)}
    inputs: dict[int, list[int]] = {}
    for u, v in zip(*graph.edges, strict=True):
        inputs.setdefault(int(v), []).append(int(u))
    relus = [v for v, kind in enumerate(graph.op_kinds) if kind == "Relu"]
    assert relus
    for v in relus:
        size = int(graph.tensor_bytes[producer_of[v]])
        moved = size + sum(int(graph.tensor_bytes[u]) for u in inputs[v])
        assert graph.work[v] == system.modelled_work_ps(size // ELEMENT_BYTES, moved)
    for v, work in enumerate(graph.work):
        assert work >= system.modelled_work_ps(0, int(graph.tensor_bytes[v]) + int(graph.param_bytes[v]))


@pytest.mark.parametrize("factor", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_hundred_thousand_ops(factor: int) -> None:
    """A large network builds, and its totals are in proportion to a small one's; a third of that, by default."""
    small, large = layered_network(10**4, 0), layered_network(factor * 10**4, 0)
    assert large.op_count == factor * 10**4
    assert len(large.consumers) == pytest.approx(factor * len(small.consumers), rel=0.05)
    assert sum(large.work) == pytest.approx(factor * sum(small.work), rel=0.5)


def test_second_outputs_come_on_top() -> None:
    """More tensors than ops leave the network as it is and add small tensors with one reader soon after."""
    plain, rich = layered_network(1000, 0), layered_network(1000, 0, tensors=1500)
    assert rich.tensor_count == 1500
    assert (rich.op_names, rich.work) == (plain.op_names, plain.work)
    assert rich.tensor_names[:1000] == plain.tensor_names
    assert rich.consumers[: len(plain.consumers)].tolist() == plain.consumers.tolist()
    added = range(1000, 1500)
    assert {len(rich.tensor_consumers(t)) for t in added} == {1}
    distances = [int(rich.tensor_consumers(t)[0] - rich.tensor_producer[t]) for t in added]
    assert 1 <= min(distances) < max(distances) <= 40
    assert all(rich.tensor_bytes[t] <= rich.tensor_bytes[rich.tensor_producer[t]] for t in added)
    assert layered_network(1, tensors=3).tensor_count == 3


def test_impossible_sizes_are_refused() -> None:
    """There is no network of no ops, and none with fewer tensors than ops."""
    with pytest.raises(InputError, match="at least 1"):
        layered_network(0)
    with pytest.raises(InputError, match="at least one per op"):
        layered_network(5, tensors=4)
