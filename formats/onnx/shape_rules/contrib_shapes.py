"""Output types of the fused ops that onnx has no schema for (domain ``com.microsoft``).

Shapes follow ONNX Runtime's "Contrib Operators" reference
(https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md). A rule gives None for an output
that it cannot tell; what a file declares in value_info is used then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnx import TensorProto

from mtpp.formats.onnx.flops.attention_geometry import group_query_geometry, multi_head_geometry, packed_geometry
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.shape_rules.fused_shapes import FUSED_RULES
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, broadcast

Types = Sequence[TensorType | PartialType | None]
ShapeRule = Callable[[NodeView], Types]

STANDARD_TWINS = {
    "com.microsoft:FusedConv": ("Conv", 3),
    "com.microsoft:FusedGemm": ("Gemm", 3),
    "com.microsoft:GemmFastGelu": ("MatMul", 2),
    "com.microsoft:GatherND": ("GatherND", 2),
    "com.microsoft:GridSample": ("GridSample", 2),
    "com.microsoft:Pad": ("Pad", 3),
    "com.microsoft:Trilu": ("Trilu", 2),
}
"""Fused ops shaped like the first inputs of a standard op with the same attributes."""


def contrib_output_types(node: NodeView) -> Types | None:
    """Return the types of a fused op's outputs; None if there is no rule for it."""
    name = node.kind.rpartition(":")[2]
    if node.kind not in (name, f"com.microsoft:{name}"):
        return None
    rule = _RULES.get(name)
    return None if rule is None else rule(node)


def _same(node: NodeView) -> Types:
    return [node.input(0)]


def _same_and_statistics(node: NodeView) -> Types:
    """Normalised tensor, then mean and inverse deviation per row, as float32."""
    x = node.input(0)
    rows = TensorType(TensorProto.FLOAT, (*x.shape[:-1], 1))
    return [x, rows, rows]


def _skip_normalised(node: NodeView) -> Types:
    """Output, mean, inverse deviation, sum of input and skip."""
    x, rows, _ = _same_and_statistics(node)
    return [x, rows, rows, x]


def _broadcast_quantized(node: NodeView) -> Types:
    """Read A, its scale and zero point, B, its scale and zero point, and those of the result."""
    a, b = node.input(0), node.input(3)
    return [TensorType(a.dtype, broadcast([a.shape, b.shape]))]


def _broadcast(node: NodeView) -> Types:
    a, b = node.input(0), node.input(1)
    return [TensorType(a.dtype, broadcast([a.shape, b.shape]))]


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise MalformedNode(f"rows of {a[-1]} meet columns of {b[-2 if len(b) > 1 else 0]}")
    if len(a) == 1:
        return (*b[:-2], b[-1])
    if len(b) == 1:
        return a[:-1]
    return (*broadcast([a[:-2], b[:-2]]), a[-2], b[-1])


def _transposed(shape: tuple[int, ...], transpose: int, batch: int) -> tuple[int, ...]:
    if batch and len(shape) > 2:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if transpose and len(shape) > 1 else shape


def _fused_matmul(node: NodeView) -> Types:
    a, b = node.input(0), node.input(1)
    left = _transposed(a.shape, node.integer("transA", 0), node.integer("transBatchA", 0))
    right = _transposed(b.shape, node.integer("transB", 0), node.integer("transBatchB", 0))
    return [TensorType(a.dtype, _matmul_shape(left, right))]


def _float_matmul(node: NodeView) -> Types:
    """Quantized operands, result in the type of the first scale (or of the float operand)."""
    a, b = node.input(0), node.input(1)
    dtype = TensorProto.FLOAT if a.dtype in (TensorProto.UINT8, TensorProto.INT8) else a.dtype
    return [TensorType(dtype, _matmul_shape(a.shape, b.shape))]


def _quantized_gemm(node: NodeView) -> Types:
    a = _transposed(node.input(0).shape, node.integer("transA", 0), 0)
    b = _transposed(node.input(3).shape, node.integer("transB", 0), 0)
    to_float = not node.has(8)
    return [TensorType(TensorProto.FLOAT if to_float else node.input(0).dtype, (a[0], b[1]))]


def _matmul_nbits(node: NodeView) -> Types:
    a = node.input(0)
    return [TensorType(a.dtype, (*a.shape[:-1], node.integer("N", 0)))]


def _packed_attention(node: NodeView) -> Types:
    x = node.input(0)
    geometry = packed_geometry(node)
    output = TensorType(x.dtype, (*x.shape[:2], geometry.value_width))
    present = (2, geometry.batch, geometry.heads, geometry.buffer, geometry.head_size)
    return [output, TensorType(x.dtype, present)]


def _quantized_attention(node: NodeView) -> Types:
    """Like Attention, computed in 8 bits, with float results in the type of the input's scale."""
    x, scale = node.input(0), node.input(3)
    geometry = packed_geometry(node)
    present = (2, geometry.batch, geometry.heads, geometry.buffer, geometry.head_size)
    return [TensorType(scale.dtype, (*x.shape[:2], geometry.value_width)), TensorType(scale.dtype, present)]


