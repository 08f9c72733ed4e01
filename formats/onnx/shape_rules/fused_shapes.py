"""Output types of attention over packed sequences and caches, and of packed products, in domain ``com.microsoft``.

Shapes follow ONNX Runtime's own inference and its "Contrib Operators" reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from onnx import TensorProto

from mtpp.formats.onnx.flops.attention_geometry import decoding_geometry, packed_geometry, sparse_geometry
from mtpp.formats.onnx.flops.packed_attention import cached_decoder_keys
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.shape_rules.window_sizes import transposed_sizes
from mtpp.formats.onnx.tensor_type import PartialType, TensorType, broadcast

Types = Sequence[TensorType | PartialType | None]


def _same(node: NodeView) -> Types:
    return [node.input(0)]


def _with_last(x: TensorType, size: int) -> TensorType:
    if size < 1:
        raise MalformedNode(f"a result of {size} columns")
    return TensorType(x.dtype, (*x.shape[:-1], size))


def _named(*attributes: str) -> Callable[[NodeView], Types]:
    """Return the rule of results with as many columns as attributes say."""
    return lambda node: [_with_last(node.input(0), node.integer(name, 0)) for name in attributes]


def _rows_of_weight(node: NodeView) -> Types:
    return [_with_last(node.input(0), node.input(1).shape[0])]


def _told_weight(node: NodeView) -> Types:
    shape = node.value(2)
    return [] if shape is None else [_with_last(node.input(0), int(shape.reshape(-1)[-1]))]


def _router_and_gates(node: NodeView) -> Types:
    x, logits = node.input(0), node.integer("router_size", 0)
    return [_with_last(x, logits), _with_last(x, (node.input(1).shape[-1] - logits) // 2)]


def _packed(node: NodeView) -> Types:
    x, weight = node.input(0), node.input(1)
    sizes = node.integers("qkv_hidden_sizes")
    return [_with_last(x, sizes[2] if sizes else weight.shape[-1] // 3)]


def _packed_heads(node: NodeView) -> Types:
    query, value = node.input(0), node.input_or_none(2)
    if value is None:
        return [TensorType(query.dtype, (query.shape[0], query.shape[1] * query.shape[-1]))]
    return [TensorType(query.dtype, (query.shape[0], value.shape[1]))]


def _paged(node: NodeView) -> Types:
    """Write into caches of pages; queries may hold keys and values beside them."""
    query, caches = node.input(0), [node.input_or_none(3), node.input_or_none(4)]
    heads, key_heads = node.integer("num_heads", 1), node.integer("kv_num_heads", 1)
    packed = not node.has(1) and node.has(4)
    size = query.shape[1] // (heads + 2 * key_heads if packed else heads)
    made = heads * (node.integer("v_head_size", 0) or size)
    return [TensorType(query.dtype, (query.shape[0], made)), *caches]


def _decoding(node: NodeView) -> Types:
    """One position; caches grow by it, or are buffers that have room."""
    query, g = node.input(0), decoding_geometry(node)
    of_encoder = node.has(1) and node.input(1).rank == 4
    keys, values = ((g.batch, g.heads, g.buffer, size) for size in (g.head_size, g.value_size))
    caches = [None, None] if of_encoder else [TensorType(query.dtype, keys), TensorType(query.dtype, values)]
    scores = TensorType(
        TensorProto.FLOAT if node.integer("output_qk", 0) else query.dtype, (g.batch, g.heads, g.queries, g.keys)
    )
    return [TensorType(query.dtype, (g.batch, g.queries, g.value_width)), *caches, scores]


def _decoding_projected(node: NodeView) -> Types:
    x, g = node.input(0), packed_geometry(node)
    present = (2, g.batch, g.heads, g.buffer, g.head_size)
    return [TensorType(x.dtype, (*x.shape[:2], g.value_width)), TensorType(x.dtype, present)]


def _sparse(node: NodeView) -> Types:
    query, g = node.input(0), sparse_geometry(node)
    return [TensorType(query.dtype, (g.batch, g.queries, g.value_width)), node.input(3), node.input(4)]


def _decoder(node: NodeView) -> Types:
    """Tokens come before sequences, in caches behind the heads."""
    x, heads = node.input(0), node.integer("num_heads", 1)
    cache = (x.shape[1], heads, cached_decoder_keys(node), x.shape[2] // heads)
    return [x, TensorType(x.dtype, cache), TensorType(x.dtype, cache)]


def _ordered_product(node: NodeView) -> Types:
    a, b = node.input(0), node.input(2)
    return [TensorType(a.dtype, (*a.shape[:-1], b.shape[-1]))]


def _linear_attention(node: NodeView) -> Types:
    """Heads side by side; a state of keys × values for each head of them, and a window of states where asked for."""
    query, key, value = node.input(0), node.input(1), node.input(2)
    heads, key_heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    size, made = key.shape[-1] // key_heads, value.shape[-1] // key_heads
    past, slots = node.input_or_none(3), node.integer("state_window", 0)
    state = (*((slots,) if slots else ()), query.shape[0], key_heads, size, made)
    return [
        TensorType(query.dtype, (*query.shape[:2], max(heads, key_heads) * made)),
        TensorType(query.dtype if past is None else past.dtype, state),
    ]


def _packed_delta(node: NodeView) -> Types:
    """Values of each head for each token, and a state of values × keys for each head and sequence."""
    query, value, before = node.input(0), node.input_or_none(2), node.input_or_none(6)
    if value is None:
        if before is None:
            raise MalformedNode("GatedDeltaNet has neither values nor a state")
        _, value_heads, made, size = before.shape
        heads = (query.shape[-1] - value_heads * made) // (2 * size)
        tokens = query.shape[:-1]
    else:
        tokens, (heads, size), (value_heads, made) = query.shape[:-2], query.shape[-2:], value.shape[-2:]
    output = TensorType(query.dtype, (*tokens, max(heads, value_heads), made))
    bounds = node.input_or_none(3)
    sequences = bounds.count - 1 if bounds is not None else tokens[0] if len(tokens) > 1 else 1
    fresh = PartialType(None, (sequences, value_heads, made, size))
    return [output, before if before is not None else fresh]


def _warped(node: NodeView) -> Types:
    """Return a path of pairs of places; a run says how long it is."""
    return [PartialType(TensorProto.INT32, (2, None))]


def _causal_convolution(node: NodeView) -> Types:
    """Keep what the next step needs: positions before it, along the last spatial axis."""
    x, weight, past = node.input(0), node.input(1), node.input_or_none(3)
    if past is not None:
        return [x, past]
    if node.integer("ndim", 1) != 1 or node.integer("channels_last", 0):
        return [x]
    slots, kept = node.integer("state_window", 0), (weight.shape[-1] - 1) * node.integer("dilation", 1)
    return [x, TensorType(x.dtype, (*((slots,) if slots else ()), x.shape[0], x.shape[1], kept))]


def _transposed(node: NodeView) -> Types:
    """Take the padding of a transposed convolution from an input; none where it is left out."""
    x, weight, pads = node.input(0), node.input(1), node.value(2)
    channels = weight.shape[1] * node.integer("group", 1)
    if node.has(2) and pads is None:
        return [PartialType(x.dtype, (x.shape[0], channels, *(None for _ in x.shape[2:])))]
    told = [0] * (2 * (x.rank - 2)) if pads is None else [int(one) for one in pads.reshape(-1)]
    padded = replace(node, attributes={**node.attributes, "pads": told})
    return [TensorType(x.dtype, (x.shape[0], channels, *transposed_sizes(padded, x.shape[2:], weight.shape[2:])))]


def _gates(node: NodeView) -> Types:
    """Multiply halves of one input, or two inputs."""
    x = node.input(0)
    return [x if node.has(1) else _with_last(x, x.shape[-1] // 2)]


def _spectrum(node: NodeView) -> Types:
    """Return the bins of a real signal's last axis, each a real and an imaginary part."""
    x = node.input(0)
    return [TensorType(x.dtype, (*x.shape[:-1], x.shape[-1] // 2 + 1, 2))]


def _signal(node: NodeView) -> Types:
    """Drop the axis of the parts; as many samples as an even signal has."""
    x = node.input(0)
    return [TensorType(x.dtype, (*x.shape[:-2], 2 * (x.shape[-2] - 1)))]


def _dropped(node: NodeView) -> Types:
    x = node.input(0)
    return [x, TensorType(TensorProto.BOOL, x.shape)]


def _embedded(node: NodeView) -> Types:
    table, indices = node.input(0), node.input(1)
    return [TensorType(table.dtype, (*indices.shape, *table.shape[1:]))]


def _biases(node: NodeView) -> Types:
    lengths = [node.value(index) for index in (1, 2)]
    sizes = tuple(None if one is None else int(one.reshape(-1)[0]) for one in lengths)
    return [PartialType(node.input(0).dtype, (1, node.input(0).shape[1], *sizes))]


def _product(node: NodeView) -> Types:
    """Multiply operands of eight bits to one of 32."""
    second = node.input(2)
    return [TensorType(TensorProto.INT32, broadcast([node.input(0).shape, second.shape]))]


FUSED_RULES: dict[str, Callable[[NodeView], Types]] = {
    "BiasDropout": _dropped,
    "BranchwiseRMSNorm": _same,
    "CausalConvWithState": _causal_convolution,
    "ConvTransposeWithDynamicPads": _transposed,
    "DecoderAttention": _decoder,
    "DecoderMaskedMultiHeadAttention": _decoding,
    "DecoderMaskedSelfAttention": _decoding_projected,
    "DynamicTimeWarping": _warped,
    "GatedDeltaNet": _packed_delta,
    "GatedRMSNorm": _same,
    "GemmaRotaryEmbedding": lambda node: [node.input(1), node.input(3)],
    "Irfft": _signal,
    "IsAllFinite": lambda node: [TensorType(TensorProto.BOOL, ())],
    "LinearAttention": _linear_attention,
    "LongformerAttention": _same,
    "MRotaryEmbedding": _same,
    "MatMulBlockQuantizedFp4Weight": _rows_of_weight,
    "MatMulBlockQuantizedFp8Weight": _rows_of_weight,
    "MatMulFpQ4": _told_weight,
    "MatMulNBitsMlp": lambda node: [*_named("N")(node), node.input(0)],
    "MatMulNBitsQLoRA": _named("N"),
    "MatMulNBitsQkv": lambda node: [*_named("Nq", "Nkv", "Nkv")(node), node.input(0)],
    "MatMulPacked": _named("N"),
    "MoEPacked": _same,
    "MulInteger": _product,
    "PackedAttention": _packed,
    "PackedMultiHeadAttention": _packed_heads,
    "PagedAttention": _paged,
    "QOrderedAttention": _same,
    "QOrderedGelu": _same,
    "QOrderedLayerNormalization": _same,
    "QOrderedLongformerAttention": _same,
    "QOrderedMatMul": _ordered_product,
    "RelativePositionBias": _biases,
    "RestorePadding": lambda node: [TensorType(node.input(0).dtype, (*node.input(1).shape, node.input(0).shape[-1]))],
    "Rfft": _spectrum,
    "RouterGateUpProj": _router_and_gates,
    "SparseAttention": _sparse,
    "SwiGLU": _gates,
    "TorchEmbedding": _embedded,
    "VarlenCausalConvWithState": lambda node: [node.input(0), node.input(4)],
}
