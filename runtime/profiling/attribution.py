"""Ops of the graph with costs that a node's time belongs to, by the position of the node in the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mtpp.runtime.profiling.executable import NODE

if TYPE_CHECKING:
    import onnx

Owners = tuple[int, ...]
"""Ops (by index) that share what a node took; empty for nobody."""


def owners_by_position(graph: onnx.GraphProto, positions: Sequence[int]) -> list[Owners]:
    """Return the op behind each node of a model: its own, or the first that reads what a folded node makes.

    Nodes that depend on the sizes of inputs alone are no ops, and some of them run all the same: their time goes to
    what waits for it.

    Parameters
    ----------
    positions
        Of each op among the nodes.

    Notes
    -----
    O(nodes + edges).
    """
    op_of = {position: op for op, position in enumerate(positions)}
    _, readers = neighbours(graph.node)
    owners: list[Owners | None] = [(op_of[i],) if i in op_of else None for i in range(len(graph.node))]
    for i in range(len(owners)):
        path = [i]
        while owners[path[-1]] is None:  # depth first; the graph has no cycle
            at = path[-1]
            waiting = next((j for j in readers[at] if owners[j] is None), None)
            if waiting is not None:
                path.append(waiting)
                continue
            owners[at] = next((found for j in readers[at] if (found := owners[j])), ())
            path.pop()
            if not path:
                break
    return [found or () for found in owners]


def neighbours(nodes: Sequence[onnx.NodeProto]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the nodes that each one reads from, and those that read from it, once for each tensor."""
    from mtpp.formats.onnx.topology import reads

    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    sources = [[maker[name] for name in reads(node) if name in maker] for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for i, own in enumerate(sources):
        for source in own:
            readers[source].append(i)
    return sources, readers


def owners_by_name(owners: Sequence[Owners]) -> Mapping[str, Owners]:
    """Return the same by the name that a node has in an :class:`mtpp.runtime.profiling.executable.Executable`."""
    return {f"{NODE}{i}": found for i, found in enumerate(owners)}
