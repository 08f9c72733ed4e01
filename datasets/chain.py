"""Chains of ops, with or without edges that skip some of them."""

from __future__ import annotations

import numpy as np

from mtpp.datasets.sizes import check_graph_size, check_least, recipe_graph
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph


def chain(n: int, seed: int = 0, *, skips: int = 0, longest_skip: int | None = None) -> CostGraph:
    """Draw costs for a path of ops, and edges that skip some of them, as residual connections do.

    Parameters
    ----------
    n
        Number of ops, at least 1.
    seed
        Same arguments give the same graph (for one version of NumPy).
    skips
        Number of edges besides the n - 1 of the path, all different.
    longest_skip
        Ops that an edge may go ahead, at least 2; None: any number.

    Raises
    ------
    InputError
        If a number is too small, or there are fewer than *skips* pairs of ops to join.

    Notes
    -----
    Costs are integers without a unit, as :func:`~mtpp.datasets.sizes.recipe_graph` draws them. An op that a skip
    starts from has more readers for its one tensor. Without skips the only topological order is the path, and cutting
    it is optimal. O(n + skips) time and memory.
    """
    check_least("ops", n, 1)
    check_least("skips", skips, 0)
    check_graph_size(n, n + skips)
    if longest_skip is not None:
        check_least("ops that a skip may go ahead", longest_skip, 2)
    farthest = n - 1 if longest_skip is None else min(longest_skip, n - 1)
    # There are n - d pairs of distance d, counted up from the distance of 2.
    ends = np.cumsum([n - distance for distance in range(2, farthest + 1)])
    pairs = int(ends[-1]) if len(ends) else 0
    if skips > pairs:
        raise InputError(f"{skips} skips, where {pairs} pairs of ops can be joined", remedy="ask for fewer")
    random = np.random.default_rng([seed, n, skips])
    successors = [[v + 1] for v in range(n - 1)] + [[]]
    for index in np.sort(random.choice(pairs, skips, replace=False)).tolist() if skips else []:
        place = int(np.searchsorted(ends, index, side="right"))
        first = index - (int(ends[place - 1]) if place else 0)
        successors[first].append(first + place + 2)
    name = f"chain-{n}-skips-{skips}-{seed}" if skips else f"chain-{n}-{seed}"
    if skips and longest_skip is not None:
        name = f"chain-{n}-skips-{skips}-of-{longest_skip}-{seed}"
    return recipe_graph(name, successors, random, {"generator": "chain", "seed": seed, "skips": skips})
