"""Random graphs after the recipe of the REGAL data set, which itself is not public in full."""

from __future__ import annotations

import networkx as nx
import numpy as np

from mtpp.datasets.sizes import check_graph_size, recipe_graph
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.names import RANDOM_GRAPHS

SMALLEST = 5
"""Least number of ops: the Watts-Strogatz ring joins each op to four others."""

EDGE_PROBABILITY = 0.05
ATTACHED_EDGES = 2
RING_NEIGHBOURS = 4
REWIRING_PROBABILITY = 0.3
BLOCKS = 4
PROBABILITY_WITHIN_BLOCKS = 0.3
PROBABILITY_ACROSS_BLOCKS = 0.001


def regal_style(family: str, n: int, seed: int = 0) -> CostGraph:
    """Draw one synthetic computation graph with integer costs and no time unit.

    Parameters
    ----------
    family
        One of :data:`mtpp.names.RANDOM_GRAPHS`.
    n
        Number of ops, at least :data:`SMALLEST`; the published graphs have 50 to 200.
    seed
        Same family, n and seed give the same graph (for one version of networkx and NumPy).

    Raises
    ------
    InputError
        If the family is unknown, or *n* is too small or too large to be drawn in memory.

    Notes
    -----
    Archer et al. (2024), appendix C.2, after Paliwal et al. (2020), appendix A.1.4: sample an undirected graph, direct
    its edges along a random order of the nodes, and draw the costs that :func:`recipe_graph` describes.

    What the recipe leaves open about the graph is decided like this:

    * Erdős-Rényi p = 0.05, Barabási-Albert m = 2, Watts-Strogatz k = 4 and rewiring probability 0.3.
    * Stochastic block model: four blocks whose sizes differ by at most one, an edge with probability 0.3 between two
      nodes of one block and 0.001 between nodes of two: communities that are dense inside and hardly know each other.
      The random order runs through all of them at once.
    * Ops are numbered in the random order that directs the edges, so file order is topological. Isolated ops stay.
    * No filter for graphs that are hard to schedule in little memory: that is another problem's notion of hard.
    """
    if family not in RANDOM_GRAPHS:
        raise InputError(f"unknown family {family!r}", remedy=f"use one of {', '.join(RANDOM_GRAPHS)}")
    if n < SMALLEST:
        raise InputError(f"{n} ops are too few for this recipe", remedy=f"ask for at least {SMALLEST}")
    check_graph_size(n, round(_density(family, n) * n))
    random = np.random.default_rng([seed, n, RANDOM_GRAPHS.index(family)])
    position = random.permutation(n)
    successors: list[list[int]] = [[] for _ in range(n)]
    for u, v in _base_graph(family, n, random).edges:
        first, last = sorted((int(position[u]), int(position[v])))
        successors[first].append(last)

    return recipe_graph(
        f"regal-style-{family}-{n}-{seed}",
        successors,
        random,
        {"generator": "regal-style", "family": family, "seed": seed},
    )


def _density(family: str, n: int) -> float:
    """Return about how many edges there are per op."""
    if family == "er":
        return EDGE_PROBABILITY * n / 2
    return PROBABILITY_WITHIN_BLOCKS * n / (2 * BLOCKS) if family == "sbm" else 2


def _base_graph(family: str, n: int, random: np.random.Generator) -> nx.Graph:
    seed = int(random.integers(2**32))
    if family == "er":
        return nx.fast_gnp_random_graph(n, EDGE_PROBABILITY, seed=seed)
    if family == "ba":
        return nx.barabasi_albert_graph(n, ATTACHED_EDGES, seed=seed)
    if family == "ws":
        return nx.watts_strogatz_graph(n, RING_NEIGHBOURS, REWIRING_PROBABILITY, seed=seed)
    sizes = [n // BLOCKS + (block < n % BLOCKS) for block in range(BLOCKS)]
    chances = np.full((BLOCKS, BLOCKS), PROBABILITY_ACROSS_BLOCKS)
    np.fill_diagonal(chances, PROBABILITY_WITHIN_BLOCKS)
    return nx.stochastic_block_model(sizes, chances.tolist(), seed=seed)