def _multi_head_attention(node: NodeView) -> Types:
    query = node.input(0)
    g = multi_head_geometry(node)
    output = TensorType(query.dtype, (g.batch, g.queries, g.value_width))
    present_key = TensorType(query.dtype, (g.batch, g.heads, g.buffer, g.head_size))
    present_value = TensorType(query.dtype, (g.batch, g.heads, g.buffer, g.value_size))
    return [output, present_key, present_value, TensorType(query.dtype, (g.batch, g.heads, g.queries, g.keys))]


def _group_query_attention(node: NodeView) -> Types:
    query = node.input(0)
    g = group_query_geometry(node)
    past, total = node.input_or_none(3), node.value(6)
    dtype, size = (query.dtype, g.head_size) if past is None else (past.dtype, past.shape[3])  # of few bits, in bytes
    told = past is None or (total is not None and total.size)  # a cache grows, or has room for the total length
    present = PartialType(dtype, (g.batch, g.key_heads, g.buffer if told else None, size))
    scores = PartialType(query.dtype, (g.batch, g.heads, g.queries, g.keys if told else None))
    return [TensorType(query.dtype, (g.batch, g.queries, g.value_width)), present, present, scores]


def _embed_layer_normalization(node: NodeView) -> Types:
    ids, words = node.input(0), node.input(2)
    output = TensorType(words.dtype, (*ids.shape, words.shape[-1]))
    return [output, TensorType(TensorProto.INT32, ids.shape[:1]), output]


def _global_pool(node: NodeView) -> Types:
    x = node.input(0)
    if node.integer("channels_last", 0):
        return [TensorType(x.dtype, (x.shape[0], *(1 for _ in x.shape[2:]), x.shape[-1]))]
    return [TensorType(x.dtype, (*x.shape[:2], *(1 for _ in x.shape[2:])))]


def _quantized_concat(node: NodeView) -> Types:
    """Result's scale and zero point, then one (tensor, scale, zero point) for each part."""
    parts = [node.input(index) for index in range(2, len(node.inputs), 3)]
    axis = node.integer("axis", 0)
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return [TensorType(parts[0].dtype, tuple(shape))]


def _quantized_lstm(node: NodeView) -> Types:
    """All steps, the last hidden state and the last cell state, as LSTM; weights are inputs × gates."""
    x, recurrence = node.input(0), node.input(2)
    directions, hidden = recurrence.shape[0], node.integer("hidden_size", recurrence.shape[1])
    state = TensorType(x.dtype, (directions, x.shape[1], hidden))
    return [TensorType(x.dtype, (x.shape[0], directions, x.shape[1], hidden)), state, state]


def _quantized_mean(node: NodeView) -> Types:
    """Reduce the axes named, all of them where none are."""
    x = node.input(0)
    named = node.integers("axes") or list(range(x.rank))
    axes = {axis % x.rank for axis in named}
    keep = node.integer("keepdims", 1)
    return [TensorType(x.dtype, tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keep or a not in axes))]


def _quantized_where(node: NodeView) -> Types:
    """Read the condition, then X and Y, each with its scale and zero point."""
    condition, x, y = node.input(0), node.input(1), node.input(4)
    return [TensorType(x.dtype, broadcast([condition.shape, x.shape, y.shape]))]


def _gathered_blocks(node: NodeView) -> Types:
    """Rows of a table quantised in blocks, in the type of its scales."""
    table, indices, scales = node.input(0), node.input(1), node.input(2)
    axis = node.integer("gather_axis", 0) % table.rank
    packed = 8 // node.integer("bits", 4) if table.dtype == TensorProto.UINT8 else 1
    shape = [*table.shape]
    shape[node.integer("quantize_axis", 1) % table.rank] *= packed
    return [TensorType(scales.dtype, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))]


def _quantized(node: NodeView) -> Types:
    zero_point = node.input_or_none(2)
    return [TensorType(zero_point.dtype if zero_point else TensorProto.UINT8, node.input(0).shape)]


