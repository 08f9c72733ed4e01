"""Most trips of a Loop whose condition depends on data: its counter ends it at the latest where its limit does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto

from mtpp.formats.onnx.control_flow.trips import sorted_nodes
from mtpp.formats.onnx.estimates.number_rules import numbers_made
from mtpp.formats.onnx.estimates.numbers import Numbers
from mtpp.formats.onnx.estimates.operands import Operands
from mtpp.formats.onnx.node_view import NodeView, kind_of
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.topology import subgraphs
from mtpp.formats.onnx.values import attribute_values

MOST_STEPS = 20_000
"""Nodes that are gone through to count."""

Find = Callable[[str], Known | None]
"""Returns what is known of a tensor of the body on any trip."""


def most_trips(
    body: onnx.GraphProto, limit: int | None, carried: Sequence[Known], find: Find, opset: int
) -> int | None:
    """Return how often the body of a Loop runs at most; *limit*, None for no limit, where the condition tells nothing.

    Parameters
    ----------
    carried
        What is known of the carried values before the first trip.

    Notes
    -----
    The ranges of the condition, and of what it depends on, are computed trip by trip: an ``And`` is false as soon as
    one side is. At most :data:`MOST_STEPS` nodes.
    """
    nodes, states = _needed(body)
    names = [value.name for value in body.input]
    results = [value.name for value in body.output]
    begun = {place: carried[place].ranged for place in states}
    before: tuple[object, ...] | None = None
    trips = 0
    while (limit is None or trips < limit) and (trips + 1) * (len(nodes) + 1) <= MOST_STEPS:
        values = {
            names[0]: Known(TensorType(TensorProto.INT64, ()), 0, value=np.array(trips, np.int64)),
            names[1]: Known(TensorType(TensorProto.BOOL, ()), 0, value=np.array(True)),
        }
        for place, numbers in begun.items():
            values[names[2 + place]] = Known(carried[place].type, 0, numbers=numbers)
        for node in nodes:
            _run(node, values, find, opset)
        trips += 1
        goes_on = _ranged(results[0], values, find)
        if goes_on is not None and goes_on.high <= 0:
            return trips
        begun = {place: _ranged(results[1 + place], values, find) for place in begun}
        now = tuple(None if one is None else (one.low, one.high) for one in begun.values())
        if now == before and names[0] not in {name for node in nodes for name in node.input}:
            break  # it goes on like this
        before = now
    return limit


def _ranged(name: str, values: dict[str, Known], find: Find) -> Numbers | None:
    known = values.get(name) or find(name)
    return None if known is None else known.ranged


def _run(node: onnx.NodeProto, values: dict[str, Known], find: Find, opset: int) -> None:
    """Make the ranges of a node's outputs known."""
    inputs = [(values.get(name) or find(name)) if name else None for name in node.input]
    kind = kind_of(node.domain, node.op_type)
    view = NodeView(
        kind,
        opset,
        attribute_values(node.attribute),
        [None if known is None else known.type for known in inputs],
        [None if known is None else known.certain_value for known in inputs],
    )
    there = [find(name) if name else None for name in node.output]
    made = [None if known is None else known.type for known in there]
    found = [*numbers_made(Operands(view, inputs, made)), *(None for _ in made)]
    for name, known, numbers in zip(node.output, there, found, strict=False):
        if name and known is not None and numbers is not None:
            values[name] = Known(known.type, 0, open_axes=known.open_axes, numbers=numbers)


def _needed(body: onnx.GraphProto) -> tuple[list[onnx.NodeProto], list[int]]:
    """Return the nodes that the condition depends on through all trips, in order, and the carried values."""
    makers = {name: i for i, node in enumerate(body.node) for name in node.output if name}
    inputs = {value.name: i for i, value in enumerate(body.input)}
    chosen: set[int] = set()
    states: set[int] = set()
    seen: set[str] = set()
    waiting = [body.output[0].name]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        place = inputs.get(name)
        if place is not None and place >= 2:
            states.add(place - 2)
            waiting.append(body.output[place - 1].name)
        elif name in makers and not any(True for _ in subgraphs(body.node[makers[name]])):
            chosen.add(makers[name])
            waiting += [read for read in body.node[makers[name]].input if read]
    return sorted_nodes([body.node[i] for i in sorted(chosen)]), sorted(states)
