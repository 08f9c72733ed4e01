"""Sizes of weights that follow from the tensor that they meet: onnx's inference takes the one or the other for true.

A weight of another size is a fault of the model, or of the size that was computed before it: ONNX Runtime refuses both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from mtpp.formats.modelled.contraction import labelled_sizes
from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.tensor_type import TensorType, broadcast

Shape = tuple[int | None, ...]
"""Sizes, None for any."""
Expected = Iterator[tuple[int, Shape]]
"""Indices of inputs with the shapes that they have to have."""


def check_operands(node: NodeView) -> None:
    """Refuse a node whose weights do not fit the tensor that they meet, or each other."""
    rule = _RULES.get(node.kind)
    for index, shape in () if rule is None else rule(node):
        found = node.inputs[index] if index < len(node.inputs) else None
        if not isinstance(found, TensorType):
            continue
        fits = len(found.shape) == len(shape)
        if not fits or any(size not in (None, own) for own, size in zip(found.shape, shape, strict=True)):
            raise MalformedNode(f"input {index} has shape {_shown(found.shape)}, not {_shown(shape)}")


def check_rows(node: NodeView) -> None:
    """Refuse a Gather with constant indices beyond the table: it fits by its shapes, and fails when it runs."""
    indices = node.value(1) if node.kind == "Gather" else None
    if indices is None or not indices.size:
        return
    rows = node.input(0).shape[node.integer("axis", 0)]
    if int(indices.max()) >= rows or int(indices.min()) < -rows:
        raise MalformedNode(f"index {int(indices.max())} of {rows} rows")


def _shown(shape: Shape) -> str:
    return "×".join("?" if size is None else str(size) for size in shape) or "()"


def _stretched(node: NodeView, index: int, shape: tuple[int, ...]) -> None:
    """Refuse an input that cannot be repeated to a shape."""
    found = node.input_or_none(index)
    if found is None:
        return
    try:
        fits = broadcast([found.shape, shape]) == shape
    except ValueError:
        fits = False
    if not fits:
        raise MalformedNode(f"input {index} has shape {_shown(found.shape)}, which is not repeated to {_shown(shape)}")


def _kernel(node: NodeView, axes: int) -> Shape:
    kernel = node.integers("kernel_shape")
    return tuple(kernel) if kernel else (None,) * axes


def _group(node: NodeView, *channels: int) -> int:
    group = node.integer("group", 1)
    if group < 1 or any(count % group for count in channels):
        raise MalformedNode(f"{' and '.join(map(str, channels))} channels do not make {group} groups")
    return group


def _convolved(weight: int, bias: int) -> Callable[[NodeView], Expected]:
    """Return the rule of a convolution; its weights are outputs × inputs of a group × kernel."""

    def rule(node: NodeView) -> Expected:
        x, kernel = node.input(0), node.input(weight)
        channels, made = x.shape[1], kernel.shape[0]
        yield weight, (None, channels // _group(node, channels, made), *_kernel(node, x.rank - 2))
        yield bias, (made,)

    return rule


def _transposed(node: NodeView) -> Expected:
    x, kernel = node.input(0), node.input(1)
    yield 1, (x.shape[1], None, *_kernel(node, x.rank - 2))
    yield 2, (kernel.shape[1] * _group(node, x.shape[1]),)


def _deformed(node: NodeView) -> Expected:
    """Two offsets, and one mask, for each element under the kernel."""
    x, kernel = node.input(0), node.input(1)
    yield from _convolved(1, 3)(node)
    taps = node.integer("offset_group", 1) * math.prod(kernel.shape[2:])
    yield 2, (x.shape[0], 2 * taps, None, None)
    yield 4, (x.shape[0], taps, None, None)


def _product(right: int) -> Callable[[NodeView], Expected]:
    def rule(node: NodeView) -> Expected:
        a, b = node.input(0).shape, node.input(right).shape
        if not a or not b:
            raise MalformedNode("a number is no matrix")
        _meet(a[-1], b[-2] if len(b) > 1 else b[0])
        yield from ()

    return rule


def _dynamic_product(node: NodeView) -> Expected:
    yield from _product(1)(node)
    yield 1, (None, None)
    yield 4, (node.input(1).shape[-1],)


def _gemm(node: NodeView) -> Expected:
    yield 0, (None, None)
    yield 1, (None, None)
    a, b = node.input(0).shape, node.input(1).shape
    rows, inner = reversed(a) if node.integer("transA", 0) else a
    below, columns = reversed(b) if node.integer("transB", 0) else b
    _meet(inner, below)
    _stretched(node, 2, (rows, columns))


def _meet(rows: int, columns: int) -> None:
    if rows != columns:
        raise MalformedNode(f"rows of {rows} meet columns of {columns}")


def _channels(*indices: int) -> Callable[[NodeView], Expected]:
    def rule(node: NodeView) -> Expected:
        shape = node.input(0).shape
        if node.integer("spatial", 1):
            yield from ((index, (shape[1] if len(shape) > 1 else 1,)) for index in indices)

    return rule


def _grouped(node: NodeView) -> Expected:
    """Scale and shift were one for a group before opset 21."""
    size = node.input(0).shape[1] if node.opset > 20 else node.integer("num_groups", 1)
    for index in (1, 2):
        _stretched(node, index, (size,))
    yield from ()


def _normalised(node: NodeView) -> Expected:
    shape = node.input(0).shape
    normalised = math.prod(shape[node.integer("axis", -1) :])
    for index in (1, 2):
        found = node.input_or_none(index)
        if found is not None and found.count != normalised:
            _stretched(node, index, shape)
    yield from ()


def _last(*indices: int) -> Callable[[NodeView], Expected]:
    """Return the rule of operands of one number for each element along the last axis."""

    def rule(node: NodeView) -> Expected:
        yield from ((index, node.input(0).shape[-1:]) for index in indices)

    return rule


def _slope(node: NodeView) -> Expected:
    _stretched(node, 1, node.input(0).shape)
    yield from ()


def _recurrent(gates: int) -> Callable[[NodeView], Expected]:
    def rule(node: NodeView) -> Expected:
        x, recurrence = node.input(0), node.input(2)
        directions = 2 if node.text("direction", "forward") == "bidirectional" else 1
        hidden = node.integer("hidden_size", recurrence.shape[-1])
        yield 0, (None, None, None)
        yield 1, (directions, gates * hidden, x.shape[2])
        yield 2, (directions, gates * hidden, hidden)
        yield 3, (directions, 2 * gates * hidden)
        state = (x.shape[0], directions, hidden) if node.integer("layout", 0) else (directions, x.shape[1], hidden)
        yield 5, state
        if gates == 4:
            yield 6, state
            yield 7, (directions, 3 * hidden)

    return rule


def _einsum(node: NodeView) -> Expected:
    """Hold each letter to one size; 1 is repeated. An equation of other signs is told of elsewhere."""
    equation = node.text("equation", "")
    if equation.isascii():
        labelled_sizes(equation, [node.input(index).shape for index in range(len(node.inputs))])
    yield from ()


def _quantised(node: NodeView) -> Expected:
    """One scale for all, for each element along an axis, or for a block."""
    x, scale = node.input(0), node.input(1)
    if scale.rank == 1 and scale.count > 1:
        axis = node.integer("axis", 1)
        yield 1, (x.shape[axis],)
    if scale.count > 1:
        yield 2, scale.shape


def _packed_attention(node: NodeView) -> Expected:
    yield 1, (node.input(0).shape[-1], None)
    yield 2, (node.input(1).shape[-1],)


def _of_few_bits(node: NodeView) -> Expected:
    _meet(node.input(0).shape[-1], node.integer("K", 0))
    yield from ()


_RULES: dict[str, Callable[[NodeView], Expected]] = {
    "BatchNormalization": _channels(1, 2, 3, 4),
    "Conv": _convolved(1, 2),
    "ConvInteger": _convolved(1, 9),
    "ConvTranspose": _transposed,
    "DeformConv": _deformed,
    "DequantizeLinear": _quantised,
    "Einsum": _einsum,
    "GRU": _recurrent(3),
    "Gemm": _gemm,
    "GroupNormalization": _grouped,
    "InstanceNormalization": _channels(1, 2),
    "LSTM": _recurrent(4),
    "LayerNormalization": _normalised,
    "MatMul": _product(1),
    "MatMulInteger": _product(1),
    "PRelu": _slope,
    "QLinearConv": _convolved(3, 8),
    "QLinearMatMul": _product(3),
    "QuantizeLinear": _quantised,
    "RMSNormalization": _normalised,
    "RNN": _recurrent(1),
    "SimplifiedLayerNormalization": _normalised,
    "com.microsoft:Attention": _packed_attention,
    "com.microsoft:BiasGelu": _last(1),
    "com.microsoft:DynamicQuantizeMatMul": _dynamic_product,
    "com.microsoft:FastGelu": _last(1),
    "com.microsoft:FusedConv": _convolved(1, 2),
    "com.microsoft:FusedGemm": _gemm,
    "com.microsoft:MatMulIntegerToFloat": _product(1),
    "com.microsoft:MatMulNBits": _of_few_bits,
    "com.microsoft:SkipLayerNormalization": _last(2, 3, 4),
    "com.microsoft:SkipSimplifiedLayerNormalization": _last(2, 3),
}