def _split_gelu(node: NodeView) -> Types:
    x = node.input(0)
    return [TensorType(x.dtype, (*x.shape[:-1], x.shape[-1] // 2))]


def _range(node: NodeView) -> Types:
    """Count from the first number to the second by the third, or by one."""
    values = [node.value(index) for index in range(len(node.inputs))]
    if any(value is None or not value.size for value in values):
        return [PartialType(node.input(0).dtype, (None,))]
    start, limit, *step = (value.reshape(-1)[0] for value in values if value is not None)
    count = math.ceil((float(limit) - float(start)) / float(step[0] if step else 1))
    return [TensorType(node.input(0).dtype, (max(0, count),))]


def _distances(node: NodeView) -> Types:
    a, b = node.input(0), node.input(1)
    return [TensorType(a.dtype, (a.shape[0], b.shape[0]))]


def _crops(node: NodeView) -> Types:
    """Cut regions (input 1) out of pictures, all of one size (input 3)."""
    x, regions, size = node.input(0), node.input(1), node.value(3)
    sizes: list[int | None] = [None, None] if size is None else [int(one) for one in size.reshape(-1)]
    return [PartialType(x.dtype, (regions.shape[0], x.shape[1], *sizes))]


def _expanded(node: NodeView) -> Types:
    x, axis = node.input(0), node.value(1)
    if axis is None or not axis.size:
        return [PartialType(x.dtype)]
    at = int(axis.reshape(-1)[0])
    if not -x.rank - 1 <= at <= x.rank:
        raise MalformedNode(f"axis {at} is no axis of a tensor of rank {x.rank}")
    at += x.rank + 1 if at < 0 else 0
    return [TensorType(x.dtype, (*x.shape[:at], 1, *x.shape[at:]))]


def _hashed(node: NodeView) -> Types:
    dtype = TensorProto.UINT32 if node.integer("positive", 1) else TensorProto.INT32
    return [TensorType(dtype, node.input(0).shape)]


def _unfolded(node: NodeView) -> Types:
    """Give windows along an axis an axis of their own, the last."""
    x, size = node.input(0), node.integer("size", 1)
    shape = [*x.shape]
    axis = node.integer("dim", -1)
    if shape[axis] < size:
        raise MalformedNode(f"a window of {size} does not fit into {shape[axis]}")
    shape[axis] = (shape[axis] - size) // node.integer("step", 1) + 1
    return [TensorType(x.dtype, (*shape, size))]


def _unique(node: NodeView) -> Types:
    """Return what is there once, the place of each element among it, and how often it is there."""
    x = node.input(0)
    found = PartialType(TensorProto.INT64, (None,))
    return [PartialType(x.dtype, (None,)), TensorType(TensorProto.INT64, x.shape), found]


def _words(node: NodeView) -> Types:
    """Read characters of words, then the weights of a convolution over them."""
    words, weight = node.input(0), node.input(1)
    return [TensorType(weight.dtype, (words.shape[0], weight.shape[0]))]


_RULES: dict[str, ShapeRule] = {
    **FUSED_RULES,
    "Attention": _packed_attention,
    "BiasAdd": _same,
    "BiasGelu": _same,
    "BiasSoftmax": _same,
    "BiasSplitGelu": _split_gelu,
    "CDist": _distances,
    "ComplexMul": _broadcast,
    "ComplexMulConj": _broadcast,
    "CropAndResize": _crops,
    "DequantizeLinear": lambda node: [TensorType(node.input(1).dtype, node.input(0).shape)],
    "DynamicQuantizeLSTM": _quantized_lstm,
    "DynamicQuantizeMatMul": _float_matmul,
    "EmbedLayerNormalization": _embed_layer_normalization,
    "ExpandDims": _expanded,
    "FastGelu": _same,
    "FusedMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "GatherBlockQuantized": _gathered_blocks,
    "Gelu": _same,
    "GroupNorm": _same,
    "GroupQueryAttention": _group_query_attention,
    "Inverse": _same,
    "LayerNormalization": _same_and_statistics,
    "MatMulBnb4": _matmul_nbits,
    "MatMulInteger16": lambda node: [
        TensorType(TensorProto.INT32, _matmul_shape(node.input(0).shape, node.input(1).shape))
    ],
    "MatMulIntegerToFloat": _float_matmul,
    "MatMulNBits": _matmul_nbits,
    "MoE": _same,
    "MultiHeadAttention": _multi_head_attention,
    "MurmurHash3": _hashed,
    "NGramRepeatBlock": lambda node: [node.input(1)],
    "QAttention": _quantized_attention,
    "QGemm": _quantized_gemm,
    "QLinearAdd": _broadcast_quantized,
    "QLinearConcat": _quantized_concat,
    "QLinearGlobalAveragePool": _global_pool,
    "QLinearLeakyRelu": _same,
    "QLinearMul": _broadcast_quantized,
    "QLinearReduceMean": _quantized_mean,
    "QLinearSigmoid": _same,
    "QLinearSoftmax": _same,
    "QLinearWhere": _quantized_where,
    "QMoE": _same,
    "QuantizeLinear": _quantized,
    "QuickGelu": _same,
    "Range": _range,
    "RotaryEmbedding": _same,
    "SampleOp": _same,
    "ScaledSiLU": _same,
    "SimplifiedLayerNormalization": _same_and_statistics,
    "SkipGroupNorm": lambda node: [node.input(0), node.input(0)],
    "SkipLayerNormalization": _skip_normalised,
    "SkipSimplifiedLayerNormalization": _skip_normalised,
    "TransposeMatMul": _fused_matmul,
    "UnfoldTensor": _unfolded,
    "Unique": _unique,
    "WordConvEmbedding": _words,
}
