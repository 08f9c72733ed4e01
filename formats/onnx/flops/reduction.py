"""Cost rules of ops that combine many elements into one: pooling, reductions, resampling, selection, transforms."""

from __future__ import annotations

import math

from mtpp.formats.modelled.flop_counts import (
    ADAPTIVE_SAMPLES,
    IOU_FLOPS,
    SAMPLE_FLOPS,
    antialiased_flops,
    fourier_flops,
    heap_flops,
    n_log_n,
)
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.onnx.flops.cost_rule import CostRule, per_input_element
from mtpp.formats.onnx.node_view import MalformedNode, NodeView


def _pool(per_tap: int) -> CostRule:
    """Combine as many inputs per output element as lie under the kernel, which may be larger than the input."""

    def rule(node: NodeView) -> NodeCost:
        kernel = node.integers("kernel_shape")
        if not kernel:
            raise MalformedNode(f"{node.kind} has no kernel_shape")
        channels_last = node.integer("channels_last", 0) or node.kind.endswith("NhwcMaxPool")
        x = node.input(0).shape
        sizes = x[1:-1] if channels_last else x[2:]
        taps = math.prod(min(window, size) for window, size in zip(kernel, sizes, strict=True))
        return NodeCost(flops=per_tap * taps * node.output().count)

    return rule


def _reduce(per_input: int, per_output: int = 0) -> CostRule:
    return lambda node: NodeCost(flops=per_input * node.input(0).count + per_output * node.output().count)


