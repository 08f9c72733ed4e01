"""If, Loop, Scan and SequenceMap as one op each: what their bodies cost, capture and return."""

from __future__ import annotations

from mtpp.formats.onnx.control_flow.branches import branches
from mtpp.formats.onnx.control_flow.control_record import BodyWalk, ControlRecord, ControlRule
from mtpp.formats.onnx.control_flow.loops import loop
from mtpp.formats.onnx.control_flow.scans import scan, sequence_map

__all__ = ["BodyWalk", "ControlRecord", "control_flow_rule"]

_RULES: dict[str, ControlRule] = {"If": branches, "Loop": loop, "Scan": scan, "SequenceMap": sequence_map}


def control_flow_rule(kind: str) -> ControlRule | None:
    """Return how a kind of control flow is counted; None for ordinary ops.

    A rule takes the node, what is known of its inputs, its nesting depth and the walk over a body; it raises
    ValueError or IndexError if the inputs do not fit the operator.
    """
    return _RULES.get(kind)
