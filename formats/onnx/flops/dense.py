"""Cost rules of dense linear algebra: convolutions, matrix products, einsum, recurrent layers, mixtures of experts."""

from __future__ import annotations

import math
from dataclasses import replace

from mtpp.formats.modelled.contraction import contraction, elements_read
from mtpp.formats.modelled.flop_counts import GRU_FLOPS, LSTM_FLOPS, RNN_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.onnx.flops.cost_rule import CostRule
from mtpp.formats.onnx.flops.elementwise import activation_flops
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.tensor_type import TensorType


def _conv_macs(node: NodeView, weight: TensorType) -> int:
    """Every output element is a dot product over (input channels / group) × kernel, the weight's trailing axes."""
    return node.output().count * math.prod(weight.shape[1:])


def _conv(node: NodeView) -> NodeCost:
    return dense(_conv_macs(node, node.input(1)))


def _quantized_conv(node: NodeView) -> NodeCost:
    """Operands are x, its scale and zero point, then the weight; requantizing an output takes three operations."""
    return dense(_conv_macs(node, node.input(3)), 3 * node.output().count)


def _fused_conv(node: NodeView) -> NodeCost:
    """Convolution, a residual added (input 3), an activation."""
    elements = node.output().count
    fused = activation_flops(node.text("activation", "")) + (1 if node.has(3) else 0)
    return dense(_conv_macs(node, node.input(1)), fused * elements)


def _transposed_conv(node: NodeView) -> NodeCost:
    """Every input element is multiplied with (output channels / group) × kernel weights."""
    return dense(node.input(0).count * math.prod(node.input(1).shape[1:]))


def _deformable_conv(node: NodeView) -> NodeCost:
    """Count the convolution, and the masks that scale its samples; interpolating factors is part of reading them."""
    x, weight, y = node.input(0), node.input(1), node.output()
    samples = x.shape[0] * x.shape[1] * math.prod(weight.shape[2:]) * math.prod(y.shape[2:])
    return dense(_conv_macs(node, weight), samples if node.has(4) else 0)


def _causal_conv(node: NodeView) -> NodeCost:
    """Depthwise: channels × 1 × kernel weights."""
    y, weight = node.output(), node.input(1)
    fused = activation_flops(node.text("activation", ""))
    return dense(y.count * math.prod(weight.shape[2:]), fused * y.count)


def _matmul(node: NodeView) -> NodeCost:
    return dense(node.output().count * node.input(0).shape[-1])


def _fused_matmul(node: NodeView) -> NodeCost:
    a = node.input(0).shape
    transposed = len(a) > 1 and node.integer("transA", 0)
    inner = a[-1]
    if transposed:
        inner = a[0] if node.integer("transBatchA", 0) else a[-2]
    fused = activation_flops(node.text("activation", "")) + (1 if node.number("alpha", 1.0) != 1.0 else 0)
    return dense(node.output().count * inner, fused * node.output().count)


def _matmul_gelu(node: NodeView) -> NodeCost:
    elements = node.output().count
    return dense(elements * node.input(0).shape[-1], activation_flops("FastGelu") * elements)


def _dynamic_quantized_matmul(node: NodeView) -> NodeCost:
    """Quantize A first: find its extremes, then scale, round and shift."""
    a, elements = node.input(0), node.output().count
    return dense(elements * a.shape[-1], 5 * a.count + elements)


def _matmul_nbits(node: NodeView) -> NodeCost:
    """Unpack the K × N weights to floats on the way: a shift and a scale each."""
    inner, columns = node.integer("K", 0), node.integer("N", 0)
    return dense(node.output().count * inner, 2 * inner * columns)


def _gemm(node: NodeView) -> NodeCost:
    a = node.input(0).shape
    if len(a) != 2:
        raise MalformedNode("the operands of Gemm must be matrices")
    elements = node.output().count
    extra = elements if node.number("alpha", 1.0) != 1.0 else 0
    addend = node.input_or_none(2)
    if addend is not None and node.number("beta", 1.0) not in (0.0, 1.0):
        extra += addend.count
    extra += activation_flops(node.text("activation", "")) * elements
    return dense(elements * (a[0] if node.integer("transA", 0) else a[1]), extra)


def _quantized_gemm(node: NodeView) -> NodeCost:
    a = node.input(0).shape
    elements = node.output().count
    return dense(elements * (a[0] if node.integer("transA", 0) else a[1]), 3 * elements)


