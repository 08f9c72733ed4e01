"""If, Loop, Scan and SequenceMap as one op each: what their bodies cost, capture and return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import TensorProto

from mtpp.errors import InputError
from mtpp.formats.modelled.control_notes import COSTLIER_BRANCH, LEFT_OUT, MAY_STOP, ONE_TRIP
from mtpp.formats.modelled.op_record import Totals
from mtpp.formats.onnx.estimates.certainty import all_axes, common_type, open_axes
from mtpp.formats.onnx.misfit import is_misfit
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.record import BodyRecord
from mtpp.formats.onnx.scope import Known, Parameter
from mtpp.formats.onnx.sequences import MOST_ELEMENTS
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import PartialType, SequenceType, TensorType, ValueType
from mtpp.formats.onnx.topology import subgraphs

WITHOUT_LIMIT = 2**31
"""Exporters write 2^63 − 1 as the trip count of a ``while``: that is none."""


class BodyWalk(Protocol):
    """Runs over a body with its inputs bound; given by the caller that walks the graph around it."""

    def __call__(self, body: onnx.GraphProto, inputs: Sequence[Known], name: str) -> BodyRecord:
        """Return what one run of *body* takes; *name* tells the bodies of one op apart."""


@dataclass(slots=True)
class ControlRecord(Totals):
    """A control-flow op.

    Attributes
    ----------
    captured
        Activations that its bodies read from the graphs around it, with their nesting depth.
    types
        Of its outputs.
    sure
        What is certain of them, one by one; where nothing stands, all of their types.
    open_size
        What an open first axis of an output counts as if neither the file nor the user says.
    left_out
        Bodies that cannot run with the sizes of the model.
    """

    captured: dict[str, int] = field(default_factory=dict)
    types: list[OutputType] = field(default_factory=list)
    sure: list[OutputType | None] = field(default_factory=list)
    open_size: int | None = None
    random: bool = False
    left_out: int = 0

    def add(self, body: BodyRecord, times: int) -> None:
        """Count *times* runs of a body; its parameters count once."""
        self.work_ps += times * body.work_ps
        self.flops += times * body.flops
        self.macs += times * body.macs
        self.include(body)

    def include(self, body: BodyRecord) -> None:
        """Take over what a body needs, without counting its work."""
        self.parameters |= body.parameters
        self.not_modelled += body.not_modelled
        self.notes += body.notes
        self.captured |= body.captured
        self.random = self.random or body.random


ControlRule = Callable[[NodeView, Sequence[Known | None], int, BodyWalk], ControlRecord]


def control_flow_rule(kind: str) -> ControlRule | None:
    """Return how a kind of control flow is counted; None for ordinary ops.

    A rule takes the node, what is known of its inputs, its nesting depth and the walk over a body; it raises
    ValueError or IndexError if the inputs do not fit the operator.
    """
    return _RULES.get(kind)


def _body(node: NodeView, name: str) -> onnx.GraphProto:
    body = node.attributes.get(name)
    if not isinstance(body, onnx.GraphProto):
        raise MalformedNode(f"{node.kind} has no {name}")
    return body


def _open(kind: ValueType) -> OutputType:
    return PartialType(kind.dtype, kind.shape) if isinstance(kind, TensorType) else kind


def _note(trip_count: int, note: str, **more: Any) -> dict[str, Any]:
    return {"op": "", "kind": "", "trip_count": trip_count, "note": note, **more}


def _if(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the more expensive branch; a branch that a constant condition rules out is not looked at."""
    record = ControlRecord()
    branches = ["then_branch", "else_branch"]
    condition = inputs[0].certain_value if inputs and inputs[0] is not None else None
    if condition is not None and condition.size == 1:
        chosen = branches[0 if bool(condition.reshape(-1)[0]) else 1]
        body = walk(_body(node, chosen), [], chosen)
        record.add(body, 1)
        record.notes.insert(0, _note(1, f"the condition is constant: {chosen} counted"))
        record.sure = [known.sure for known in body.outputs]
    else:
        bodies = _runnable(node, branches, walk)
        costly = max(bodies, key=lambda name: bodies[name].work_ps)
        body = bodies[costly]
        record.add(body, 1)
        note = f"{COSTLIER_BRANCH}: {costly}"
        for name in branches:
            if name in bodies and name != costly:
                record.include(bodies[name])
            elif name not in bodies:
                record.left_out += 1
                record.parameters |= _stored_in(_body(node, name), f"{name}/")
                note = f"{name} {LEFT_OUT}: {costly} counted"
        record.notes.insert(0, _note(1, note))
        record.sure = [_common([one.outputs[i] for one in bodies.values()]) for i in range(len(body.outputs))]
    record.types = [_open(known.type) for known in body.outputs]
    return record


def _common(outcomes: Sequence[Known]) -> OutputType | None:
    """Return what is certain of an output that is one of several."""
    found = outcomes[0].sure
    for other in outcomes[1:]:
        found = common_type(found, other.sure)
    return found


