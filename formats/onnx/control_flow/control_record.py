"""Record of a control-flow op: what its bodies cost, capture and return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import onnx

from mtpp.errors import InputError
from mtpp.formats.modelled.op_record import Totals
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.scope import Known
from mtpp.formats.onnx.shapes import OutputType
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, ValueType


@dataclass(slots=True)
class BodyRecord(Totals):
    """One run of a body.

    Attributes
    ----------
    captured
        Activations it reads from the graphs around it, with their nesting depth.
    outputs
        What is known of its outputs.
    find
        Returns what is known of a tensor inside, or around it, by name.
    """

    captured: dict[str, int] = field(default_factory=dict)
    outputs: list[Known] = field(default_factory=list)
    random: bool = False
    find: Callable[[str], Known | None] = field(default=lambda name: None)


class BodyWalk(Protocol):
    """Runs over a body with its inputs bound; given by the caller that walks the graph around it.

    Attributes
    ----------
    label
        What the op is called.
    given_trips
        Trips that the caller gives a Loop of that name; None if none.
    """

    label: str
    given_trips: int | None

    def walked(self) -> int:
        """Return how many nodes have been walked over so far, in all."""

    def contradiction(self, trips: int) -> InputError:
        """Return the error for trips that are given, and are not those that the model makes."""

    def __call__(self, body: onnx.GraphProto, inputs: Sequence[Known], name: str) -> BodyRecord:
        """Return what one run of *body* takes; *name* tells the bodies of one op apart."""

    def stored_in(self, body: onnx.GraphProto, name: str) -> dict[str, int]:
        """Return the bytes of all that a body which cannot run holds itself, by name."""


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
    results
        For each output, what it is one of: the results of branches, or of the last trip; empty where nobody knows.
    open_size
        What an open first axis of an output counts as if neither the file nor the user says.
    assumed
        Whether sizes of its outputs are assumptions, and not the largest that they can be.
    left_out
        Bodies that cannot run with the sizes of the model.
    """

    captured: dict[str, int] = field(default_factory=dict)
    types: list[OutputType] = field(default_factory=list)
    sure: list[OutputType | None] = field(default_factory=list)
    results: list[Sequence[Known]] = field(default_factory=list)
    open_size: int | None = None
    assumed: bool = False
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


def body_of(node: NodeView, name: str) -> onnx.GraphProto:
    """Return a body of a node; raise :class:`MalformedNode` if it has none."""
    body = node.attributes.get(name)
    if not isinstance(body, onnx.GraphProto):
        raise MalformedNode(f"{node.kind} has no {name}")
    return body


def open_type(kind: ValueType) -> OutputType:
    """Return a complete type as one that may have gaps."""
    return PartialType(kind.dtype, kind.shape) if isinstance(kind, TensorType) else kind


def trip_note(trip_count: int, note: str, **more: Any) -> dict[str, Any]:
    """Return the note on a control-flow op; its place is filled in by the walks around it."""
    return {"op": "", "kind": "", "trip_count": trip_count, "note": note, **more}