def _einsum(node: NodeView) -> NodeCost:
    """Read of an operand with a label that stands twice only what is on the diagonal."""
    operands = [node.input(index) for index in range(len(node.inputs))]
    equation, shapes = node.text("equation", ""), [one.shape for one in operands]
    parts = zip(operands, elements_read(equation, shapes), strict=True)
    reads = sum(-(-one.bytes * read // max(1, one.count)) for one, read in parts)
    return replace(contraction(equation, shapes), reads=reads)


def _recurrent(flops_per_unit: int) -> CostRule:
    """Each step multiplies the input with W and the state with R; then the gates, per hidden unit.

    Sigmoids count four operations, tanh one, and one addition joins the two products of each gate.
    """

    def rule(node: NodeView) -> NodeCost:
        x, weight, recurrence = node.input(0), node.input(1), node.input(2)
        steps = x.shape[0] * x.shape[1]
        directions, _, hidden = recurrence.shape
        return dense(steps * (weight.count + recurrence.count), flops_per_unit * steps * directions * hidden)

    return rule


def _quantized_lstm(node: NodeView) -> NodeCost:
    """Count an LSTM whose inputs and states are quantised on the way, at each step."""
    x, weight, recurrence = node.input(0), node.input(1), node.input(2)
    steps = x.shape[0] * x.shape[1]
    units = steps * recurrence.shape[0] * node.integer("hidden_size", recurrence.shape[1])
    return dense(steps * (weight.count + recurrence.count), LSTM_FLOPS * units + 5 * (x.count + units))


def _mixture_of_experts(node: NodeView) -> NodeCost:
    """Each token runs through k experts (fc1, fc2 and, where there is one, fc3); only chosen experts are read."""
    quantized = node.kind.endswith("QMoE")
    tokens = math.prod(node.input(0).shape[:-1])
    chosen = tokens * node.integer("k", 1)
    per_byte = 8 // node.integer("expert_weight_bits", 4) if quantized else 1
    weights = [node.input_or_none(index) for index in ((2, 5, 8) if quantized else (2, 4, 6))]
    present = [weight for weight in weights if weight is not None]
    experts = present[0].shape[0]
    macs = sum(chosen * weight.count * per_byte // experts for weight in present)
    touched = sum(weight.bytes * min(experts, chosen) // experts for weight in present)
    reads = node.input(0).bytes + node.input(1).bytes + touched
    return NodeCost(flops=2 * macs, macs=macs, reads=reads)


def _word_embedding(node: NodeView) -> NodeCost:
    """Slide a window over the characters of each word; keep the largest value."""
    words, weight = node.input(0), node.input(1)
    places = words.count // max(1, words.shape[-1]) * max(1, words.shape[-1] - weight.shape[2] + 1)
    return dense(places * weight.count, places * weight.shape[0])


RULES: dict[str, CostRule] = {
    "CausalConvWithState": _causal_conv,
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _transposed_conv,
    "DeformConv": _deformable_conv,
    "Einsum": _einsum,
    "GRU": _recurrent(GRU_FLOPS),
    "Gemm": _gemm,
    "LSTM": _recurrent(LSTM_FLOPS),
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearConv": _quantized_conv,
    "QLinearMatMul": lambda node: dense(node.output().count * node.input(0).shape[-1], 3 * node.output().count),
    "RNN": _recurrent(RNN_FLOPS),
    "com.microsoft:ConvTransposeWithDynamicPads": _transposed_conv,
    "com.microsoft:DynamicQuantizeLSTM": _quantized_lstm,
    "com.microsoft:DynamicQuantizeMatMul": _dynamic_quantized_matmul,
    "com.microsoft:FusedConv": _fused_conv,
    "com.microsoft:FusedGemm": _gemm,
    "com.microsoft:FusedMatMul": _fused_matmul,
    "com.microsoft:FusedMatMulActivation": _fused_matmul,
    "com.microsoft:GemmFastGelu": _matmul_gelu,
    "com.microsoft:GemmFloat8": _gemm,
    "com.microsoft:MatMulBnb4": _matmul_nbits,
    "com.microsoft:MatMulInteger16": _matmul,
    "com.microsoft:MatMulIntegerToFloat": lambda node: dense(
        node.output().count * node.input(0).shape[-1], node.output().count
    ),
    "com.microsoft:MatMulNBits": _matmul_nbits,
    "com.microsoft:MoE": _mixture_of_experts,
    "com.microsoft:NhwcConv": _conv,
    "com.microsoft:NhwcFusedConv": _fused_conv,
    "com.microsoft:QGemm": _quantized_gemm,
    "com.microsoft:QMoE": _mixture_of_experts,
    "com.microsoft:TransposeMatMul": _fused_matmul,
    "com.microsoft:VarlenCausalConvWithState": _causal_conv,
    "com.microsoft:WordConvEmbedding": _word_embedding,
    "com.microsoft.nchwc:Conv": _fused_conv,
}
