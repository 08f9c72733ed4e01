"""Output types of ops in the layouts of ONNX Runtime's last optimisation levels.

Blocked channels (domain ``com.microsoft.nchwc``): tensors are N × C × H × W with C rounded up to whole blocks of 8 or
16, as the machine that optimised the model has them. Channels last (``Nhwc…``, and quantised convolutions and poolings
with ``channels_last``): N × H × W × C, with weights as the default domain has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import onnx

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.shape_rules.window_sizes import output_sizes, pooled_sizes
from mtpp.formats.onnx.tensor_type import TensorType

BLOCKED = "com.microsoft.nchwc"
LARGEST_BLOCK = 16

Types = Sequence[TensorType | None]

BLOCKED_TWINS = {
    f"{BLOCKED}:{name}": (name, used) for name, used in (("Conv", 3), ("GlobalAveragePool", 1), ("GlobalMaxPool", 1))
}
"""Blocked ops shaped like a standard op on the blocked channels."""


def channel_block(graph: onnx.GraphProto) -> int:
    """Return the number of channels in a block: that of the weights, whose outputs are whole blocks."""
    weights = {tensor.name: tensor.dims for tensor in graph.initializer}
    outputs = [
        weights[node.input[1]][0]
        for node in _nodes(graph)
        if node.domain == BLOCKED and node.op_type == "Conv" and len(node.input) > 1 and weights.get(node.input[1])
    ]
    return LARGEST_BLOCK if all(count % LARGEST_BLOCK == 0 for count in outputs) else LARGEST_BLOCK // 2


def layout_output_types(node: NodeView, block: int) -> Types | None:
    """Return the types of the outputs of an op in another layout; None if it is none of them.

    Parameters
    ----------
    block
        Channels in a block.
    """
    if node.kind == f"{BLOCKED}:ReorderInput":
        return _blocked(node, block)
    rule = _RULES.get(node.kind)
    return None if rule is None else rule(node)


def _nodes(graph: onnx.GraphProto) -> Iterable[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _blocked(node: NodeView, block: int) -> Types:
    x = node.input(0)
    n, *rest = x.shape
    sizes, channels = (rest[:-1], rest[-1]) if node.integer("channels_last", 0) else (rest[1:], rest[0])
    return [TensorType(x.dtype, (n, -(-channels // block) * block, *sizes))]


def _unblocked(node: NodeView) -> Types:
    x, channels = node.input(0), node.integer("channels", 0)
    n, padded, *sizes = x.shape
    if not 0 < channels <= padded:
        raise MalformedNode(f"{channels} channels of {padded}")
    last = node.integer("channels_last", 0)
    return [TensorType(x.dtype, (n, *sizes, channels) if last else (n, channels, *sizes))]


def _upsampled(node: NodeView) -> Types:
    x, scales = node.input(0), node.integers("scales") or []
    return [TensorType(x.dtype, tuple(size * scale for size, scale in zip(x.shape, scales, strict=True)))]


def _channels_last_conv(weight_input: int) -> Callable[[NodeView], Types]:
    def rule(node: NodeView) -> Types:
        x, weight = node.input(0), node.input(weight_input)
        kernel = weight.shape[2:]
        if node.kind.endswith("QLinearConv") and not node.integer("channels_last", 0):
            return [TensorType(x.dtype, (x.shape[0], weight.shape[0], *output_sizes(node, x.shape[2:], kernel)))]
        return [TensorType(x.dtype, (x.shape[0], *output_sizes(node, x.shape[1:-1], kernel), weight.shape[0]))]

    return rule


def _pooled(node: NodeView) -> Types:
    x, kernel = node.input(0), node.integers("kernel_shape") or []
    if node.kind.endswith("NhwcMaxPool") or node.integer("channels_last", 0):
        return [TensorType(x.dtype, (x.shape[0], *pooled_sizes(node, x.shape[1:-1], kernel), x.shape[-1]))]
    return [TensorType(x.dtype, (*x.shape[:2], *pooled_sizes(node, x.shape[2:], kernel)))]


_RULES: dict[str, Callable[[NodeView], Types]] = {
    f"{BLOCKED}:ReorderOutput": _unblocked,
    f"{BLOCKED}:Upsample": _upsampled,
    "com.microsoft:NhwcConv": _channels_last_conv(1),
    "com.microsoft:NhwcFusedConv": _channels_last_conv(1),
    "com.microsoft:NhwcMaxPool": _pooled,
    "com.microsoft:QLinearAveragePool": _pooled,
    "com.microsoft:QLinearConv": _channels_last_conv(3),
}
