"""Faults of a node that onnx's C++ shape inference does not check: it crashes or hangs on them (seen with 1.23)."""

from __future__ import annotations

import re
from collections.abc import Callable

from mtpp.formats.onnx.node_view import NodeView
from mtpp.formats.onnx.tensor_type import TensorType

_AXIS_ATTRIBUTES = ("axis", "axes", "perm", "batch_axis", "time_axis")
_HIGHEST_NEW_AXIS = 64
"""Unsqueeze may add several axes, and names them as they stand in its output."""

_LETTERS = re.compile(r"[A-Za-z ]*(\.\.\.)?[A-Za-z ]*")


def fault_that_inference_misses(node: NodeView, outputs: int) -> str | None:
    """Say what is wrong with a node on which shape inference must not be run; None if nothing is."""
    check = _CHECKS.get(node.kind)
    return _wrong_axis(node) or (check(node, outputs) if check is not None else None)


def _wrong_axis(node: NodeView) -> str | None:
    first = node.inputs[0] if node.inputs else None
    if not isinstance(first, TensorType):
        return None
    # Ops that add an axis may name the one behind the last.
    above = first.rank - 1 if node.kind in ("LayerNormalization", "RMSNormalization") else first.rank
    for name in _AXIS_ATTRIBUTES:
        value = node.attributes.get(name)
        highest = _HIGHEST_NEW_AXIS if name == "axes" else above
        for axis in [value] if isinstance(value, int) else value if isinstance(value, list) else []:
            if isinstance(axis, int) and not -highest - 1 <= axis <= highest:
                return f"{name} {axis} is no axis of a tensor of rank {first.rank}"
    return None


def _wrong_split(node: NodeView, outputs: int) -> str | None:
    parts = node.attributes.get("num_outputs", outputs)
    if parts != outputs:
        return f"num_outputs is {parts}, but the node has {outputs} outputs"
    return None


def _wrong_equation(node: NodeView, outputs: int) -> str | None:
    left, _, right = node.text("equation", "").partition("->")
    if all(_LETTERS.fullmatch(term) for term in [*left.split(","), right]):
        return None
    return "the equation is not one of letters, commas and an arrow"


_CHECKS: dict[str, Callable[[NodeView, int], str | None]] = {
    "Einsum": _wrong_equation,
    "Split": _wrong_split,
}
