"""States that a body hands on from trip to trip, and what its results are put together to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mtpp.formats.onnx.control_flow.control_record import BodyRecord, open_type
from mtpp.formats.onnx.estimates.certainty import common_type, open_axes
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.sequences import MOST_ELEMENTS
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import PartialType, SequenceType, TensorType, ValueType


def settled(
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
    inner = [replace(known.forgotten, level=known.level + 1, parameter=None) for known in states]
    while True:
        body = walk(inner)
        opened = []
        for state, result in zip(inner, body.outputs[first:], strict=False):
            common = common_type(state.sure, result.sure)
            axes = open_axes(state.type, common, ranked=False)
            changed = state.assumed_axes | (axes - state.open_axes)  # nobody knows how large it gets
            opened.append(replace(state, open_axes=state.open_axes | axes, assumed_axes=changed))
        if all(now.open_axes == before.open_axes for now, before in zip(opened, inner, strict=True)):
            return body, inner
        inner = opened


def with_axis(result: Known, axis: int, size: int | None) -> OutputType | None:
    """Return what is certain of the results of all trips together: one axis more than those of one trip."""
    sure = result.sure
    if not isinstance(sure, PartialType) or sure.dims is None:
        return None
    dims = [*sure.dims]
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, size)
    return PartialType(sure.dtype, tuple(dims))


def after(before: ValueType, after: ValueType, trips: int) -> OutputType:
    """Return the type of a loop-carried value after all trips; a size that changes from trip to trip is open."""
    if trips == 0:
        return open_type(before)
    if before == after or trips == 1:
        return open_type(after)
    if isinstance(before, TensorType) and isinstance(after, TensorType) and before.rank == after.rank:
        sizes = zip(before.shape, after.shape, strict=True)
        return PartialType(after.dtype, tuple(a if a == b else None for a, b in sizes))
    if isinstance(before, SequenceType) and isinstance(after, SequenceType):
        length = len(before.elements)
        grown = after.elements[length:]
        if after.elements[:length] == before.elements and len(grown) * trips <= MOST_ELEMENTS:
            return SequenceType((*before.elements, *(grown * trips)))
    return PartialType()
