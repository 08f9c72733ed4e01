"""Composition of a graph in series and parallel, in figures."""

from __future__ import annotations

from typing import Any

from mtpp.inference.graph import CostGraph
from mtpp.solvers.series_parallel.compositions import CORE, PARALLEL
from mtpp.solvers.series_parallel.decomposition import decompose

MOST_OPS = 1_000_000
"""Above it the decomposition would take longer than a command that only looks should."""


def structure(graph: CostGraph) -> dict[str, Any] | None:
    """Return the decomposition in figures, None for a graph of more than :data:`MOST_OPS` ops.

    ``blocks`` are parts side by side of which at least one holds ops, ``depth`` says how many of them lie in each
    other, ``widest`` how many branches the widest one has, shortcuts included. ``cores`` are the parts that are neither
    series nor parallel, the largest first, with the op before and the one behind each, null where that is all inputs or
    all outputs.
    """
    if graph.op_count > MOST_OPS:
        return None
    tree = decompose(graph)
    sizes: list[int] = []
    depths: list[int] = []
    widths: list[int] = []
    for kind, children, joints in zip(tree.kind.tolist(), tree.child_lists(), tree.joints, strict=True):
        sizes.append(len(joints) + sum(sizes[child] for child in children))
        is_block = kind == PARALLEL and sizes[-1] > 0
        depths.append(is_block + max((depths[child] for child in children), default=0))
        if is_block:
            widths.append(len(children))
    names = [*graph.op_names, None, None]
    cores = [
        {"ops": sizes[node], "after": names[tree.tail[node]], "before": names[tree.head[node]]}
        for node in range(len(sizes))
        if tree.kind[node] == CORE
    ]
    return {
        "series_parallel": not cores,
        "blocks": len(widths),
        "depth": depths[-1],
        "widest": max(widths, default=0),
        "cores": sorted(cores, key=lambda core: -core["ops"]),
    }
