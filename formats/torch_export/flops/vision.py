"""Cost rules of resizing and sampling in ATen, and of the operators of torchvision."""

from __future__ import annotations

import math

from mtpp.formats.modelled.flop_counts import ADAPTIVE_SAMPLES, IOU_FLOPS, SAMPLE_FLOPS, antialiased_flops
from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule


def _upsample(taps: int) -> CostRule:
    """Each output element mixes *taps* inputs for each resized axis."""

    def rule(call: CallView) -> NodeCost:
        x, y = call.first(), call.output()
        resized = sum(a != b for a, b in zip(x.shape, y.shape, strict=True))
        return NodeCost(flops=2 * taps**resized * y.count if taps and resized else 0)

    return rule


def _antialiased(taps: int) -> CostRule:
    return lambda call: NodeCost(flops=antialiased_flops(call.first().shape, call.output().shape, taps))


def _grid_sample(call: CallView) -> NodeCost:
    """Linear and cubic interpolation from 2 or 4 neighbours for each axis; the nearest one takes nothing."""
    taps = {0: 2, 2: 4}.get(call.value("interpolation_mode", 0), 0)
    axes = len(call.first().shape) - 2
    read = min(call.first().bytes, max(1, taps) ** axes * call.output().bytes) + call.tensor("grid").bytes
    return NodeCost(flops=2 * taps**axes * call.output().count if taps else 0, reads=read)


def _affine_grid(call: CallView) -> NodeCost:
    y = call.output()
    return dense(y.count * (y.shape[-1] + 1))


def _deformable_convolution(call: CallView) -> NodeCost:
    """Count the convolution, and the masks that scale its samples; interpolating factors is part of reading them."""
    x, weight, y = call.tensor("input"), call.tensor("weight").shape, call.output()
    samples = x.shape[0] * x.shape[1] * math.prod(weight[2:]) * math.prod(y.shape[2:])
    return dense(y.count * math.prod(weight[1:]), samples if call.value("use_mask", False) else 0)


def _regions(call: CallView) -> NodeCost:
    """Per output element the mean of ratio² samples, each interpolated from four neighbours."""
    x, y = call.tensor("input"), call.output()
    ratio = int(call.value("sampling_ratio", 0))
    samples = (ratio if ratio > 0 else ADAPTIVE_SAMPLES) ** 2
    return NodeCost(
        flops=SAMPLE_FLOPS * samples * y.count, reads=call.tensor("rois").bytes + min(x.bytes, 4 * samples * y.bytes)
    )


def _suppression(call: CallView) -> NodeCost:
    """Each box that is kept, all of them at most, is compared with all others."""
    return NodeCost(flops=IOU_FLOPS * call.first().shape[0] ** 2)


RULES: dict[str, CostRule] = {
    **{
        f"{prefix}upsample_{mode}": _upsample(taps)
        for prefix in ("", "_")
        for mode, taps in {
            "linear1d": 2, "bilinear2d": 2, "trilinear3d": 2, "bicubic2d": 4, "nearest1d": 0, "nearest2d": 0,
            "nearest3d": 0, "nearest_exact1d": 0, "nearest_exact2d": 0, "nearest_exact3d": 0,
        }.items()
    },
    **{
        f"{prefix}upsample_{mode}_aa": _antialiased(taps)
        for prefix in ("", "_")
        for mode, taps in {"bilinear2d": 2, "bicubic2d": 4}.items()
    },
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sample),
    "affine_grid_generator": _affine_grid,
    "torchvision.deform_conv2d": _deformable_convolution,
    "torchvision.nms": _suppression,
    "torchvision.roi_align": _regions,
}  # fmt: skip
