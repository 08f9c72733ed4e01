"""Trips of a Loop counted by running what its condition depends on, and nothing else of its body.

A loop in the form of a while has no limit: its body counts, and compares the count with a size. Counter, limit and
condition are small numbers, known where sizes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from mtpp.formats.onnx.constants.on_demand import evaluated
from mtpp.formats.onnx.node_view import kind_of
from mtpp.formats.onnx.topology import subgraphs
from mtpp.formats.onnx.values import Array, Attributes, attribute_values, can_evaluate, evaluate

MOST_STEPS = 100_000
"""Nodes that are run to count; a rule of onnx's reference implementation counts as many as :data:`_SLOW_STEPS`."""

_SLOW_STEPS = 100

Leaf = Callable[[str], Array | None]
"""Returns the contents of a tensor of the body that are the same on every trip; None if there are none."""


@dataclass
class _Slice:
    """Nodes of a body in order, with kinds and attributes, and the carried values that they need."""

    nodes: list[tuple[onnx.NodeProto, str, Attributes]] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    carried: set[int] = field(default_factory=set)


def count_trips(
    body: onnx.GraphProto, limit: int | None, carried: Sequence[Array | None], leaf: Leaf, opset: int
) -> int | None:
    """Return how often the body of a Loop runs whose condition holds at first; None if that cannot be told.

    Parameters
    ----------
    limit
        Most trips; None for no limit.
    carried
        What is known of the carried values before the first trip.
    leaf
        Of the body, by name.

    Notes
    -----
    At most :data:`MOST_STEPS` nodes are run.
    """
    found = _needed(body, carried, leaf)
    if found is None:
        return None
    names = [value.name for value in body.input]
    results = [value.name for value in body.output]
    state = {i: carried[i] for i in found.carried}
    steps = sum(1 if can_evaluate(kind) else _SLOW_STEPS for _, kind, _ in found.nodes)
    trips = 0
    while limit is None or trips < limit:
        if (trips + 1) * (steps + 1) > MOST_STEPS:
            return None
        values: dict[str, Array] = {**found.constants, names[0]: np.array(trips, np.int64), names[1]: np.array(True)}
        for i, array in state.items():
            assert array is not None
            values[names[2 + i]] = array
        if not all(_run(*node, values, opset) for node in found.nodes):
            return None
        trips += 1
        goes_on = values[results[0]]
        if goes_on.size != 1:
            return None
        if not bool(goes_on.reshape(-1)[0]):
            break
        state = {i: values[results[1 + i]] for i in state}
    return trips


def _needed(body: onnx.GraphProto, carried: Sequence[Array | None], leaf: Leaf) -> _Slice | None:
    """Return the nodes that the condition depends on, through all trips; None if more is needed than is known."""
    makers = {name: i for i, node in enumerate(body.node) for name in node.output if name}
    inputs = {value.name: i for i, value in enumerate(body.input)}
    found = _Slice()
    chosen: set[int] = set()
    seen: set[str] = set()
    waiting = [body.output[0].name]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        place = inputs.get(name)
        if place is not None and place < 2:
            continue
        if place is not None:
            if carried[place - 2] is None:
                return None
            found.carried.add(place - 2)
            waiting.append(body.output[place - 1].name)
        elif (array := leaf(name)) is not None:
            found.constants[name] = array
        elif name in makers and not any(True for _ in subgraphs(body.node[makers[name]])):
            chosen.add(makers[name])
            waiting += [read for read in body.node[makers[name]].input if read]
        else:
            return None
    found.nodes = [
        (node, kind_of(node.domain, node.op_type), attribute_values(node.attribute))
        for node in sorted_nodes([body.node[i] for i in sorted(chosen)])
    ]
    return found


def sorted_nodes(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return nodes in an order in which they can run; a file may have them in any."""
    made: set[str] = set()
    own = {name for node in nodes for name in node.output if name}
    order: list[onnx.NodeProto] = []
    left = [*nodes]
    while left:
        ready = [node for node in left if all(name in made or name not in own for name in node.input)]
        if not ready:
            return order
        order += ready
        made.update(name for node in ready for name in node.output)
        left = [node for node in left if not any(node is one for one in ready)]
    return order


def _run(node: onnx.NodeProto, kind: str, attributes: Attributes, values: dict[str, Array], opset: int) -> bool:
    """Run a node; say whether that could be done."""
    arrays = [values[name] if name else None for name in node.input]
    made = evaluate(kind, arrays, attributes, len(node.output))
    if made is None:
        made = evaluated(node, arrays, opset) if kind == node.op_type else None
    if made is None or len(made) < len(node.output):
        return False
    values.update((name, array) for name, array in zip(node.output, made, strict=False) if name)
    return True
