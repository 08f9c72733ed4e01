"""Names that nodes have in the file of a model whose ops are called otherwise; earlier results name ops by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mtpp.formats.modelled.kept_together import KEY
from mtpp.inference.graph import CostGraph

NODE_NAMES = "node_names"
"""Key of metadata: the name of the first node of each op that is called otherwise."""


def node_names(graph: CostGraph) -> list[str]:
    """Return the name of the first node of each op: the op's own where metadata say nothing else."""
    told = graph.metadata.get(NODE_NAMES)
    known = told if isinstance(told, Mapping) else {}
    return [str(known.get(name, name)) for name in graph.op_names]


def named_as(graph: CostGraph, names: Collection[str]) -> CostGraph:
    """Return a graph whose ops are called as in *names*, if these are names of nodes; else the graph as it is.

    A name that is both an op's and a node's tells the same op (:mod:`mtpp.formats.torch_export.op_names`).

    Notes
    -----
    O(ops + names) time.
    """
    known = set(graph.op_names)
    if NODE_NAMES not in graph.metadata or known.issuperset(names):
        return graph
    nodes = node_names(graph)
    if len(set(nodes)) < len(nodes) or not set(nodes).issuperset(names):
        return graph
    renamed = dict(zip(graph.op_names, nodes, strict=True))
    metadata: dict[str, Any] = {key: value for key, value in graph.metadata.items() if key != NODE_NAMES}
    if isinstance(kept := metadata.get(KEY), Mapping):
        metadata[KEY] = {
            reason: [[renamed.get(name, name) for name in group] for group in groups] for reason, groups in kept.items()
        }
    return replace(graph, op_names=tuple(nodes), metadata=metadata)
