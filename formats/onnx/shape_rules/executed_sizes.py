"""Output types of ops whose sizes ONNX Runtime computes differently from onnx's own inference, at some opset.

Differences seen with onnx 1.23, by comparison with runs: windows of poolings that start in the trailing padding,
poolings with gaps under ``auto_pad``, transposed convolutions with SAME and output padding or an ``output_shape`` of
all axes, sizes scaled in float32, STFT without ``onesided``, slices backwards to the largest integer, and Squeeze with
axes that are not sorted, or count from the end, below opset 11. Element types: the mask of Dropout below opset 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from mtpp.formats.onnx.node_view import MalformedNode, NodeView, kind_of
from mtpp.formats.onnx.shape_rules.window_sizes import pooled_sizes, transposed_sizes
from mtpp.formats.onnx.tensor_type import TensorType
from mtpp.formats.onnx.values import slice_range

Types = Sequence[TensorType | None]


def executed_output_types(node: NodeView) -> Types | None:
    """Return the types of a node's outputs as ONNX Runtime makes them; None where onnx's inference says the same."""
    rule = _RULES.get(node.kind)
    return None if rule is None else rule(node)


def is_sized_by_runs(node: NodeProto) -> bool:
    """Say whether a node may have other sizes by these rules than by onnx's inference."""
    kind = kind_of(node.domain, node.op_type)
    if kind == "Slice":
        return len(node.input) > 4
    if kind == "Squeeze":
        return any(list(one.ints) != sorted(one.ints) or min(one.ints, default=0) < 0 for one in node.attribute)
    return kind in _RULES


def _pooled(node: NodeView) -> Types:
    x, kernel = node.input(0), node.integers("kernel_shape")
    if not kernel:
        raise MalformedNode(f"{node.kind} has no kernel_shape")
    shape = (*x.shape[:2], *pooled_sizes(node, x.shape[2:], kernel))
    return [TensorType(x.dtype, shape), TensorType(TensorProto.INT64, shape)]


def _dropped(node: NodeView) -> Types:
    """Return a mask of the type of the data before opset 10, and of truth values from then on."""
    x = node.input(0)
    return [x, TensorType(x.dtype if node.opset < 10 else TensorProto.BOOL, x.shape)]


def _transposed(node: NodeView) -> Types:
    x, weight = node.input(0), node.input(1)
    channels = weight.shape[1] * node.integer("group", 1)
    return [TensorType(x.dtype, (x.shape[0], channels, *transposed_sizes(node, x.shape[2:], weight.shape[2:])))]


def scaled_size(size: int, scale: float) -> int:
    """Multiply in float32, as the runtime does: 10 times 2.3 is 23."""
    return int(np.float32(size) * np.float32(scale))


def _upsampled(node: NodeView) -> Types | None:
    x = node.input(0)
    given = node.value(1)
    scales = node.attributes.get("scales") if given is None else [float(one) for one in given.reshape(-1)]
    if not scales:
        return None
    return [TensorType(x.dtype, tuple(scaled_size(size, one) for size, one in zip(x.shape, scales, strict=True)))]


def _resized(node: NodeView) -> Types | None:
    """Read the data, then scales (opset 10), or region, scales and sizes; axes that are not named stay."""
    x = node.input(0)
    scales, sizes = (node.value(1), None) if node.opset < 11 else (node.value(2), node.value(3))
    axes = node.integers("axes") or list(range(x.rank))
    if any(not -x.rank <= axis < x.rank for axis in axes):
        raise MalformedNode(f"axes {axes} of a tensor of rank {x.rank}")
    shape = [*x.shape]
    if sizes is not None and sizes.size:
        wanted = dict(zip(axes, (int(one) for one in sizes.reshape(-1)), strict=True))
        policy = node.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            wanted = _in_proportion(wanted, shape, max if policy == "not_smaller" else min)
        for axis, size in wanted.items():
            shape[axis] = size
    elif scales is not None and scales.size:
        for axis, scale in zip(axes, scales.reshape(-1), strict=True):
            shape[axis] = scaled_size(shape[axis], float(scale))
    else:
        return None
    return [TensorType(x.dtype, tuple(shape))]


def _in_proportion(
    wanted: dict[int, int], shape: Sequence[int], choose: Callable[[Sequence[float]], float]
) -> dict[int, int]:
    """Return sizes of one scale for all axes; axes counted from the end stay as they are (ONNX Runtime 1.32)."""
    counted = {axis: size for axis, size in wanted.items() if axis >= 0}
    if not counted:
        return {}
    scale = choose([float(np.float32(size) / np.float32(shape[axis])) for axis, size in counted.items()])
    return {axis: int(np.floor(np.float32(scale) * np.float32(shape[axis]) + np.float32(0.5))) for axis in counted}


def _short_time_spectra(node: NodeView) -> Types | None:
    """Transform a frame of a real signal for each step; of all bins one half is the default, as the operator has it."""
    x, step, length = node.input(0), node.value(1), node.value(3)
    frame = node.input_or_none(2) if not node.has(3) else None
    size = frame.count if frame is not None else None if length is None else int(length.reshape(-1)[0])
    if step is None or size is None:
        return None
    frames = (x.shape[1] - size) // int(step.reshape(-1)[0]) + 1
    if frames < 1:
        raise MalformedNode(f"a frame of {size} does not fit into {x.shape[1]}")
    bins = size // 2 + 1 if node.integer("onesided", 1) else size
    return [TensorType(x.dtype, (x.shape[0], frames, bins, 2))]


def _sliced(node: NodeView) -> Types | None:
    """Cut backwards too: an end of the largest integer is then the first element, and onnx takes nothing."""
    x, bounds = node.input(0), [node.value(index) for index in (1, 2)]
    axes, steps = node.value(3), node.value(4)
    if steps is None or any(one is None for one in bounds) or (axes is None and node.has(3)):
        return None
    starts, ends = ([int(n) for n in one.reshape(-1)] for one in bounds if one is not None)
    places = range(len(starts)) if axes is None else [int(axis) for axis in axes.reshape(-1)]
    shape = [*x.shape]
    for axis, start, end, step in zip(places, starts, ends, steps.reshape(-1), strict=True):
        shape[axis] = len(slice_range(x.shape[axis], start, end, int(step)))
    return [TensorType(x.dtype, tuple(shape))]


def _squeezed(node: NodeView) -> Types | None:
    """Drop axes that an attribute names in any order, from either end: below opset 11, onnx has them sorted from 0."""
    x, axes = node.input(0), node.integers("axes")
    if node.opset > 10 or not axes:
        return None
    if any(x.shape[axis] != 1 for axis in axes):
        raise MalformedNode(f"axes {axes} of {'×'.join(map(str, x.shape))} are not all of one element")
    dropped = {axis % x.rank for axis in axes}
    return [TensorType(x.dtype, tuple(size for axis, size in enumerate(x.shape) if axis not in dropped))]


_RULES: dict[str, Callable[[NodeView], Types | None]] = {
    "AveragePool": _pooled,
    "ConvTranspose": _transposed,
    "Dropout": _dropped,
    "LpPool": _pooled,
    "MaxPool": _pooled,
    "Resize": _resized,
    "STFT": _short_time_spectra,
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Upsample": _upsampled,
    "com.microsoft.nchwc:AveragePool": _pooled,
    "com.microsoft.nchwc:MaxPool": _pooled,
    "com.microsoft:MaxpoolWithMask": _pooled,
}
