"""REGAL-style graphs follow their recipe, in each draw and on average."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.datasets.regal_style import SMALLEST, regal_style
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.names import RANDOM_GRAPHS

PINNED = (100, 38, 8498, 1859)


def touched_tensors(graph: CostGraph, unlisted: int = 0) -> list[int]:
    """Return Σ input + output tensor sizes per op; outputs that nobody reads count as *unlisted*."""
    sums = [unlisted] * graph.op_count
    for t in range(graph.tensor_count):
        size = int(graph.transfer[t] or 0)
        sums[graph.tensor_producer[t]] += size - unlisted
        for v in graph.tensor_consumers(t).tolist():
            sums[v] += size
    return sums


@given(st.sampled_from(RANDOM_GRAPHS), st.integers(SMALLEST, 60), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_every_draw_is_a_graph_in_file_order(family: str, n: int, seed: int) -> None:
    """Any draw has n ops with integer costs, edges forward in the file, and tensors that someone reads."""
    graph = regal_style(family, n, seed)
    assert graph.op_count == n
    assert graph.time_unit == "1"
    assert all(isinstance(cost, int) and cost >= 0 for cost in graph.work)
    assert all(isinstance(cost, int) and cost >= 1 for cost in graph.transfer)
    sources, targets = graph.edges
    assert (sources < targets).all()
    assert all(len(graph.tensor_consumers(t)) for t in range(graph.tensor_count))
    assert len(set(graph.tensor_producer.tolist())) == graph.tensor_count


@pytest.mark.parametrize("family", RANDOM_GRAPHS)
def test_same_seed_same_graph(family: str) -> None:
    """A seed fixes the graph; another seed, size or family gives another one."""

    def figures(graph: CostGraph) -> tuple[object, ...]:
        return graph.work, graph.transfer, graph.consumers.tolist()

    graph = regal_style(family, 80, 7)
    assert figures(graph) == figures(regal_style(family, 80, 7))
    assert figures(graph) != figures(regal_style(family, 80, 8))
    assert len({figures(regal_style(other, 80, 7))[0] for other in RANDOM_GRAPHS}) == len(RANDOM_GRAPHS)


def test_a_drawn_graph_is_pinned() -> None:
    """A known draw keeps its totals: changing the generator must be a decision."""
    graph = regal_style("ws", 50, 0)
    assert (len(graph.consumers), graph.tensor_count, sum(graph.work), sum(graph.transfer)) == PINNED  # type: ignore[arg-type]


def test_base_graphs_have_the_models_edges() -> None:
    """Barabási-Albert has 2 (n - 2) edges, Watts-Strogatz 2 n, Erdős-Rényi 0.05 · n (n - 1) / 2 on average."""
    assert len(regal_style("ba", 120, 3).consumers) == 2 * 118
    assert len(regal_style("ws", 120, 3).consumers) == 2 * 120
    mean = statistics.mean(len(regal_style("er", 120, seed).consumers) for seed in range(30))
    assert mean == pytest.approx(0.05 * 120 * 119 / 2, rel=0.05)


def test_the_stochastic_block_model_has_four_communities() -> None:
    """Without its few bridges, the graph falls into four parts of 30 ops; pairs in a part are joined 3 times in 10."""
    edges = []
    for seed in range(10):
        graph = regal_style("sbm", 120, seed)
        edges.append(len(graph.consumers))
        shape = graph.to_networkx().to_undirected()
        communities = nx.community.greedy_modularity_communities(nx.Graph(shape))
        # An op whose few neighbours in its part are outvoted by bridges may be counted to another.
        assert [len(community) for community in communities] == pytest.approx([30] * 4, abs=2)
    assert statistics.mean(edges) == pytest.approx(4 * 0.3 * 30 * 29 / 2 + 0.001 * 6 * 30 * 30, rel=0.04)


@pytest.mark.parametrize("family", RANDOM_GRAPHS)
def test_costs_follow_the_recipe(family: str) -> None:
    """Sizes are N(50, 10), and costs above zero exceed the tensors touched by N(0, 0.1) of the sum of all tensors."""
    graphs = [regal_style(family, 150, seed) for seed in range(20)]
    sizes = [int(size or 0) for graph in graphs for size in graph.transfer]
    assert statistics.mean(sizes) == pytest.approx(50, abs=1)
    assert statistics.pstdev(sizes) == pytest.approx(10, abs=0.6)
    upper = []
    for graph in graphs:
        total = 50 * graph.op_count
        excess = [w - x for w, x in zip(graph.work, touched_tensors(graph, unlisted=50), strict=True)]
        upper += [float(e / total) for e in excess if e > 0]
    # The half above zero of a normal distribution: mean σ·√(2/π), and half of all draws.
    assert statistics.mean(upper) == pytest.approx(0.1 * 0.798, rel=0.06)
    assert len(upper) == pytest.approx(0.5 * 150 * len(graphs), rel=0.06)


@pytest.mark.parametrize("family", ["er", "ba", "ws"])
@pytest.mark.parametrize("n", [50, 200])
def test_draws_resemble_the_shared_instances(family: str, n: int, shared_data: Path) -> None:
    """Counts and totals of the instances beside the checkout lie within four deviations of our draws."""
    document = json.loads((shared_data / "instances" / f"regal-style-{family}-{n}.json").read_text())
    work = [op["work"] for op in document["ops"]]
    observed = (
        len(document["tensors"]),
        sum(len(tensor["consumers"]) for tensor in document["tensors"]),
        sum(w == 0 for w in work),
        sum(work),
        max(work),
    )
    draws = [
        (g.tensor_count, len(g.consumers), sum(w == 0 for w in g.work), sum(g.work), max(g.work))
        for g in (regal_style(family, n, seed) for seed in range(40))
    ]
    for value, drawn in zip(observed, zip(*draws, strict=True), strict=True):
        mean, deviation = statistics.mean(map(float, drawn)), statistics.pstdev(map(float, drawn))
        assert abs(value - mean) <= 4 * deviation + 0.5


def test_what_cannot_be_drawn() -> None:
    """An unknown family and a graph too small for the ring are refused with what would do."""
    with pytest.raises(InputError, match="unknown family 'grid'"):
        regal_style("grid", 50, 0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too few"):
        regal_style("ws", 4, 0)
