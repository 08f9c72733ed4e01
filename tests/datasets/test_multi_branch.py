"""Networks of branches have the counts they promise, links that lead on, and roofline costs."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.datasets.multi_branch import ROWS, WIDTHS, multi_branch
from mtpp.datasets.roofline_network import ELEMENT_BYTES
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device


def inputs_of(graph: CostGraph) -> list[list[int]]:
    """Return the ops that each op reads from."""
    inputs: list[list[int]] = [[] for _ in range(graph.op_count)]
    for u, v in zip(*graph.edges, strict=True):
        inputs[int(v)].append(int(u))
    return inputs


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.floats(0, 1), st.integers(0, 10**6))
def test_counts(branches: int, length: int, blocks: int, share: float, seed: int) -> None:
    """Ops and edges are as many as documented, all edges lead forward, and one op reads each last one."""
    links = int(share * branches * (branches - 1) * length * (length - 1) // 2)
    graph = multi_branch(branches, length, seed, blocks=blocks, cross_links=links)
    assert graph.op_count == graph.tensor_count == blocks * (branches * length + 1) + 1
    assert len(graph.consumers) == blocks * (branches * (length + 1) + links)
    sources, targets = graph.edges
    assert (sources < targets).all()
    assert graph.op_kinds.count("Concat") == blocks


def test_branches_are_parallel_and_links_join_them() -> None:
    """Between input and join, branches hang together only through links, which go to greater depths."""

    def inside(links: int) -> nx.DiGraph:
        graph = multi_branch(5, 7, 3, cross_links=links).to_networkx()
        order = list(graph.nodes)
        graph.remove_nodes_from([order[0], order[-1]])
        return graph

    parts = list(nx.weakly_connected_components(inside(0)))
    assert [len(part) for part in parts] == [7] * 5
    linked = inside(60)
    assert nx.is_weakly_connected(linked)
    assert linked.number_of_edges() == 5 * 6 + 60
    depth = {op: number // 5 for number, op in enumerate(linked.nodes)}
    assert all(depth[u] < depth[v] for u, v in linked.edges)
    # All links there are: every pair of ops of different branches and depths.
    assert inside(5 * 4 * 21).number_of_edges() == 5 * 6 + 5 * 4 * 21


def test_costs_are_those_of_the_shapes() -> None:
    """Widths are those of the branches, joins have their sum, and work is the roofline of FLOPs and traffic."""
    graph = multi_branch(4, 6, 1, blocks=3, cross_links=8)
    system = load_device()
    columns = [int(size) // (ROWS * ELEMENT_BYTES) for size in graph.tensor_bytes]
    for v, inputs in enumerate(inputs_of(graph)):
        if not inputs:
            continue
        kind, params = graph.op_kinds[v], int(graph.param_bytes[v])
        read = sum(columns[u] for u in inputs)
        traffic = (read + columns[v]) * ROWS * ELEMENT_BYTES + params
        if kind == "Concat":
            assert columns[v] == read
            flops = 0
        elif kind == "Conv":
            assert columns[v] in WIDTHS
            assert params in (read * columns[v] * ELEMENT_BYTES, 9 * read * columns[v] * ELEMENT_BYTES)
            flops = 2 * ROWS * params // ELEMENT_BYTES
        else:
            assert kind == ("Relu" if len(inputs) == 1 else "Add")
            flops = ROWS * columns[v]
        assert graph.work[v] == system.modelled_work_ps(flops, traffic)
    assert {"Conv", "Relu", "Add", "Concat"} == set(graph.op_kinds)


def test_seeds_and_names() -> None:
    """A seed fixes the network; names tell apart what differs."""
    first, same, other = (multi_branch(3, 5, seed, cross_links=4) for seed in (1, 1, 2))
    assert (first.work, first.consumers.tolist()) == (same.work, same.consumers.tolist())
    assert (first.work, first.consumers.tolist()) != (other.work, other.consumers.tolist())
    sizes = [(b, length, s, k, x) for b in (2, 3) for length in (2, 3) for s in (0, 1) for k in (1, 2) for x in (0, 1)]
    assert len({multi_branch(b, m, s, blocks=k, cross_links=x).name for b, m, s, k, x in sizes}) == len(sizes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"branches": 0, "length": 1}, "0 branches"),
        ({"branches": 1, "length": 0}, "0 ops in a branch"),
        ({"branches": 1, "length": 1, "blocks": 0}, "0 blocks"),
        ({"branches": 2, "length": 2, "cross_links": -1}, "-1 cross links"),
        ({"branches": 2, "length": 2, "cross_links": 3}, "room for 2"),
        ({"branches": 10**6, "length": 10**6}, "too large"),
    ],
)
def test_what_cannot_be_drawn(arguments: dict[str, int], words: str) -> None:
    """Impossible numbers are refused with what there is."""
    with pytest.raises(InputError, match=words):
        multi_branch(**arguments)