_NEIGHBOURS = {"linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}
"""Elements along an axis that one is interpolated from; one where the nearest is taken."""


def _resize(node: NodeView) -> NodeCost:
    """Per output element one multiply-add for each neighbour; no more is read than all neighbours together."""
    x, y = node.input(0), node.output()
    per_axis = _NEIGHBOURS.get(node.text("mode", "nearest"), 1)
    resized = sum(a != b for a, b in zip(x.shape, y.shape, strict=True))
    taps = per_axis**resized
    reads = min(x.bytes, taps * y.bytes)
    if node.integer("antialias", 0) and per_axis > 1:
        return NodeCost(flops=antialiased_flops(x.shape, y.shape, per_axis), reads=x.bytes)
    return NodeCost(flops=2 * taps * y.count if per_axis > 1 and resized else 0, reads=reads)


def _grid_sample(node: NodeView) -> NodeCost:
    """Interpolate at each place of the grid: its neighbours are read, not the whole picture."""
    x, y = node.input(0), node.output()
    per_axis = _NEIGHBOURS.get(node.text("mode", "linear"), 1)
    taps = per_axis ** (x.rank - 2)
    reads = node.input(1).bytes + min(x.bytes, taps * y.bytes)
    return NodeCost(flops=2 * taps * y.count if per_axis > 1 else 0, reads=reads)


def _affine_grid(node: NodeView) -> NodeCost:
    y = node.output()
    macs = y.count * (y.shape[-1] + 1)
    return NodeCost(flops=2 * macs, macs=macs)


def _roi_align(node: NodeView) -> NodeCost:
    """Per output element the mean (or maximum) of ratio² samples, each interpolated from four neighbours."""
    samples = (node.integer("sampling_ratio", 0) or ADAPTIVE_SAMPLES) ** 2
    x, y = node.input(0), node.output()
    regions = sum(node.input(index).bytes for index in (1, 2) if node.has(index))
    return NodeCost(flops=SAMPLE_FLOPS * samples * y.count, reads=regions + min(x.bytes, 4 * samples * y.bytes))


def _cropped(node: NodeView) -> NodeCost:
    """Interpolate from four neighbours."""
    x, y = node.input(0), node.output()
    regions = sum(node.input(index).bytes for index in (1, 2) if node.has(index))
    return NodeCost(flops=8 * y.count, reads=regions + min(x.bytes, 4 * y.bytes))


def _top_k(node: NodeView) -> NodeCost:
    """Keep a heap of the k best."""
    value = node.value(1)
    axis = node.integer("axis", -1)
    k = int(value.reshape(-1)[0]) if value is not None and value.size else node.output().shape[axis]
    return NodeCost(flops=node.input(0).count * heap_flops(k))


def _non_max_suppression(node: NodeView) -> NodeCost:
    """Each box that is kept, at most as many per class as asked for, is compared with all others of its class."""
    batch, classes, boxes = node.input(1).shape
    limit = node.value(2)
    kept = boxes if limit is None or not limit.size else min(boxes, int(limit.reshape(-1)[0]))
    return NodeCost(flops=IOU_FLOPS * batch * classes * max(0, kept) * boxes)


def _fourier(node: NodeView) -> NodeCost:
    """Count one transform for each line along an axis.

    The axis is an attribute before opset 20, an input from then on, with other values where it is left out.
    """
    x = node.input(0)
    axis = node.integer("axis", 1) if node.opset < 20 else -2
    given, axis_input = node.value(1), node.value(2)
    if axis_input is not None and axis_input.size:
        axis = int(axis_input.reshape(-1)[0])
    length = x.shape[axis]
    if given is not None and given.size:
        length = int(given.reshape(-1)[0])
    elif node.integer("onesided", 0) and node.integer("inverse", 0):
        length = 2 * (length - 1)
    lines = math.prod(x.shape[:-1]) // max(1, x.shape[axis])
    return NodeCost(flops=lines * fourier_flops(length))


def _real_fourier(node: NodeView) -> NodeCost:
    """Transform along the last axes, forth or back; a real signal counts like a complex one."""
    x, y = node.input(0).shape, node.output().shape
    real = x if node.kind.endswith("Rfft") else y
    axes = node.integer("signal_ndim", 1)
    length = math.prod(real[-axes:])
    return NodeCost(flops=math.prod(real) // max(1, length) * fourier_flops(length))


def _short_time_fourier(node: NodeView) -> NodeCost:
    """One transform per frame, after a multiplication with the window."""
    y = node.output()
    frame = node.value(3)
    window = node.input_or_none(2)
    if frame is not None and frame.size:
        length = int(frame.reshape(-1)[0])
    else:
        length = window.count if window is not None else y.shape[2]
    frames = y.shape[0] * y.shape[1]
    return NodeCost(flops=frames * (fourier_flops(length) + length))


def _sort(node: NodeView) -> NodeCost:
    """Count n·log₂ n comparisons."""
    return NodeCost(flops=n_log_n(node.input(0).count))


def _determinant(node: NodeView) -> NodeCost:
    """Gaussian elimination: n³/3 multiply-adds for each matrix."""
    x = node.input(0)
    return NodeCost(flops=2 * (math.prod(x.shape[:-2]) * x.shape[-1] ** 3 // 3))


def _distances(node: NodeView) -> NodeCost:
    """Subtract, square and sum each pair of rows; take the root."""
    return NodeCost(flops=node.output().count * (3 * node.input(0).shape[-1] + 1))


def _inverse(node: NodeView) -> NodeCost:
    x = node.input(0)
    return NodeCost(flops=2 * math.prod(x.shape[:-2]) * x.shape[-1] ** 3)


RULES: dict[str, CostRule] = {
    "AffineGrid": _affine_grid,
    "ArgMax": _reduce(1),
    "ArgMin": _reduce(1),
    "AveragePool": _pool(1),
    "CumProd": _reduce(1),
    "CumSum": _reduce(1),
    "DFT": _fourier,
    "Det": _determinant,
    "GlobalAveragePool": _reduce(1, 1),
    "GlobalLpPool": _reduce(2, 1),
    "GlobalMaxPool": _reduce(1),
    "GridSample": _grid_sample,
    "LpPool": _pool(2),
    "MaxPool": _pool(1),
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _reduce(1),
    "ReduceL1": _reduce(2),
    "ReduceL2": _reduce(2, 1),
    "ReduceLogSum": _reduce(1, 1),
    "ReduceLogSumExp": _reduce(4, 2),  # maximum, subtract, exp, sum; log, add
    "ReduceMax": _reduce(1),
    "ReduceMean": _reduce(1, 1),
    "ReduceMin": _reduce(1),
    "ReduceProd": _reduce(1),
    "ReduceSum": _reduce(1),
    "ReduceSumSquare": _reduce(2),
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "STFT": _short_time_fourier,
    "TopK": _top_k,
    "Unique": _sort,
    "Upsample": _resize,
    "com.microsoft:CDist": _distances,
    "com.microsoft:CropAndResize": _cropped,
    "com.microsoft:Inverse": _inverse,
    "com.microsoft:Irfft": _real_fourier,
    "com.microsoft:MaxpoolWithMask": _pool(2),
    "com.microsoft:NhwcMaxPool": _pool(1),
    "com.microsoft:QLinearAveragePool": _pool(1),
    "com.microsoft:QLinearGlobalAveragePool": per_input_element(1),
    "com.microsoft:ReduceSumInteger": _reduce(1),
    "com.microsoft:Rfft": _real_fourier,
    "com.microsoft:Unique": _sort,
    "com.microsoft:QLinearReduceMean": _reduce(2, 4),  # shift, sum; divide, scale, round, shift
    "com.microsoft.nchwc:AveragePool": _pool(1),
    "com.microsoft.nchwc:GlobalAveragePool": _reduce(1, 1),
    "com.microsoft.nchwc:GlobalMaxPool": _reduce(1),
    "com.microsoft.nchwc:MaxPool": _pool(1),
    "com.microsoft.nchwc:Upsample": _resize,
}
