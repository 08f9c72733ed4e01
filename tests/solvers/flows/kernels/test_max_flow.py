"""Maximum flows, and the work of ancestors, against other ways to find them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from graph_strategies import LINK, random_graph
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.kernels.ancestor_work import ancestor_work
from mtpp.solvers.flows.kernels.max_flow import flow_arcs, flow_scratch, max_flow


def flow_of(nodes: int, arcs: list[tuple[int, int, int]], enough: int = 2**62) -> tuple[int, np.ndarray]:
    """Return the value from node 0 to the last one, and what flows over each arc."""
    tails, heads, capacity = (np.array(column, dtype=np.int64) for column in zip(*arcs, strict=True))
    network = flow_arcs(tails, heads, nodes)
    residual = np.zeros(2 * len(arcs), dtype=np.int64)
    residual[network.forward] = capacity
    inject, absorb = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    inject[0] = absorb[-1] = 2**63 - 1
    value = max_flow(network, residual, inject, absorb, flow_scratch(nodes), enough, whole_phases=True)
    return int(value), capacity - residual[network.forward]


@pytest.mark.parametrize("seed", range(24))
def test_the_value_is_that_of_scipy(seed: int) -> None:
    """And the flow keeps to the capacities, and comes out of every node as it went in."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(2, 30))
    count = int(random.integers(1, 6 * nodes))
    ends = random.integers(0, nodes, (count, 2))
    arcs = [(int(a), int(b), int(random.integers(0, 1000))) for a, b in ends if a != b] or [(0, nodes - 1, 5)]
    value, flow = flow_of(nodes, arcs)
    tails, heads, sizes = (np.array(part, dtype=np.int32) for part in zip(*arcs, strict=True))
    matrix = coo_array((sizes.astype(np.int32), (tails, heads)), shape=(nodes, nodes)).tocsr()
    assert value == maximum_flow(matrix, 0, nodes - 1).flow_value
    assert np.all((flow >= 0) & (flow <= sizes))
    balance = np.zeros(nodes, dtype=np.int64)
    np.add.at(balance, tails, -flow)
    np.add.at(balance, heads, flow)
    assert balance[-1] == value == -balance[0]
    assert not np.any(balance[1:-1])


def test_values_beyond_32_bits_are_exact() -> None:
    """Capacities near 2^61, an arc without end, and a limit on what is of interest."""
    size = 2**61 - 3
    arcs = [(0, 1, size), (1, 2, 2**62), (2, 3, size - 1), (1, 3, 1)]
    assert flow_of(4, arcs)[0] == size
    assert flow_of(4, arcs, enough=10)[0] >= 10
    assert flow_of(2, [(1, 0, 5)])[0] == 0


@pytest.mark.parametrize("ops", [1, 30, 63, 64, 65, 200])
def test_the_work_of_ancestors_is_that_of_a_graph_search(ops: int) -> None:
    """On both sides of the borders between words."""
    arrays = downset_arrays(Instance.build(random_graph(ops, ops), Machine.uniform(2, LINK)))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(ops))
    for v in range(ops):
        for u in arrays.predecessors[arrays.predecessor_offsets[v] : arrays.predecessor_offsets[v + 1]]:
            graph.add_edge(int(u), v)
    found = ancestor_work(arrays.work, arrays.predecessor_offsets, arrays.predecessors)
    assert found.tolist() == [
        int(arrays.work[v]) + sum(int(arrays.work[u]) for u in nx.ancestors(graph, v)) for v in range(ops)
    ]
