"""Cost rules of ops that treat every element alike: arithmetic, activations, comparisons, conversions."""

from __future__ import annotations

from mtpp.formats.modelled.flop_counts import DROPOUT_FLOPS, GELU_ERF_FLOPS, GELU_TANH_FLOPS
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

_MORE = {
    "BlackmanWindow": 7,  # two cosines, two products, two sums and the angle
    "Celu": 5,  # max(0, x) + min(0, α·(exp(x/α) − 1)), the maximum of one of the two being free
    "Clip": 2,
    "DequantizeLinear": 2,  # shift, scale
    "Elu": 4,  # compare, exp, subtract, scale
    "HammingWindow": 4,
    "HannWindow": 4,
    "HardSigmoid": 4,  # scale, shift, two bounds
    "HardSwish": 5,
    "LeakyRelu": 2,
    "Mish": 5,  # x · tanh(log(1 + exp(x)))
    "PRelu": 2,
    "QuantizeLinear": 3,  # scale, round, shift
    "Selu": 5,
    "Shrink": 2,
    "Sigmoid": 4,  # negate, exp, add, reciprocal
    "Softplus": 3,
    "Softsign": 3,
    "SwiGLU": 6,
    "Swish": 5,
    "com.microsoft:BiasGelu": 6,
    "com.microsoft:BiasSplitGelu": 7,
    "com.microsoft:ComplexMul": 3,  # four multiplications, two additions for two numbers
    "com.microsoft:ComplexMulConj": 3,
    "com.microsoft:DequantizeBFP": 2,
    "com.microsoft:DequantizeLinear": 2,
    "com.microsoft:DequantizeWithOrder": 2,
    "com.microsoft:MulInteger": 3,  # both operands shifted, multiplied
    "com.microsoft:QOrderedGelu": GELU_ERF_FLOPS + 5,  # dequantized, quantized
    "com.microsoft:QuantizeWithOrder": 3,
    "com.microsoft:QLinearAdd": 8,  # both operands dequantized, added, the sum quantized
    "com.microsoft:QLinearLeakyRelu": 7,
    "com.microsoft:QLinearMul": 8,
    "com.microsoft:QLinearSigmoid": 9,
    "com.microsoft:QLinearWhere": 4,  # the operand chosen is scaled anew: shift, scale, round, shift
    "com.microsoft:QuantizeLinear": 3,
    "com.microsoft:NGramRepeatBlock": 1,
    "com.microsoft:ScaledSiLU": 6,
    "com.microsoft:QuickGelu": 6,  # x · sigmoid(α·x)
}

_ACTIVATIONS = {
    "": 0,
    "identity": 0,
    "none": 0,
    "affine": 2,
    "fastgelu": GELU_TANH_FLOPS,
    "gelu": GELU_ERF_FLOPS,
    "silu": 5,
    "swish": 5,
} | {name.lower(): flops for name, flops in _MORE.items() if ":" not in name}


def activation_flops(name: str) -> int:
    """Return the FLOPs per element of an activation that is fused into another op; one if it is not known."""
    return _ACTIVATIONS.get(name.lower(), 1)


def _gelu(node: NodeView) -> NodeCost:
    flops = GELU_TANH_FLOPS if node.text("approximate", "none") == "tanh" else GELU_ERF_FLOPS
    return NodeCost(flops=flops * node.output().count)


def _fast_gelu(node: NodeView) -> NodeCost:
    return NodeCost(flops=(GELU_TANH_FLOPS + (1 if node.has(1) else 0)) * node.output().count)


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
    "com.microsoft:FastGelu": _fast_gelu,
    "com.microsoft:IsAllFinite": per_input_element(1),
}
