"""Faults of a node that onnx's C++ shape inference does not check: it crashes or hangs on them (seen with 1.23)."""

from __future__ import annotations

import re
from collections.abc import Callable

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.shape_rules.window_sizes import windows
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


def _window_too_large(weight_input: int) -> Callable[[NodeView, int], str | None]:
    """Return the check of a convolution whose weights are that input: ONNX Runtime refuses a window without a place."""

    def check(node: NodeView, outputs: int) -> str | None:
        x, weight = (node.inputs[i] if i < len(node.inputs) else None for i in (0, weight_input))
        if not isinstance(x, TensorType) or not isinstance(weight, TensorType) or weight.rank != x.rank:
            return None  # shape inference says what is wrong
        kernel, sizes = weight.shape[2:], x.shape[2:]
        try:
            found = windows(node, sizes, kernel)
        except MalformedNode:
            return None
        if all(window.room >= 0 for window in found):
            return None
        return f"the window {'×'.join(map(str, kernel))} does not fit into {'×'.join(map(str, sizes))}"

    return check


def _pool_too_large(node: NodeView, outputs: int) -> str | None:
    """Check that no window is so much larger than what it slides over that less than nothing would be left."""
    x, kernel = node.inputs[0] if node.inputs else None, node.integers("kernel_shape")
    if not isinstance(x, TensorType) or not kernel:
        return None
    try:
        found = windows(node, x.shape[2:], kernel)
    except MalformedNode:
        return None
    if all(window.room >= -window.stride for window in found):
        return None
    return f"the window {'×'.join(map(str, kernel))} does not fit into {'×'.join(map(str, x.shape[2:]))}"


def _mirror_too_large(node: NodeView, outputs: int) -> str | None:
    """Check that what is added by reflection is there to be reflected."""
    first, pads = node.inputs[0] if node.inputs else None, node.value(1)
    if node.text("mode", "constant") != "reflect" or not isinstance(first, TensorType) or pads is None or node.has(3):
        return None
    widths = [int(width) for width in pads.reshape(-1)]
    if len(widths) != 2 * first.rank:
        return None
    for axis, size in enumerate(first.shape):
        widest = max(widths[axis], widths[first.rank + axis])
        if widest >= max(size, 1):
            return f"{widest} elements cannot be reflected from {size} (axis {axis})"
    return None


_CHECKS: dict[str, Callable[[NodeView, int], str | None]] = {
    "AveragePool": _pool_too_large,
    "Conv": _window_too_large(1),
    "ConvInteger": _window_too_large(1),
    "Einsum": _wrong_equation,
    "LpPool": _pool_too_large,
    "MaxPool": _pool_too_large,
    "Pad": _mirror_too_large,
    "QLinearConv": _window_too_large(3),
    "Split": _wrong_split,
    "com.microsoft:FusedConv": _window_too_large(1),
}