def _runnable(node: NodeView, branches: Sequence[str], walk: BodyWalk) -> dict[str, BodyRecord]:
    """Return the branches that can run with the sizes of the model, at least one of them.

    Models for several rates of sampling, or several numbers of frames, hold branches that fit one of them alone.
    """
    bodies: dict[str, BodyRecord] = {}
    refused: list[InputError] = []
    for name in branches:
        try:
            bodies[name] = walk(_body(node, name), [], name)
        except InputError as error:
            if not is_misfit(error):
                raise
            refused.append(error)
    if not bodies:
        raise refused[0]
    return bodies


def _stored_in(body: onnx.GraphProto, path: str) -> dict[str, int]:
    """Return the bytes of what a body stores itself, by name."""
    stored = {tensor.name: tensor for tensor in body.initializer}
    for node in body.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.HasField("t"):
                stored[node.output[0]] = attribute.t
    found = {path + name: TensorType(t.data_type, tuple(t.dims)).bytes for name, t in stored.items()}
    for node, name, inner in ((one, name, inner) for one in body.node for name, inner in subgraphs(one)):
        found |= _stored_in(inner, f"{path}{node.name}/{name}/")
    return found


def _loop(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the body once per trip if the trip count is constant, else once."""
    trips, note = _trip_count(node)
    body_graph = _body(node, "body")
    carried = [known for known in inputs[2:] if known is not None]
    if len(carried) != len(inputs) - 2 or len(body_graph.input) != len(carried) + 2:
        raise MalformedNode("the body's inputs do not match those of Loop")
    # An iteration only runs while the condition holds: inside the body it is true.
    always = Known(TensorType(TensorProto.BOOL, ()), level + 1, Parameter("true", 0), np.array(True))
    iteration = Known(TensorType(TensorProto.INT64, ()), level + 1)
    body, carried_open = _settled(carried, 1, lambda states: walk(body_graph, [iteration, always, *states], "body"))
    goes_on = body.outputs[0].certain_value
    counted = trips is not None and all(known is None or known.elements is None for known in inputs[:2])
    if trips is not None and not (goes_on is not None and bool(goes_on.reshape(-1).all())):
        counted = counted and trips == 0
        note = f"at most {trips} trips: {MAY_STOP}"
    times = 1 if trips is None else trips
    record = ControlRecord()
    record.add(body, times)
    record.notes.insert(0, _note(times, note))
    returned = body.outputs[1:]
    record.types = [_after(known.type, result.type, times) for known, result in zip(carried, returned, strict=False)]
    record.sure = [state.sure for state in (carried if counted and times == 0 else carried_open)]
    if counted and times == 1:
        record.sure = [result.sure for result in returned[: len(carried)]]
    for result in returned[len(carried) :]:
        if not isinstance(result.type, TensorType):
            raise MalformedNode("a scan output of Loop must be a tensor")
        record.types.append(PartialType(result.type.dtype, (trips, *result.type.shape)))
        record.sure.append(_with_axis(result, 0, trips if counted else None))
    record.open_size = 1 if trips is None else None
    return record


def _settled(
    states: Sequence[Known], first: int, walk: Callable[[Sequence[Known]], BodyRecord]
) -> tuple[BodyRecord, list[Known]]:
    """Walk over a body until its states are as open as it leaves them.

    A size that changes from trip to trip is open inside the body as well: what is computed from it changes too.

    Parameters
    ----------
    first
        Index of the first state among the outputs of the body.

    Returns
    -------
    The last walk, and the states before it: what is certain of them holds before and after every trip.
    """
    inner = [replace(known, level=known.level + 1, parameter=None, value=None, elements=None) for known in states]
    while True:
        body = walk(inner)
        opened = []
        for state, result in zip(inner, body.outputs[first:], strict=False):
            common = common_type(state.sure, result.sure)
            axes = open_axes(state.type, common, ranked=False)
            opened.append(replace(state, open_axes=state.open_axes | axes))
        if all(now.open_axes == before.open_axes for now, before in zip(opened, inner, strict=True)):
            return body, inner
        inner = opened


def _with_axis(result: Known, axis: int, size: int | None) -> OutputType | None:
    """Return what is certain of the results of all trips together: one axis more than those of one trip."""
    sure = result.sure
    if not isinstance(sure, PartialType) or sure.dims is None:
        return None
    dims = [*sure.dims]
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, size)
    return PartialType(sure.dtype, tuple(dims))


def _trip_count(node: NodeView) -> tuple[int | None, str]:
    first = node.value(1)
    if first is not None and first.size == 1 and not bool(first.reshape(-1)[0]):
        return 0, "no trip: the condition is false from the start"
    limit = node.value(0)
    if limit is None or not limit.size or int(limit.reshape(-1)[0]) >= WITHOUT_LIMIT:
        return None, f"the trip count is not known: {ONE_TRIP}"
    trips = max(0, int(limit.reshape(-1)[0]))
    return trips, f"{trips} trips"


def _after(before: ValueType, after: ValueType, trips: int) -> OutputType:
    """Return the type of a loop-carried value after all trips; a size that changes from trip to trip is open."""
    if trips == 0:
        return _open(before)
    if before == after or trips == 1:
        return _open(after)
    if isinstance(before, TensorType) and isinstance(after, TensorType) and before.rank == after.rank:
        sizes = zip(before.shape, after.shape, strict=True)
        return PartialType(after.dtype, tuple(a if a == b else None for a, b in sizes))
    if isinstance(before, SequenceType) and isinstance(after, SequenceType):
        length = len(before.elements)
        grown = after.elements[length:]
        if after.elements[:length] == before.elements and len(grown) * trips <= MOST_ELEMENTS:
            return SequenceType((*before.elements, *(grown * trips)))
    return PartialType()


def _scan(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the body once per element of the sequence; opset 8 has a batch axis in front of it."""
    batched = node.opset < 9
    body_graph = _body(node, "body")
    given = [known.type if known is not None else None for known in (inputs[1:] if batched else inputs)]
    operands = [kind for kind in given if isinstance(kind, TensorType)]
    scanned = node.integer("num_scan_inputs", 0)
    states = len(operands) - scanned
    if len(operands) != len(given) or scanned < 1 or states < 0 or len(body_graph.input) != len(operands):
        raise MalformedNode("the body's inputs do not match those of Scan")
    axes = node.integers("scan_input_axes") or [0] * scanned
    if batched:
        length = operands[states].shape[1]
        trips = operands[states].shape[0] * length
        elements = [TensorType(x.dtype, x.shape[1:]) for x in operands[:states]]
        elements += [TensorType(x.dtype, x.shape[2:]) for x in operands[states:]]
    else:
        trips = length = operands[states].shape[axes[0]]
        elements = operands[:states]
        elements += [_without_axis(x, axis) for x, axis in zip(operands[states:], axes, strict=True)]
    given_known = [known for known in (inputs[1:] if batched else inputs) if known is not None]
    uncertain = any(not known.is_certain for known in given_known)
    arguments = [Known(element, level + 1) for element in elements]
    if uncertain:
        arguments = [replace(known, open_axes=all_axes(known.type, ranked=True)) for known in arguments]
    body, states_open = _settled(
        arguments[:states], 0, lambda begun: walk(body_graph, [*begun, *arguments[states:]], "body")
    )
    record = ControlRecord()
    record.add(body, trips)
    record.notes.insert(0, _note(trips, f"{trips} trips, one per element of the sequence"))
    record.types = [_after(known, result.type, trips) for known, result in zip(elements, body.outputs, strict=False)][
        :states
    ]
    record.sure = [state.sure for state in states_open]
    if batched:
        record.types = [_open(x) for x in operands[:states]]
        record.sure = [None if uncertain else kind for kind in record.types]
    results = body.outputs[states:]
    out_axes = node.integers("scan_output_axes") or [0] * len(results)
    for result, axis in zip(results, out_axes, strict=True):
        if not isinstance(result.type, TensorType):
            raise MalformedNode("a scan output must be a tensor")
        shape = [*result.type.shape]
        if batched:
            shape = [operands[states].shape[0], length, *shape]
        else:
            shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, length)
        record.types.append(PartialType(result.type.dtype, tuple(shape)))
        if batched:
            record.sure.append(None if uncertain or result.open_axes else record.types[-1])
        else:
            record.sure.append(_with_axis(result, axis, None if uncertain else length))
    return record


