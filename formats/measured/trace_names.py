"""Match between nodes of a profiled run and ops of a graph, by name.

A node keeps the name that the model gives it. Ops have unique names: of several nodes with one name the second is
called ``name_2`` (:mod:`mtpp.formats.modelled.naming`), and ONNX Runtime tells them apart by their index, which grows
in the order of the file. A node without a name is called ``Kind_position`` here and ``Kind_index`` there, and the index
leaves out constants: such nodes go together by their order, if there are as many, of the same kinds, on either side.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.errors import InputError
from mtpp.formats.measured.onnxruntime_profile import TracedNode
from mtpp.inference.graph import CostGraph


def nodes_of_ops(graph: CostGraph, nodes: Sequence[TracedNode]) -> list[int | None]:
    """Return the node behind each op, by its place in *nodes*; None for an op that did not run under its name.

    Notes
    -----
    O((n + nodes)·log nodes).
    """
    place = {name: op for op, name in enumerate(graph.op_names)}
    found: list[int | None] = [None] * graph.op_count
    named: dict[str, list[int]] = {}
    nameless: list[int] = []
    for i, node in enumerate(nodes):
        if node.name == f"{node.kind}_{node.index}":
            nameless.append(i)
        else:
            named.setdefault(node.name, []).append(i)
    for name, group in named.items():
        group.sort(key=lambda i: -1 if nodes[i].index is None else int(nodes[i].index or 0))
        ops = [place.get(name if number == 0 else f"{name}_{number + 1}") for number in range(len(group))]
        if None in ops and ops.count(None) < len(ops):
            raise InputError(
                f"{len(group)} nodes are called {name!r}, and not all of them are ops of {graph.name}",
                remedy="give the nodes names of their own, or use `mtpp profile`",
            )
        for op, i in zip(ops, group, strict=True):
            if op is not None:
                found[op] = i
    _place_nameless(graph, nodes, nameless, place, found)
    for op, at in enumerate(found):
        if at is not None and _bare(graph.op_kinds[op]) not in ("", nodes[at].kind):
            kind = graph.op_kinds[op]
            raise InputError(f"node {nodes[at].name!r} is a {nodes[at].kind} there, and a {kind} in {graph.name}")
    return found


def _place_nameless(
    graph: CostGraph,
    nodes: Sequence[TracedNode],
    nameless: list[int],
    place: dict[str, int],
    found: list[int | None],
) -> None:
    own = [
        op
        for op, name in enumerate(graph.op_names)
        if found[op] is None and _position(name, _bare(graph.op_kinds[op])) is not None
    ]
    by_name = {nodes[i].name: i for i in nameless}
    if all(graph.op_names[op] in by_name for op in own):  # named so in the file, or no constant came between
        for op in own:
            found[op] = by_name[graph.op_names[op]]
        return
    own.sort(key=lambda op: _position(graph.op_names[op], _bare(graph.op_kinds[op])) or 0)
    nameless.sort(key=lambda i: nodes[i].index or 0)
    if [_bare(graph.op_kinds[op]) for op in own] != [nodes[i].kind for i in nameless]:
        raise InputError(
            f"{len(nameless)} nodes without names cannot be told apart",
            remedy="name the nodes of the model before it is run, or use `mtpp profile`",
        )
    for op, i in zip(own, nameless, strict=True):
        found[op] = i


def _bare(kind: str) -> str:
    """Return the kind of an op without its domain."""
    return kind.rpartition(":")[2]


def _position(name: str, kind: str) -> int | None:
    """Return the number in a name of the form ``Kind_number``."""
    head, _, number = name.rpartition("_")
    return int(number) if head == kind and number.isascii() and number.isdigit() and len(number) < _DIGITS else None


_DIGITS = 10
