"""If as one op: the branch that a constant condition takes, else the more expensive one."""

from __future__ import annotations

from collections.abc import Sequence

from mtpp.errors import InputError
from mtpp.formats.modelled.control_notes import COSTLIER_BRANCH, LEFT_OUT
from mtpp.formats.modelled.open_sizes import is_misfit
from mtpp.formats.onnx.control_flow.control_record import (
    BodyRecord,
    BodyWalk,
    ControlRecord,
    body_of,
    open_type,
    trip_note,
)
from mtpp.formats.onnx.estimates.certainty import common_type
from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import PartialType, TensorType


def branches(node: NodeView, inputs: Sequence[Known | None], level: int, walk: BodyWalk) -> ControlRecord:
    """Count the more expensive branch; a branch that a constant condition rules out is not looked at."""
    record = ControlRecord()
    names = ["then_branch", "else_branch"]
    condition = inputs[0].certain_value if inputs and inputs[0] is not None else None
    if condition is not None and condition.size == 1:
        chosen = names[0 if bool(condition.reshape(-1)[0]) else 1]
        body = walk(body_of(node, chosen), [], chosen)
        record.add(body, 1)
        record.notes.insert(0, trip_note(1, f"the condition is constant: {chosen} counted"))
        record.sure = [known.sure for known in body.outputs]
        record.results = [[known] for known in body.outputs]
    else:
        bodies = _runnable(node, names, walk)
        costly = max(bodies, key=lambda name: bodies[name].work_ps)
        body = bodies[costly]
        record.add(body, 1)
        note = f"{COSTLIER_BRANCH}: {costly}"
        for name in names:
            if name in bodies and name != costly:
                record.include(bodies[name])
            elif name not in bodies:
                record.left_out += 1
                record.parameters |= walk.stored_in(body_of(node, name), name)
                note = f"{name} {LEFT_OUT}: {costly} counted"
        record.notes.insert(0, trip_note(1, note))
        record.results = [[one.outputs[i] for one in bodies.values()] for i in range(len(body.outputs))]
        record.sure = [_common(known) for known in record.results]
    record.types = [open_type(known.type) for known in body.outputs]
    record.types = [_largest(*pair) for pair in zip(record.types, record.results, strict=True)]
    return record


def _largest(kind: OutputType, outcomes: Sequence[Known]) -> OutputType:
    """Return a type with the largest sizes that any outcome has, where all have as many axes."""
    shapes = [known.type.shape for known in outcomes if isinstance(known.type, TensorType)]
    if not isinstance(kind, PartialType) or len(shapes) < len(outcomes) or len(set(map(len, shapes))) != 1:
        return kind
    return PartialType(kind.dtype, tuple(map(max, zip(*shapes, strict=True))))


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
            bodies[name] = walk(body_of(node, name), [], name)
        except InputError as error:
            if not is_misfit(error):
                raise
            refused.append(error)
    if not bodies:
        raise refused[0]
    return bodies
