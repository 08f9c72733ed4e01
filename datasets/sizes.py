"""Sizes and costs of the papers' recipe for synthetic graphs; impossible sizes are refused before one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.ranges import MOST_OPS

TENSOR_MEAN, TENSOR_DEVIATION = 50.0, 10.0
MEMORY_FRACTION_DEVIATION = 0.1

MOST_EDGES = 20_000_000
"""Such graphs take gigabytes while they are made."""


def recipe_graph(
    name: str, successors: Sequence[Sequence[int]], random: np.random.Generator, metadata: Mapping[str, Any]
) -> CostGraph:
    """Return a graph of the given shape with integer costs and no time unit, drawn as the recipe says.

    Parameters
    ----------
    successors
        Of each op, ops with higher numbers; op v is called ``opv``, and its one output ``tv``.
    random
        Draws a size per op, then a fraction per op.

    Notes
    -----
    Archer et al. (2024), appendix C.2: each tensor has a size drawn from N(50, 10), and each op the cost "sum of its
    input and output tensors + r · sum of all tensors", r drawn from N(0, 0.1). What that leaves open is decided like
    this:

    * Every op makes one tensor, and all its successors read that one. An output that nobody reads counts in the cost of
      its op and in the sum of all tensors, but is not listed among the graph's tensors: it costs no stage anything.
    * 0.1 is the standard deviation of r. A cost below zero, which the recipe gives to about a third of the ops,
      becomes zero: a stage cannot give time back.
    * Costs are rounded to integers, and no tensor is smaller than 1.

    O(ops + edges) time and memory.
    """
    n = len(successors)
    sizes = np.maximum(1, np.rint(random.normal(TENSOR_MEAN, TENSOR_DEVIATION, n))).astype(np.int64)
    touched = sizes.copy()
    for u, readers in enumerate(successors):
        touched[readers] += sizes[u]
    extra = random.normal(0.0, MEMORY_FRACTION_DEVIATION, n) * int(sizes.sum())
    work = np.maximum(0, np.rint(touched + extra)).astype(np.int64)
    return CostGraph.build(
        name=name,
        time_unit="1",
        ops=[Op(f"op{v}", int(work[v])) for v in range(n)],
        tensors=[
            Tensor(f"t{u}", f"op{u}", tuple(f"op{v}" for v in sorted(readers)), transfer=int(sizes[u]))
            for u, readers in enumerate(successors)
            if readers
        ],
        metadata=metadata,
    )


def check_least(what: str, value: int, least: int) -> None:
    """Raise :class:`InputError` if *value*, a number of *what*, is below *least*."""
    if value < least:
        raise InputError(f"{value} {what}", remedy=f"ask for at least {least}")


def check_graph_size(ops: int, edges: int) -> None:
    """Raise :class:`InputError` if a graph of about that size is too large to be made."""
    for count, most, what in ((ops, MOST_OPS, "ops"), (edges, MOST_EDGES, "edges")):
        if count > most:
            raise InputError(f"a graph of about {count:,} {what} is too large", remedy=f"stay below {most:,}")