def _without_axis(kind: TensorType, axis: int) -> TensorType:
    axis = axis if axis >= 0 else kind.rank + axis
    return TensorType(kind.dtype, kind.shape[:axis] + kind.shape[axis + 1 :])


def _sequence_map(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the body once per element; elements of one type share a count."""
    sequence = node.inputs[0]
    if not isinstance(sequence, SequenceType):
        raise MalformedNode("input 0 of SequenceMap is no sequence of known tensors")
    record = ControlRecord()
    seen: dict[tuple[ValueType, ...], BodyRecord] = {}
    trips = len(sequence.elements)
    per_output: list[list[TensorType]] = [[] for _ in _body(node, "body").output]
    for position in range(trips):
        arguments: list[ValueType] = []
        for known in inputs:
            if known is not None:
                kind = known.type
                arguments.append(kind.elements[position] if isinstance(kind, SequenceType) else kind)
        key = tuple(arguments)
        if key not in seen:
            seen[key] = walk(_body(node, "body"), [Known(kind, level + 1) for kind in arguments], "body")
            record.include(seen[key])
        body = seen[key]
        record.work_ps += body.work_ps
        record.flops += body.flops
        record.macs += body.macs
        for collected, result in zip(per_output, body.outputs, strict=True):
            if isinstance(result.type, TensorType):
                collected.append(result.type)
    record.notes.insert(0, _note(trips, f"{trips} trips, one per element of the sequence"))
    record.types = [SequenceType(tuple(collected)) for collected in per_output]
    certain = all(known is None or known.is_certain for known in inputs)
    certain = certain and not any(known.open_axes for body in seen.values() for known in body.outputs)
    record.sure = [kind if certain else None for kind in record.types]
    return record


_RULES: dict[str, ControlRule] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map}
