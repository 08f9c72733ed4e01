"""The table of cost rules, and which inputs merely configure an op."""

from __future__ import annotations

from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.onnx.flops import attention as flops_attention
from mtpp.formats.onnx.flops import classic as flops_classic
from mtpp.formats.onnx.flops import dense as flops_dense
from mtpp.formats.onnx.flops import elementwise as flops_elementwise
from mtpp.formats.onnx.flops import fused_products as flops_fused_products
from mtpp.formats.onnx.flops import movement as flops_movement
from mtpp.formats.onnx.flops import normalisation as flops_normalisation
from mtpp.formats.onnx.flops import packed_attention as flops_packed_attention
from mtpp.formats.onnx.flops import reduction as flops_reduction
from mtpp.formats.onnx.flops.cost_rule import CostRule
from mtpp.formats.onnx.node_view import NodeView

RULES: dict[str, CostRule] = {
    **flops_attention.RULES,
    **flops_classic.RULES,
    **flops_dense.RULES,
    **flops_elementwise.RULES,
    **flops_fused_products.RULES,
    **flops_movement.RULES,
    **flops_normalisation.RULES,
    **flops_packed_attention.RULES,
    **flops_reduction.RULES,
}

_AXES = frozenset({1})
CONFIGURATION_INPUTS: dict[str, frozenset[int]] = {
    "AffineGrid": frozenset({1}),
    "BlackmanWindow": frozenset({0}),
    "CenterCropPad": frozenset({1}),
    "Col2Im": frozenset({1, 2}),
    "ConstantOfShape": frozenset({0}),
    "CumProd": _AXES,
    "CumSum": _AXES,
    "DFT": frozenset({1, 2}),
    "Dropout": frozenset({1, 2}),
    "Expand": frozenset({1}),
    "HammingWindow": frozenset({0}),
    "HannWindow": frozenset({0}),
    "If": frozenset({0}),
    "Loop": frozenset({0, 1}),
    "MaxUnpool": frozenset({2}),
    "NonMaxSuppression": frozenset({2, 3, 4}),
    "OneHot": frozenset({1}),
    "Pad": frozenset({1, 3}),
    "Range": frozenset({0, 1, 2}),
    "Reshape": frozenset({1}),
    "Resize": frozenset({1, 2, 3}),
    "STFT": frozenset({1, 3}),
    "SequenceAt": _AXES,
    "SequenceErase": _AXES,
    "SequenceInsert": frozenset({2}),
    "Slice": frozenset({1, 2, 3, 4}),
    "Split": _AXES,
    "SplitToSequence": _AXES,
    "Squeeze": _AXES,
    "Tile": frozenset({1}),
    "TopK": frozenset({1}),
    "Trilu": frozenset({1}),
    "Unsqueeze": _AXES,
    "Upsample": frozenset({1}),
    **{kind: _AXES for kind in flops_reduction.RULES if kind.startswith("Reduce")},
    "com.microsoft:ConvTransposeWithDynamicPads": frozenset({2}),
    "com.microsoft:CropAndResize": frozenset({3}),
    "com.microsoft:ExpandDims": _AXES,
    "com.microsoft:DecoderAttention": frozenset({8, 9, 10, 11}),
    "com.microsoft:GroupQueryAttention": frozenset({5, 6}),
    "com.microsoft:MatMulFpQ4": frozenset({2}),
    "com.microsoft:PackedAttention": frozenset({3, 4}),
    "com.microsoft:PackedMultiHeadAttention": frozenset({4, 5}),
    "com.microsoft:SparseAttention": frozenset({5, 6, 7, 8}),
    "com.microsoft:Range": frozenset({0, 1, 2}),
}
"""Inputs that say how to compute, not on what: shapes, axes, counts. Older operator sets wrote most of them as
attributes. As constants they are settled before the model runs: neither parameters nor traffic. (Resize in opset 10
has its scales at index 1 as well.)"""

_NO_INPUTS: frozenset[int] = frozenset()


def configuration_inputs(kind: str) -> frozenset[int]:
    """Return the indices of the inputs that only configure an op of this kind."""
    return CONFIGURATION_INPUTS.get(kind, _NO_INPUTS)


def cost_rule(kind: str) -> CostRule | None:
    """Return the rule for an op's kind; fused ops found in the default domain, and the reverse, count alike."""
    rule = RULES.get(kind)
    if rule is not None:
        return rule
    domain, _, name = kind.rpartition(":")
    if domain in ("", "com.microsoft"):
        return RULES.get(name if domain else f"com.microsoft:{name}")
    return None


def node_cost(node: NodeView) -> tuple[NodeCost, bool]:
    """Return the cost of a node, and whether it is modelled; one that is not only moves its operands."""
    rule = cost_rule(node.kind)
    return (NodeCost(flops=0), False) if rule is None else (rule(node), True)
