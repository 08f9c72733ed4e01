"""Cost rules of classic machine learning: domain ``ai.onnx.ml``."""

from __future__ import annotations

from collections import Counter

from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.onnx.flops.cost_rule import CostRule, per_input_element
from mtpp.formats.onnx.node_view import NodeView

_KERNEL_FLOPS = 4
"""Of a support vector beside its product: a difference or a shift, a scale, a power or exp, the weighted sum."""


def _rows(node: NodeView) -> int:
    shape = node.input(0).shape
    return shape[0] if len(shape) > 1 else 1


def _linear(node: NodeView) -> NodeCost:
    return dense(_rows(node) * len(node.attributes.get("coefficients", ())))


def _support_vectors(node: NodeView) -> NodeCost:
    """Take the product with each support vector, then a weight for each of them and each other class."""
    rows, stored = _rows(node), len(node.attributes.get("support_vectors", ()))
    coefficients = len(node.attributes.get("coefficients", ()))
    if not stored:
        return dense(rows * coefficients)
    vectors = stored // max(1, node.input(0).shape[-1])
    return dense(rows * (stored + coefficients), _KERNEL_FLOPS * rows * vectors)


def _trees(node: NodeView) -> NodeCost:
    """Walk down each tree: a comparison for each level of a balanced one."""
    trees = Counter(node.attributes.get("nodes_treeids", ()))
    return NodeCost(flops=_rows(node) * sum(max(1, nodes.bit_length() - 1) for nodes in trees.values()))


def _tree_table(node: NodeView) -> NodeCost:
    """Walk down each tree of version 5, which lists inner nodes of all trees together."""
    trees, inner = len(node.attributes.get("tree_roots", ())), len(node.attributes.get("nodes_featureids", ()))
    return NodeCost(flops=_rows(node) * trees * max(1, (inner // max(1, trees)).bit_length()))


def _move(node: NodeView) -> NodeCost:
    return NodeCost(flops=0)


RULES: dict[str, CostRule] = {
    f"ai.onnx.ml:{name}": rule
    for name, rule in {
        "ArrayFeatureExtractor": _move,
        "Binarizer": per_input_element(1),
        "CategoryMapper": per_input_element(1),
        "FeatureVectorizer": _move,
        "Imputer": per_input_element(1),
        "LabelEncoder": per_input_element(1),
        "LinearClassifier": _linear,
        "LinearRegressor": _linear,
        "Normalizer": per_input_element(3),
        "OneHotEncoder": per_input_element(1),
        "SVMClassifier": _support_vectors,
        "SVMRegressor": _support_vectors,
        "Scaler": per_input_element(2),
        "TreeEnsemble": _tree_table,
        "TreeEnsembleClassifier": _trees,
        "TreeEnsembleRegressor": _trees,
    }.items()
}
