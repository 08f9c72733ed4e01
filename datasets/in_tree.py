"""In-trees: reductions of many values to one."""

from __future__ import annotations

import numpy as np

from mtpp.datasets.sizes import check_graph_size, check_least, recipe_graph
from mtpp.inference.graph import CostGraph


def in_tree(leaves: int, fan_in: int = 2, seed: int = 0) -> CostGraph:
    """Draw costs for a tree in which ops combine the results of others, *fan_in* at a time, until one is left.

    Parameters
    ----------
    leaves
        Number of ops without inputs, at least 1.
    fan_in
        Results that an op combines, at least 2; the last op of a level has what is left over, and a single result left
        over goes to the next level.
    seed
        Same arguments give the same graph (for one version of NumPy).

    Raises
    ------
    InputError
        If a number is too small.

    Notes
    -----
    fan_in^d leaves make (fan_in^(d + 1) - 1) / (fan_in - 1) ops. Every op but the root has one reader, so no stage pays
    for a tensor twice. Ops are numbered level by level from the leaves. Costs are integers without a unit, as
    :func:`~mtpp.datasets.sizes.recipe_graph` draws them. O(leaves) time and memory.
    """
    check_least("leaves", leaves, 1)
    check_least("results combined at a time", fan_in, 2)
    check_graph_size(2 * leaves, 2 * leaves)
    successors: list[list[int]] = [[] for _ in range(leaves)]
    level = list(range(leaves))
    while len(level) > 1:
        above = []
        for start in range(0, len(level), fan_in):
            group = level[start : start + fan_in]
            if len(group) == 1:
                above += group
                continue
            above.append(len(successors))
            for v in group:
                successors[v].append(len(successors))
            successors.append([])
        level = above
    random = np.random.default_rng([seed, leaves, fan_in])
    metadata = {"generator": "in-tree", "seed": seed, "leaves": leaves, "fan_in": fan_in}
    return recipe_graph(f"in-tree-{leaves}-by-{fan_in}-{seed}", successors, random, metadata)
