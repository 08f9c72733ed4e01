"""Scan and SequenceMap as one op each: a trip per element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mtpp.formats.onnx.control_flow.control_record import (
    BodyRecord,
    BodyWalk,
    ControlRecord,
    body_of,
    open_type,
    trip_note,
)
from mtpp.formats.onnx.control_flow.ranged_trips import RangedTrips, left_ranges
from mtpp.formats.onnx.control_flow.states import after, settled, with_axis
from mtpp.formats.onnx.estimates.certainty import all_axes
from mtpp.formats.onnx.estimates.numbers import Numbers
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.tensor_type import PartialType, SequenceType, TensorType, ValueType


def scan(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the body once per element of the sequence; opset 8 has a batch axis in front of it."""
    batched = node.opset < 9
    body_graph = body_of(node, "body")
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
    for argument, known in zip(arguments[states:], given_known[states:], strict=True):
        argument.maker = partial(_of_elements, known, argument.type)
    if uncertain:
        arguments = [replace(known, open_axes=all_axes(known.type, ranked=True)) for known in arguments]
    body, states_open = settled(
        arguments[:states], 0, lambda begun: walk(body_graph, [*begun, *arguments[states:]], "body")
    )
    record = ControlRecord()
    record.add(body, trips)
    record.notes.insert(0, trip_note(trips, f"{trips} trips, one per element of the sequence"))
    record.types = [after(known, result.type, trips) for known, result in zip(elements, body.outputs, strict=False)][
        :states
    ]
    record.sure = [state.sure for state in states_open]
    if not batched:
        ranged = RangedTrips(body_graph, given_known[:states], body.find, node.opset, first_input=0, first_output=0)
        record.results = left_ranges(ranged, body.outputs[:states], trips, exactly=not uncertain)
    if batched:
        record.types = [open_type(x) for x in operands[:states]]
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
            record.sure.append(with_axis(result, axis, None if uncertain else length))
    return record


def _of_elements(known: Known, kind: ValueType) -> Numbers | None:
    """Return the range of the elements of a sequence."""
    found = known.ranged
    if found is None or not isinstance(kind, TensorType):
        return None
    return Numbers.spread(found.low, found.high, whole=found.whole, shape=kind.shape)


def _without_axis(kind: TensorType, axis: int) -> TensorType:
    axis = axis if axis >= 0 else kind.rank + axis
    return TensorType(kind.dtype, kind.shape[:axis] + kind.shape[axis + 1 :])


def sequence_map(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the body once per element; elements of one type share a count."""
    sequence = node.inputs[0]
    if not isinstance(sequence, SequenceType):
        raise MalformedNode("input 0 of SequenceMap is no sequence of known tensors")
    record = ControlRecord()
    seen: dict[tuple[ValueType, ...], BodyRecord] = {}
    trips = len(sequence.elements)
    per_output: list[list[TensorType]] = [[] for _ in body_of(node, "body").output]
    for position in range(trips):
        arguments: list[ValueType] = []
        for known in inputs:
            if known is not None:
                kind = known.type
                arguments.append(kind.elements[position] if isinstance(kind, SequenceType) else kind)
        key = tuple(arguments)
        if key not in seen:
            seen[key] = walk(body_of(node, "body"), [Known(kind, level + 1) for kind in arguments], "body")
            record.include(seen[key])
        body = seen[key]
        record.work_ps += body.work_ps
        record.flops += body.flops
        record.macs += body.macs
        for collected, result in zip(per_output, body.outputs, strict=True):
            if isinstance(result.type, TensorType):
                collected.append(result.type)
    record.notes.insert(0, trip_note(trips, f"{trips} trips, one per element of the sequence"))
    record.types = [SequenceType(tuple(collected)) for collected in per_output]
    certain = all(known is None or known.is_certain for known in inputs)
    certain = certain and not any(known.open_axes for body in seen.values() for known in body.outputs)
    record.sure = [kind if certain else None for kind in record.types]
    return record
