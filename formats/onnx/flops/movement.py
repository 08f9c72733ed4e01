"""Cost rules of ops that move data without computing, and of views, which do not even move it."""

from __future__ import annotations

from mtpp.formats.modelled.flop_counts import DROPOUT_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.onnx.flops.cost_rule import CostRule
from mtpp.formats.onnx.node_view import NodeView

_VIEWS = (
    "BitCast Flatten Identity Optional OptionalGetElement Reshape Squeeze Unsqueeze "
    "com.microsoft:ExpandDims com.microsoft:SampleOp"
)
_BOOKKEEPING = (
    "OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
    "Shape Size"
)
_MOVES = (
    "Col2Im ConstantOfShape Concat ConcatFromSequence DepthToSpace Expand EyeLike MaxUnpool OneHot Pad "
    "ReverseSequence SpaceToDepth Split SplitToSequence TensorScatter Tile Transpose Trilu com.microsoft:QLinearConcat "
    "com.microsoft.nchwc:ReorderInput com.microsoft.nchwc:ReorderOutput com.microsoft:RemovePadding "
    "com.microsoft:RestorePadding com.microsoft:UnfoldTensor"
)

VIEWS = frozenset(_VIEWS.split())
"""Ops whose output is their input under another shape or name: no FLOPs and no traffic."""


def is_view(node: NodeView) -> bool:
    """Say whether the op's first output is its first input seen differently; Dropout is, outside of training."""
    if node.kind == "Dropout":
        training = node.value(2)
        return not (node.has(2) and (training is None or bool(training.reshape(-1).any())))
    return node.kind in VIEWS


def _nothing(node: NodeView) -> NodeCost:
    return NodeCost(flops=0, reads=0, writes=0)


def _gather(node: NodeView) -> NodeCost:
    """Read the rows that are taken and their indices, not the whole table."""
    return NodeCost(flops=0, reads=node.output().bytes + node.input(1).bytes)


def _part(node: NodeView) -> NodeCost:
    """Read what is kept."""
    moving = [node.inputs[i] for i in range(1, len(node.inputs)) if node.has(i) and node.value(i) is None]
    return NodeCost(flops=0, reads=node.output().bytes + sum(getattr(kind, "bytes", 0) for kind in moving))


def _scatter(node: NodeView) -> NodeCost:
    """Copy the data, then write the updates over it; reductions take one operation per update."""
    reduction = node.text("reduction", "none") != "none"
    return NodeCost(flops=node.input(2).count if reduction else 0)


def _rotary(node: NodeView) -> NodeCost:
    """Per pair of channels four multiplications and two additions; a cache of fewer angles leaves the rest as it is."""
    x, angles = node.input(0), node.input(2 if node.kind.startswith("com.microsoft:") else 1)
    heads = node.integer("num_heads", 0)
    if x.rank != 4 and not heads:
        return NodeCost(flops=3 * x.count)
    size = x.shape[-1] if x.rank == 4 else x.shape[-1] // heads
    return NodeCost(flops=3 * x.count * min(size, 2 * angles.shape[-1]) // max(1, size))


def _gather_blocks(node: NodeView) -> NodeCost:
    """Read the quantised rows that are taken; each number is shifted and scaled."""
    table, rows = node.input(0), node.output()
    packed = table.bytes * rows.count // max(1, table.count)
    return NodeCost(flops=2 * rows.count, reads=packed + node.input(1).bytes)


def _gather_packed(node: NodeView) -> NodeCost:
    """Read whole rows of packed numbers; each is shifted and scaled."""
    table, indices = node.input(0), node.input(1)
    taken = table.bytes * indices.count // max(1, table.shape[0])
    return NodeCost(flops=2 * node.output().count, reads=taken + indices.bytes)


def _looked_up(node: NodeView) -> NodeCost:
    """Read a number of a small table for each element."""
    return NodeCost(flops=0, reads=node.output().bytes)


def _rotate_two(node: NodeView) -> NodeCost:
    """Turn queries and keys by angles, of which sine and cosine are taken first."""
    return NodeCost(flops=2 * node.input(0).count + 3 * (node.output(0).count + node.output(1).count))


RULES: dict[str, CostRule] = {
    **dict.fromkeys([*VIEWS, *_BOOKKEEPING.split()], _nothing),
    **dict.fromkeys(_MOVES.split(), lambda node: NodeCost(flops=0)),
    "CenterCropPad": lambda node: NodeCost(flops=0, reads=min(node.input(0).bytes, node.output().bytes)),
    "Compress": _part,
    "Dropout": lambda node: _nothing(node) if is_view(node) else NodeCost(flops=DROPOUT_FLOPS * node.input(0).count),
    "Gather": _gather,
    "GatherElements": _gather,
    "GatherND": _gather,
    "RotaryEmbedding": _rotary,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Slice": _part,
    "com.microsoft:GatherBlockQuantized": _gather_blocks,
    "com.microsoft:GatherPacked": _gather_packed,
    "com.microsoft:GemmaRotaryEmbedding": _rotate_two,
    "com.microsoft:MRotaryEmbedding": _rotary,
    "com.microsoft:RelativePositionBias": _looked_up,
    "com.microsoft:TorchEmbedding": _gather,
}
