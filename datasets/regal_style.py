"""Random graphs after the recipe of the REGAL data set, which itself is not public in full."""

from __future__ import annotations

from typing import Literal, get_args

import networkx as nx
import numpy as np

from mtpp.errors import InputError
from mtpp.graph import CostGraph, Op, Tensor

Family = Literal["er", "ba", "ws"]
"""Random graph models: Erdős-Rényi, Barabási-Albert, Watts-Strogatz."""

FAMILIES: tuple[str, ...] = get_args(Family)

SMALLEST = 5
"""Least number of ops: the Watts-Strogatz ring joins each op to four others."""

EDGE_PROBABILITY = 0.05
ATTACHED_EDGES = 2
RING_NEIGHBOURS = 4
REWIRING_PROBABILITY = 0.3

TENSOR_MEAN, TENSOR_DEVIATION = 50.0, 10.0
MEMORY_FRACTION_DEVIATION = 0.1


def regal_style(family: Family, n: int, seed: int = 0) -> CostGraph:
    """Draw one synthetic computation graph with integer costs and no time unit.

    Parameters
    ----------
    family
        One of :data:`FAMILIES`.
    n
        Number of ops, at least :data:`SMALLEST`; the published graphs have 50 to 200.
    seed
        Same family, n and seed give the same graph (for one version of networkx and NumPy).

    Raises
    ------
    InputError
        If the family is unknown or *n* is too small.

    Notes
    -----
    Archer et al. (2024), appendix C.2, after Paliwal et al. (2020), appendix A.1.4: sample an undirected graph, direct
    its edges along a random order of the nodes, give each tensor a size drawn from N(50, 10) and each op the cost
    "sum of its input and output tensors + r · sum of all tensors", r drawn from N(0, 0.1).

    What the recipe leaves open is decided like this:

    * Erdős-Rényi p = 0.05, Barabási-Albert m = 2, Watts-Strogatz k = 4 and rewiring probability 0.3.
    * Every op makes one tensor, and all its successors read that one. An output that nobody reads counts in the cost of
      its op and in the sum of all tensors, but is not listed among the graph's tensors: it costs no stage anything.
    * Ops are numbered in the random order that directs the edges, so file order is topological. Isolated ops stay.
    * 0.1 is the standard deviation of r. A cost below zero, which the recipe gives to about a third of the ops,
      becomes zero: a stage cannot give time back.
    * Costs are rounded to integers, and no tensor is smaller than 1.
    * No filter for graphs that are hard to schedule in little memory: that is another problem's notion of hard.
    """
    if family not in FAMILIES:
        raise InputError(f"unknown family {family!r}", remedy=f"use one of {', '.join(FAMILIES)}")
    if n < SMALLEST:
        raise InputError(f"{n} ops are too few for this recipe", remedy=f"ask for at least {SMALLEST}")
    random = np.random.default_rng([seed, n, FAMILIES.index(family)])
    position = random.permutation(n)
    successors: list[list[int]] = [[] for _ in range(n)]
    for u, v in _base_graph(family, n, random).edges:
        first, last = sorted((int(position[u]), int(position[v])))
        successors[first].append(last)

    sizes = np.maximum(1, np.rint(random.normal(TENSOR_MEAN, TENSOR_DEVIATION, n))).astype(np.int64)
    touched = sizes.copy()
    for u, readers in enumerate(successors):
        touched[readers] += sizes[u]
    extra = random.normal(0.0, MEMORY_FRACTION_DEVIATION, n) * int(sizes.sum())
    work = np.maximum(0, np.rint(touched + extra)).astype(np.int64)
    return CostGraph.build(
        name=f"regal-style-{family}-{n}-{seed}",
        time_unit="1",
        ops=[Op(f"op{v}", int(work[v])) for v in range(n)],
        tensors=[
            Tensor(f"t{u}", f"op{u}", tuple(f"op{v}" for v in sorted(readers)), transfer=int(sizes[u]))
            for u, readers in enumerate(successors)
            if readers
        ],
        metadata={"generator": "regal-style", "family": family, "seed": seed},
    )


def _base_graph(family: str, n: int, random: np.random.Generator) -> nx.Graph:
    seed = int(random.integers(2**32))
    if family == "er":
        return nx.fast_gnp_random_graph(n, EDGE_PROBABILITY, seed=seed)
    if family == "ba":
        return nx.barabasi_albert_graph(n, ATTACHED_EDGES, seed=seed)
    return nx.watts_strogatz_graph(n, RING_NEIGHBOURS, REWIRING_PROBABILITY, seed=seed)
