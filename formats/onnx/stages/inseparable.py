"""Ops that two stage files cannot share: around optionals, open numbers of axes, and shapes that only a body reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx

from mtpp.formats.modelled.kept_together import OPTIONALS, RANKS, SHAPES
from mtpp.formats.modelled.op_record import OpRecord
from mtpp.formats.onnx.scope import RANK, Scope
from mtpp.formats.onnx.topology import reads, subgraphs


def inseparable_ops(
    graph: onnx.GraphProto, scope: Scope, ops: Sequence[OpRecord], names: Sequence[str]
) -> dict[str, list[list[str]]]:
    """Return groups of op names by the reason why they have to share a stage.

    Parameters
    ----------
    graph
        With its functions inlined; *ops* are some of its nodes, called *names* in the cost graph.

    Notes
    -----
    A tensor of which a node needs only the shape makes no edge in the cost graph, so that a plan may have its producer
    in a later stage. That is well where the shape is known and stored; a node that computes with it has to have it.
    O(nodes + edges).
    """
    producer = {name: place for place, op in enumerate(ops) for name in graph.node[op.index].output if name}
    optionals = optional_names(graph)
    around: list[list[str]] = []
    unranked: list[list[str]] = []
    behind: list[list[str]] = []
    needs = _Needs(graph, scope, {op.index for op in ops})
    for place, op in enumerate(ops):
        for name in needs.of(graph.node[op.index]):
            maker = producer.get(name)
            if maker is None or maker == place:
                continue
            if name in optionals:
                around.append([names[maker], names[place]])
            known = scope.find(name)
            if known is not None and RANK in known.open_axes:
                unranked.append([names[maker], names[place]])
            if name not in op.inputs:
                behind.append([names[maker], names[place]])
    return {OPTIONALS: around, RANKS: unranked, SHAPES: behind}


class _Needs:
    """Tensors of ops that a node has to be given: read by itself, or by folded nodes that it gets a copy of."""

    def __init__(self, graph: onnx.GraphProto, scope: Scope, ops: set[int]) -> None:
        self._scope = scope
        self._folded: Mapping[str, onnx.NodeProto] = {
            name: node for i, node in enumerate(graph.node) if i not in ops for name in node.output if name
        }
        self._known: dict[str, frozenset[str]] = {}

    def of(self, node: onnx.NodeProto) -> set[str]:
        return {one for name in reads(node) for one in self._of_tensor(name)}

    def _of_tensor(self, name: str) -> frozenset[str]:
        found = self._known.get(name)
        if found is not None:
            return found
        waiting, seen, found_names = [name], {name}, set()
        while waiting:
            one = waiting.pop()
            maker = self._folded.get(one)
            if maker is None:
                found_names.add(one)
            elif not self._is_stored(one, maker):
                fresh = [other for other in reads(maker) if other not in seen]
                seen.update(fresh)
                waiting += fresh
        self._known[name] = frozenset(found_names)
        return self._known[name]

    def _is_stored(self, name: str, maker: onnx.NodeProto) -> bool:
        """Say whether a stage stores a folded tensor in place of computing it."""
        known = self._scope.find(name)
        value = None if known is None else known.certain_value
        if value is not None and value.dtype.kind in "iub":
            return True
        return maker.op_type in ("EyeLike", "Constant")


def optional_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of the optionals of a graph: those declared, and what makes them or passes them on."""
    found = _declared([*graph.input, *graph.output, *graph.value_info])
    before = -1
    while len(found) > before:  # nodes may stand in any order
        before = len(found)
        _follow(graph.node, found)
    return found


def _declared(values: Iterable[onnx.ValueInfoProto]) -> set[str]:
    return {value.name for value in values if value.type.WhichOneof("value") == "optional_type"}


def _follow(nodes: Iterable[onnx.NodeProto], found: set[str]) -> None:
    """Add the optionals that nodes make; those around them are in *found*."""
    for node in nodes:
        bodies = [body for _, body in subgraphs(node)]
        if node.op_type == "Optional" or (node.op_type == "Identity" and found.intersection(node.input)):
            found.update(node.output)
        for body in bodies:
            found.update(_made_by(node, body, found))


def _made_by(node: onnx.NodeProto, body: onnx.GraphProto, around: Collection[str]) -> set[str]:
    """Return the outputs of control flow that are optionals of one of its bodies."""
    inside = {*around} | _declared([*body.input, *body.output, *body.value_info])
    if node.op_type == "Loop":
        inside |= {own.name for own, name in zip(body.input, node.input, strict=False) if name in around}
    _follow(body.node, inside)
    returned = body.output[1:] if node.op_type == "Loop" else body.output
    return {name for name, own in zip(node.output, returned, strict=False) if name and own.name in inside}
