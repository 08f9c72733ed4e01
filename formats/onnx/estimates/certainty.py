"""Certainty of sizes: which axes of a node's outputs no data can change.

A size is certain if the model, the sizes given for its inputs and constants decide it. One that depends on data has an
estimate: costs are modelled with it, and no file of a stage may rest on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.scope import NO_AXES, RANK, Known
from mtpp.formats.onnx.tensor_type import OpaqueType, PartialType, SequenceType, TensorType, ValueType

OutputType = PartialType | SequenceType | OpaqueType
TypeRule = Callable[[NodeView], Sequence[ValueType | PartialType | None]]

_MISFITS = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)

_OTHER_SIZES: tuple[Callable[[int], int], ...] = (
    lambda size: size + 1,
    lambda size: 2 * size + 37,
    lambda size: size + 1_000_003,
)
"""Sizes that an open axis may have as well: a rule that gives the same with all of them does not look at it."""

_PLACING = {"SequenceAt": 1, "SequenceErase": 1, "SequenceInsert": 2, "SplitToSequence": 1}
"""Ops on sequences with the input that says where: elements change places, or are cut off there."""


def moves_in_sequence(node: NodeView) -> bool:
    """Say whether an op takes, puts or cuts elements that are not alike where only a run tells."""
    where = _PLACING.get(node.kind)
    if where is None or not node.has(where) or node.value(where) is not None:
        return False
    first = node.inputs[0]
    if node.kind == "SplitToSequence":
        return True
    elements = list(first.elements) if isinstance(first, SequenceType) else []
    elements += [node.inputs[1]] if node.kind == "SequenceInsert" and isinstance(node.inputs[1], TensorType) else []
    return len(set(elements)) > 1


def unmoved_types(
    rule: TypeRule, node: NodeView, inputs: Sequence[Known | None], types: Sequence[OutputType]
) -> list[OutputType | None]:
    """Return the types of a node's outputs with every axis open that a rule may compute from an open one.

    Parameters
    ----------
    rule
        Gives the types of the outputs of a node of which everything is known.
    types
        Of the outputs, by estimates.

    Notes
    -----
    The rule is asked again with other sizes of all open axes: what changes is open. Everything is if it refuses them,
    was given elements that are not certain, or sequences that are open.
    """
    given = [known for known in inputs if known is not None]
    ranked = not any(RANK in known.open_axes for known in given)
    everything_open: list[OutputType | None] = [
        PartialType(kind.dtype, (None,) * len(kind.dims) if ranked and kind.dims is not None else None)
        if isinstance(kind, PartialType)
        else None
        for kind in types
    ]
    if any(
        known.elements is not None
        or RANK in known.open_axes
        or (known.open_axes and not isinstance(known.type, TensorType))
        for known in given
    ):
        return everything_open
    if moves_in_sequence(node):
        return [_common_element(node)] if node.kind == "SequenceAt" else everything_open
    found: list[OutputType | None] = [*types]
    for change in _OTHER_SIZES:
        changed = [None if known is None else _changed(known, change) for known in inputs]
        other = NodeView(node.kind, node.opset, node.attributes, changed, node.values)
        try:
            told = list(rule(other))
        except _MISFITS:
            return everything_open
        told += [None] * (len(types) - len(told))
        found = [
            common_type(before, after.without(NO_AXES) if isinstance(after, TensorType) else after)
            for before, after in zip(found, told, strict=False)
        ]
    return found


def _common_element(node: NodeView) -> OutputType | None:
    """Return the common part of the types of a sequence's elements."""
    first = node.inputs[0]
    elements = first.elements if isinstance(first, SequenceType) else ()
    types: list[OutputType | None] = [one.without(NO_AXES) for one in elements]
    return reduce(common_type, types)


def _changed(known: Known, change: Callable[[int], int]) -> ValueType:
    kind = known.type
    if not isinstance(kind, TensorType):
        return kind
    shape = tuple(change(size) if axis in known.open_axes else size for axis, size in enumerate(kind.shape))
    return TensorType(kind.dtype, shape)


def common_type(first: OutputType | None, second: OutputType | None) -> OutputType | None:
    """Return what two types of one tensor have in common."""
    if isinstance(first, PartialType) and isinstance(second, PartialType):
        if first.dims is None or second.dims is None or len(first.dims) != len(second.dims):
            return PartialType(first.dtype)
        return PartialType(
            first.dtype, tuple(a if a == b else None for a, b in zip(first.dims, second.dims, strict=True))
        )
    return first if first == second else None


def open_axes(found: ValueType | None, sure: OutputType | None, *, ranked: bool) -> frozenset[int]:
    """Return the axes of an output that are not certain.

    Parameters
    ----------
    found
        Its complete type, with estimates.
    sure
        What is certain of it.
    ranked
        Whether the caller or the file says how many axes it has.
    """
    if found is None or isinstance(found, OpaqueType):
        return NO_AXES
    if isinstance(found, SequenceType):
        return NO_AXES if sure == found else frozenset((0,))
    dims = sure.dims if isinstance(sure, PartialType) else None
    if dims is None or len(dims) != found.rank:
        return all_axes(found, ranked=ranked)
    return frozenset(axis for axis, dim in enumerate(dims) if not isinstance(dim, int))


def all_axes(kind: ValueType | None, *, ranked: bool) -> frozenset[int]:
    """Return every axis of a tensor, and its rank if nobody says it."""
    if not isinstance(kind, TensorType):
        return frozenset((0,)) if isinstance(kind, SequenceType) else NO_AXES
    return frozenset(range(kind.rank)) | (NO_AXES if ranked else {RANK})
