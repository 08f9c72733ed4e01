"""Trips of a Loop or Scan, followed by the ranges of numbers alone: their largest number, and the states they leave.

A counter ends a loop that data may end earlier; a sum over a mask is no more than the mask is long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import onnx
from onnx import TensorProto

from mtpp.formats.onnx.control_flow.trips import sorted_nodes
from mtpp.formats.onnx.estimates.number_rules import numbers_made, one_of
from mtpp.formats.onnx.estimates.numbers import Numbers
from mtpp.formats.onnx.estimates.operands import Operands
from mtpp.formats.onnx.node_view import NodeView, kind_of
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.topology import subgraphs
from mtpp.formats.onnx.values import attribute_values

MOST_STEPS = 20_000
"""Nodes that are gone through for one question."""

Find = Callable[[str], Known | None]
"""Returns the facts known of a tensor of the body on any trip."""

Ranges = dict[int, Numbers | None]
"""Of carried values, by place."""


@dataclass(frozen=True)
class RangedTrips:
    """A body whose trips are gone through.

    Attributes
    ----------
    carried
        Facts known of the carried values before the first trip.
    first_input, first_output
        Places of the first of these among the inputs and the outputs of the body: 2 and 1 in a Loop, 0 in a Scan.
    """

    body: onnx.GraphProto
    carried: Sequence[Known]
    find: Find
    opset: int
    first_input: int = 2
    first_output: int = 1

    def most(self, limit: int | None) -> int | None:
        """Return how often the body of a Loop runs at most; *limit* where its condition never ends it for certain.

        Notes
        -----
        The range of the condition is computed trip by trip: an ``And`` is false as soon as one side is.
        """
        nodes, states = self._needed(self.body.output[0].name)
        begun: Ranges = {place: self.carried[place].ranged for place in states}
        counting = self.first_input and self.body.input[0].name in {name for node in nodes for name in node.input}
        trips = 0
        while (limit is None or trips < limit) and (trips + 1) * (len(nodes) + 1) <= MOST_STEPS:
            values, after = self._trip(nodes, begun, trips)
            trips += 1
            goes_on = self._ranged(self.body.output[0].name, values)
            if goes_on is not None and goes_on.high <= 0:
                return trips
            if not counting and _ends(after) == _ends(begun):
                break  # it goes on like this
            begun = after
        return limit

    def left(self, place: int, trips: int, *, exactly: bool) -> Numbers | None:
        """Return the ranges of a carried value after the last trip; None where they cannot be told.

        Parameters
        ----------
        trips
            How many there are; at most so many unless *exactly*.
        """
        nodes, states = self._needed(self.body.output[self.first_output + place].name)
        if trips * (len(nodes) + 1) > MOST_STEPS:
            return None
        begun: Ranges = {one: self.carried[one].ranged for one in {*states, place}}
        seen = [begun[place]]
        for trip in range(trips):
            _, begun = self._trip(nodes, begun, trip)
            seen.append(begun[place])
        return seen[-1] if exactly else one_of(seen)

    def _trip(self, nodes: Sequence[onnx.NodeProto], begun: Ranges, trip: int) -> tuple[dict[str, Known], Ranges]:
        """Go through one trip; return its tensors, and the carried values after it."""
        names = [value.name for value in self.body.input]
        values: dict[str, Known] = {}
        if self.first_input:
            values[names[0]] = Known(TensorType(TensorProto.INT64, ()), 0, value=np.array(trip, np.int64))
            values[names[1]] = Known(TensorType(TensorProto.BOOL, ()), 0, value=np.array(True))
        for place, numbers in begun.items():
            values[names[self.first_input + place]] = Known(self.carried[place].type, 0, numbers=numbers)
        for node in nodes:
            self._run(node, values)
        results = [value.name for value in self.body.output[self.first_output :]]
        return values, {place: self._ranged(results[place], values) for place in begun}

    def _ranged(self, name: str, values: dict[str, Known]) -> Numbers | None:
        known = self._known(name, values)
        return None if known is None else known.ranged

    def _known(self, name: str, values: dict[str, Known]) -> Known | None:
        """Return the facts known of a tensor in one trip: numbers that the body makes are others in the next one."""
        if name not in values:
            known = self.find(name)
            if known is None or name not in self._made or known.certain_value is not None:
                return known
            if (numbers := known.ranged) is None:
                return known
            values[name] = replace(known, numbers=numbers.renewed, maker=None)
        return values[name]

    @cached_property
    def _made(self) -> frozenset[str]:
        """Names of the tensors that the body is given or makes on each trip."""
        given = {value.name for value in self.body.input}
        return frozenset(given.union(name for node in self.body.node for name in node.output))

    def _run(self, node: onnx.NodeProto, values: dict[str, Known]) -> None:
        """Make the ranges of a node's outputs known."""
        inputs = [self._known(name, values) if name else None for name in node.input]
        view = NodeView(
            kind_of(node.domain, node.op_type),
            self.opset,
            attribute_values(node.attribute),
            [None if known is None else known.type for known in inputs],
            [None if known is None else known.certain_value for known in inputs],
        )
        there = [self.find(name) if name else None for name in node.output]
        made = [None if known is None else known.type for known in there]
        found = [*numbers_made(Operands(view, inputs, made)), *(None for _ in made)]
        for name, known, numbers in zip(node.output, there, found, strict=False):
            if name and known is not None and numbers is not None:
                values[name] = Known(known.type, 0, open_axes=known.open_axes, numbers=numbers)

    def _needed(self, result: str) -> tuple[list[onnx.NodeProto], set[int]]:
        """Return the nodes that a result depends on through all trips, in order, and the carried values."""
        makers = {name: i for i, node in enumerate(self.body.node) for name in node.output if name}
        inputs = {value.name: i - self.first_input for i, value in enumerate(self.body.input)}
        chosen: set[int] = set()
        states: set[int] = set()
        seen: set[str] = set()
        waiting = [result]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            place = inputs.get(name, -1)
            if 0 <= place < len(self.carried):
                states.add(place)
                waiting.append(self.body.output[self.first_output + place].name)
            elif name in makers and not any(True for _ in subgraphs(self.body.node[makers[name]])):
                chosen.add(makers[name])
                waiting += [read for read in self.body.node[makers[name]].input if read]
        return sorted_nodes([self.body.node[i] for i in sorted(chosen)]), states


def left_ranges(trips: RangedTrips, after: Sequence[Known], count: int, *, exactly: bool) -> list[Sequence[Known]]:
    """Return the carried values after *count* trips, told when somebody asks; *after*: after one."""
    found: list[Sequence[Known]] = []
    for place, (known, result) in enumerate(zip(trips.carried, after, strict=False)):
        if known.type != result.type:
            found.append(())
        else:
            found.append([Known(known.type, 0, maker=partial(trips.left, place, count, exactly=exactly))])
    return found


def _ends(ranges: Ranges) -> dict[int, tuple[float, float] | None]:
    return {place: None if one is None else (one.low, one.high) for place, one in ranges.items()}
