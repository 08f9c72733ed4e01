"""Cost rules of ops that treat every element alike: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

from mtpp.formats.modelled.flop_counts import DROPOUT_FLOPS, FUNCTIONS, QUANTISED_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.onnx.flops.cost_rule import CostRule, per_input_element, per_output_element
from mtpp.formats.onnx.node_view import NodeView

_ONE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike "
    "Ceil Cos Cosh Div Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Log Mod Mul Neg Not "
    "Or Pow Reciprocal Relu Round Sign Sin Sinh Sqrt Sub Tan Tanh ThresholdedRelu Where Xor Bernoulli Multinomial "
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range "
    "com.microsoft:BiasAdd"
)

_NAMED = "Celu Clip Elu HardSigmoid HardSwish LeakyRelu Mish PRelu Selu Shrink Sigmoid Softplus Softsign SwiGLU Swish"

_MORE = {
    **{name: FUNCTIONS[name.lower()] for name in _NAMED.split()},
    "BlackmanWindow": 7,  # two cosines, two products, two sums and the angle
    "DequantizeLinear": FUNCTIONS["dequantize"],
    "HammingWindow": 4,
    "HannWindow": 4,
    "QuantizeLinear": FUNCTIONS["quantize"],
    "com.microsoft:BiasGelu": FUNCTIONS["gelu"] + 1,
    "com.microsoft:BiasSplitGelu": FUNCTIONS["gelu"] + 2,
    "com.microsoft:ComplexMul": FUNCTIONS["complexmul"],
    "com.microsoft:ComplexMulConj": FUNCTIONS["complexmul"],
    "com.microsoft:DequantizeBFP": FUNCTIONS["dequantize"],
    "com.microsoft:DequantizeLinear": FUNCTIONS["dequantize"],
    "com.microsoft:DequantizeWithOrder": FUNCTIONS["dequantize"],
    "com.microsoft:MulInteger": 3,  # both operands shifted, multiplied
    "com.microsoft:QOrderedGelu": FUNCTIONS["gelu"] + QUANTISED_FLOPS,
    "com.microsoft:QuantizeWithOrder": FUNCTIONS["quantize"],
    **dict.fromkeys(  # one operation, with a second operand to dequantise
        ("com.microsoft:QLinearAdd", "com.microsoft:QLinearMul"), 1 + FUNCTIONS["dequantize"] + QUANTISED_FLOPS
    ),
    "com.microsoft:QLinearLeakyRelu": FUNCTIONS["leakyrelu"] + QUANTISED_FLOPS,
    "com.microsoft:QLinearSigmoid": FUNCTIONS["sigmoid"] + QUANTISED_FLOPS,
    "com.microsoft:QLinearWhere": 4,  # the operand chosen is scaled anew: shift, scale, round, shift
    "com.microsoft:QuantizeLinear": FUNCTIONS["quantize"],
    "com.microsoft:NGramRepeatBlock": 1,
    "com.microsoft:ScaledSiLU": FUNCTIONS["swish"] + 1,
    "com.microsoft:QuickGelu": FUNCTIONS["sigmoid"] + 2,  # x · sigmoid(α·x)
}

_ACTIVATIONS = {
    "": 0,
    "identity": 0,
    "none": 0,
    "affine": 2,
    "fastgelu": FUNCTIONS["fastgelu"],
    "gelu": FUNCTIONS["gelu"],
    "silu": FUNCTIONS["swish"],
} | {name.lower(): flops for name, flops in _MORE.items() if ":" not in name}


def activation_flops(name: str) -> int:
    """Return the FLOPs per element of an activation that is fused into another op; one if it is not known."""
    return _ACTIVATIONS.get(name.lower(), 1)


def _gelu(node: NodeView) -> NodeCost:
    tanh = node.text("approximate", "none") == "tanh"
    return NodeCost(flops=FUNCTIONS["fastgelu" if tanh else "gelu"] * node.output().count)


def _biased_dropout(node: NodeView) -> NodeCost:
    """Add a bias and, where there is one, a residual; numbers are drawn in training only."""
    training = node.value(4)
    drawn = node.has(4) and (training is None or bool(training.reshape(-1).any()))
    return NodeCost(flops=(1 + node.has(2) + DROPOUT_FLOPS * drawn) * node.input(0).count)


def _variadic(node: NodeView) -> NodeCost:
    """Combine n operands with n − 1 operations per element; Mean divides as well."""
    operations = len(node.inputs) - (0 if node.kind == "Mean" else 1)
    return NodeCost(flops=operations * node.output().count)


RULES: dict[str, CostRule] = {
    **dict.fromkeys(_ONE.split(), per_output_element(1)),
    **{name: per_output_element(flops) for name, flops in _MORE.items()},
    "DynamicQuantizeLinear": per_input_element(5),  # minimum and maximum, then as QuantizeLinear
    "Gelu": _gelu,
    "Max": _variadic,
    "Mean": _variadic,
    "Min": _variadic,
    "Sum": _variadic,
    "com.microsoft:BiasDropout": _biased_dropout,
    "com.microsoft:BitmaskBiasDropout": _biased_dropout,
    "com.microsoft:DynamicTimeWarping": per_input_element(3),  # the least of three, a sum
    "com.microsoft:FastGelu": lambda node: NodeCost(flops=(FUNCTIONS["fastgelu"] + node.has(1)) * node.output().count),
    "com.microsoft:IsAllFinite": per_input_element(1),
}
