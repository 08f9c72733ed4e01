"""Cost rules of ATen operators that treat every element alike: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

from mtpp.formats.modelled.flop_counts import DROPOUT_FLOPS, FUNCTIONS, QUANTISED_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.torch_export.call_view import CallView
from mtpp.formats.torch_export.flops.cost_rule import CostRule, move, nothing, per_input_element, per_output_element

_ONE = (
    "__and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__ abs absolute acos "
    "acosh angle arccos arcsin arctan arctan2 asin asinh atan atan2 atanh bernoulli bitwise_and bitwise_left_shift "
    "bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil conj_physical copysign cos cosh deg2rad div divide "
    "eq erf erfc erfinv exp exp2 expm1 exponential fix floor floor_divide fmax fmin fmod frac ge greater "
    "greater_equal gt heaviside hypot isfinite isinf isnan kron ldexp le less less_equal lgamma log log10 log1p log2 "
    "logical_and logical_not logical_or logical_xor lt masked_fill maximum minimum mul multinomial multiply ne neg "
    "negative normal not_equal polar pow rad2deg rand rand_like randint randint_like randn randn_like random "
    "reciprocal relu remainder round rsqrt rsub sgn sign signbit sin sinc sinh special_erf special_erfc special_exp2 "
    "special_expm1 sqrt square sub subtract tan tanh true_divide trunc uniform where xlogy nan_to_num"
)

_NAMED = "celu clip elu hardsigmoid hardswish leaky_relu mish prelu selu sigmoid softplus softsign swish"

_MORE = {
    **{name: FUNCTIONS[name.replace("_", "")] for name in _NAMED.split()},
    **dict.fromkeys(("clamp", "hardtanh", "relu6"), FUNCTIONS["clip"]),
    **dict.fromkeys(("dequantize_per_channel", "dequantize_per_tensor"), FUNCTIONS["dequantize"]),
    **dict.fromkeys(("fake_quantize_per_tensor_affine", "fused_moving_avg_obs_fake_quant"), QUANTISED_FLOPS),
    **dict.fromkeys(("hardshrink", "softshrink"), FUNCTIONS["shrink"]),
    **dict.fromkeys(("quantize_per_channel", "quantize_per_tensor"), FUNCTIONS["quantize"]),
    "_prelu_kernel": FUNCTIONS["prelu"],
    "addcdiv": 3,
    "addcmul": 3,
    "clamp_max": 1,
    "clamp_min": 1,
    "digamma": 1,
    "lerp": 3,
    "log_sigmoid": 5,
    "logaddexp": 5,
    "logit": 3,
    "rrelu": FUNCTIONS["leakyrelu"],
    "silu": FUNCTIONS["swish"],
    "special_expit": FUNCTIONS["sigmoid"],
    "special_log1p": 1,
    "threshold": 1,
}

_LOSSES = {
    "binary_cross_entropy": 7,
    "binary_cross_entropy_with_logits": 8,
    "huber_loss": 6,
    "kl_div": 4,
    "l1_loss": 3,
    "mse_loss": 3,
    "smooth_l1_loss": 6,
    "soft_margin_loss": 5,
}
"""Per element of the input: the distance, and the sum."""


def _gelu(call: CallView) -> NodeCost:
    tanh = call.value("approximate", "none") == "tanh"
    return NodeCost(flops=FUNCTIONS["fastgelu" if tanh else "gelu"] * call.output().count)


def _sum(call: CallView) -> NodeCost:
    """One addition, and a scaling where there is one."""
    scaled = call.value("alpha", 1) != 1
    return NodeCost(flops=(1 + scaled) * call.output().count)


def is_dropout_in_training(call: CallView) -> bool:
    """Say whether a dropout draws random numbers."""
    if call.kind == "native_dropout":
        return bool(call.value("train", True)) and call.value("p", 0.5) != 0
    return bool(call.value("train", call.value("training", False))) and call.value("p", 0.5) != 0


def _dropout(call: CallView) -> NodeCost:
    return NodeCost(flops=DROPOUT_FLOPS * call.first().count) if is_dropout_in_training(call) else nothing(call)


def _converted(call: CallView) -> NodeCost:
    """One conversion for each element; nothing where the type stays as it is."""
    same = call.first().dtype == call.output().dtype
    return nothing(call) if same else NodeCost(flops=call.output().count)


def _copied(call: CallView) -> NodeCost:
    """As a conversion, but that the elements are moved in any case."""
    same = call.first().dtype == call.output().dtype
    return move(call) if same else NodeCost(flops=call.output().count)


CONVERSIONS = ("to", "type_as", "_to_cpu")
DROPOUTS = ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout")

RULES: dict[str, CostRule] = {
    **dict.fromkeys(_ONE.split(), per_output_element(1)),
    **{name: per_output_element(flops) for name, flops in _MORE.items()},
    **{name: per_input_element(flops) for name, flops in _LOSSES.items()},
    **dict.fromkeys(("add", "sub", "rsub"), _sum),
    **dict.fromkeys(CONVERSIONS, _converted),
    **dict.fromkeys(DROPOUTS, _dropout),
    "_to_copy": _copied,
    "choose_qparams": per_input_element(2),  # minimum and maximum
    "gelu": _gelu,
    "glu": lambda call: NodeCost(flops=(FUNCTIONS["sigmoid"] + 1) * call.output().count),
}
