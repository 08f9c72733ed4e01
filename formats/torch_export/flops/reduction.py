"""Cost rules of normalisations, the softmax family, reductions, pooling, resampling and sorting in ATen."""

from __future__ import annotations

import math

from mtpp.formats.modelled.flop_counts import (
    BATCH_NORM_FLOPS,
    CROSS_ENTROPY_FLOPS,
    LAYER_NORM_FLOPS,
    RMS_NORM_FLOPS,
    SOFTMAX_FLOPS,
    heap_flops,
    n_log_n,
)
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule, per_input_element, per_output_element


def _batch_norm(call: CallView) -> NodeCost:
    training = bool(call.value("training", call.value("train", call.value("use_input_stats", False))))
    if call.kind in ("_native_batch_norm_legit", "_native_batch_norm_legit_functional", "_batch_norm_with_update"):
        training = bool(call.value("training", True))
    per_element = LAYER_NORM_FLOPS if training else BATCH_NORM_FLOPS
    return NodeCost(flops=per_element * call.first().count)


def _reduce(per_element: int, per_result: int = 0) -> CostRule:
    return lambda call: NodeCost(flops=per_element * call.first().count + per_result * call.output().count)


def _pool(call: CallView) -> NodeCost:
    """One operation for each element under the kernel."""
    kernel = call.value("kernel_size", [1])
    axes = {"1d": 1, "2d": 2, "3d": 3}.get(call.kind.removesuffix("_with_indices")[-2:], 1)
    kernel = list(kernel) * axes if len(kernel) == 1 else kernel
    return NodeCost(flops=math.prod(kernel) * call.output().count)


def _adaptive_pool(call: CallView) -> NodeCost:
    """Every element of the input is in at least one window."""
    return NodeCost(flops=max(call.first().count, call.output().count))


def _sort(call: CallView) -> NodeCost:
    return NodeCost(flops=n_log_n(call.first().count))


def _top_k(call: CallView) -> NodeCost:
    """Keep a heap of the k best."""
    return NodeCost(flops=call.first().count * heap_flops(int(call.value("k", 1))))


_NORMS = {
    **dict.fromkeys(("layer_norm", "native_layer_norm", "group_norm", "native_group_norm"), LAYER_NORM_FLOPS),
    **dict.fromkeys(("rms_norm", "_fused_rms_norm"), RMS_NORM_FLOPS),
}

RULES: dict[str, CostRule] = {
    **{name: per_input_element(flops) for name, flops in _NORMS.items()},
    **dict.fromkeys(
        (
            "batch_norm",
            "cudnn_batch_norm",
            "instance_norm",
            "native_batch_norm",
            "_batch_norm_no_update",
            "_batch_norm_with_update",
            "_native_batch_norm_legit",
            "_native_batch_norm_legit_functional",
            "_native_batch_norm_legit_no_training",
        ),
        _batch_norm,
    ),
    **dict.fromkeys(
        ("softmax", "log_softmax", "_softmax", "_log_softmax", "special_softmax", "_safe_softmax"),
        per_input_element(SOFTMAX_FLOPS),
    ),
    "cross_entropy_loss": per_input_element(CROSS_ENTROPY_FLOPS),
    **dict.fromkeys(("nll_loss", "nll_loss_forward", "nll_loss_nd", "nll_loss2d_forward"), _reduce(0, 2)),
    **dict.fromkeys(
        (
            "all", "amax", "amin", "any", "argmax", "argmin", "bincount", "count_nonzero", "cummax", "cummin",
            "cumprod", "cumsum", "diff", "histc", "max", "min", "nansum", "nonzero", "nonzero_numpy", "prod", "sum",
            "trace",
        ),
        _reduce(1),
    ),
    **dict.fromkeys(("mean", "nanmean", "global_avg_pool"), _reduce(1, 1)),
    **dict.fromkeys(("norm", "linalg_vector_norm", "linalg_norm", "frobenius_norm"), _reduce(2, 1)),
    **dict.fromkeys(("std", "std_mean", "var", "var_mean"), _reduce(4, 2)),
    **dict.fromkeys(("logcumsumexp", "logsumexp"), _reduce(4, 2)),
    "aminmax": _reduce(2),
    "cosine_similarity": per_input_element(6),
    "linalg_vecdot": per_input_element(2),
    "normalize": _reduce(3, 1),
    "pairwise_distance": per_input_element(3),
    **dict.fromkeys(
        (
            "avg_pool1d", "avg_pool2d", "avg_pool3d", "fractional_max_pool2d",
            "fractional_max_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
            "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
        ),
        _pool,
    ),
    **dict.fromkeys(
        (
            "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
            "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
        ),
        _adaptive_pool,
    ),
    **dict.fromkeys(
        ("argsort", "kthvalue", "median", "mode", "sort", "unique_consecutive", "unique_dim", "_unique2"), _sort
    ),
    **dict.fromkeys(("bucketize", "searchsorted"), per_output_element(8)),
    "topk": _top_k,
}  # fmt: skip
