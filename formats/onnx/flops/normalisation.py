"""Cost rules of normalisations and of the softmax family."""

from __future__ import annotations

from mtpp.formats.modelled.flop_counts import (
    BATCH_NORM_FLOPS,
    FUNCTIONS,
    LAYER_NORM_FLOPS,
    QUANTISED_FLOPS,
    RMS_NORM_FLOPS,
    SOFTMAX_FLOPS,
    STANDARDISE_FLOPS,
)
from mtpp.formats.modelled.node_cost import NodeCost
from mtpp.formats.onnx.flops.cost_rule import CostRule, per_input_element, per_output_element
from mtpp.formats.onnx.flops.elementwise import activation_flops
from mtpp.formats.onnx.node_view import NodeView


def _batch_normalization(node: NodeView) -> NodeCost:
    per_element = LAYER_NORM_FLOPS if node.integer("training_mode", 0) else BATCH_NORM_FLOPS
    return NodeCost(flops=per_element * node.input(0).count)


def _local_response(node: NodeView) -> NodeCost:
    """Square, a sum over *size* channels, scale, shift, power, division."""
    return NodeCost(flops=(node.integer("size", 1) + 5) * node.input(0).count)


def _skip(per_element: int, bias_input: int) -> CostRule:
    """Input and skip (and a bias) are added before they are normalised."""

    def rule(node: NodeView) -> NodeCost:
        additions = 2 if node.has(bias_input) else 1
        return NodeCost(flops=(per_element + additions) * node.input(0).count)

    return rule


def _group_norm(node: NodeView) -> NodeCost:
    """NHWC group normalisation with an optional swish."""
    activation = FUNCTIONS["swish"] if node.integer("activation", 0) else 0
    skip = 1 if node.kind.endswith("SkipGroupNorm") else 0
    return NodeCost(flops=(LAYER_NORM_FLOPS + activation + skip) * node.input(0).count)


def _embed_layer_normalization(node: NodeView) -> NodeCost:
    """Two or three embeddings looked up, added, normalised: only the rows looked up are read."""
    embedded = node.output()
    tables = [index for index in (2, 3, 4) if node.has(index)]
    ids = sum(node.input(index).bytes for index in (0, 1) if node.has(index))
    affine = sum(node.input(index).bytes for index in (5, 6) if node.has(index))
    flops = (LAYER_NORM_FLOPS + len(tables) - 1) * embedded.count
    return NodeCost(flops=flops, reads=ids + affine + len(tables) * embedded.bytes)


def _gated_norm(node: NodeView) -> NodeCost:
    """Normalise, and multiply with an activated gate."""
    gate = activation_flops(node.text("activation", "silu")) + 1
    return NodeCost(flops=(RMS_NORM_FLOPS + gate) * node.output().count)


RULES: dict[str, CostRule] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": per_input_element(LAYER_NORM_FLOPS),
    "Hardmax": per_input_element(1),
    "InstanceNormalization": per_input_element(LAYER_NORM_FLOPS),
    "LRN": _local_response,
    "LayerNormalization": per_input_element(LAYER_NORM_FLOPS),
    "LogSoftmax": per_input_element(SOFTMAX_FLOPS),
    "LpNormalization": per_input_element(3),
    "MeanVarianceNormalization": per_input_element(STANDARDISE_FLOPS),
    "NegativeLogLikelihoodLoss": per_input_element(1),
    "RMSNormalization": per_input_element(RMS_NORM_FLOPS),
    "Softmax": per_input_element(SOFTMAX_FLOPS),
    "SoftmaxCrossEntropyLoss": per_input_element(SOFTMAX_FLOPS),
    "com.microsoft:BiasSoftmax": per_input_element(SOFTMAX_FLOPS + 1),
    "com.microsoft:BranchwiseRMSNorm": per_input_element(RMS_NORM_FLOPS),
    "com.microsoft:EmbedLayerNormalization": _embed_layer_normalization,
    "com.microsoft:GatedRMSNorm": _gated_norm,
    "com.microsoft:GroupNorm": _group_norm,
    "com.microsoft:QLinearSoftmax": per_input_element(SOFTMAX_FLOPS + QUANTISED_FLOPS),
    "com.microsoft:QOrderedLayerNormalization": per_input_element(LAYER_NORM_FLOPS + QUANTISED_FLOPS),
    "com.microsoft:RMSNormRotary": per_output_element(RMS_NORM_FLOPS + 3),
    "com.microsoft:SimplifiedLayerNormalization": per_input_element(RMS_NORM_FLOPS),
    "com.microsoft:SkipGroupNorm": _group_norm,
    "com.microsoft:SkipLayerNormalization": _skip(LAYER_NORM_FLOPS, bias_input=4),
    "com.microsoft:SkipSimplifiedLayerNormalization": _skip(RMS_NORM_FLOPS, bias_input=3),
}
