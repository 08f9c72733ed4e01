"""Cost rules of matrix products with packed weights and of what is fused around them (domain ``com.microsoft``).

Unpacking a weight to a float is a shift and a scale.
"""

from __future__ import annotations

import math

from mtpp.formats.modelled.flop_counts import RMS_NORM_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.onnx.flops.cost_rule import CostRule
from mtpp.formats.onnx.flops.elementwise import activation_flops
from mtpp.formats.onnx.node_view import MalformedNode, NodeView

_UNPACKING = 2


def _rows(node: NodeView) -> int:
    return math.prod(node.input(0).shape[:-1])


def _sides(node: NodeView, *columns: str) -> tuple[int, list[int]]:
    """Return the inner side of products, and the columns of each."""
    sizes = [node.integer(name, 0) for name in ("K", *columns)]
    if min(sizes) < 1:
        raise MalformedNode(f"{node.kind} lacks a size among {', '.join(('K', *columns))}")
    return sizes[0], sizes[1:]


def _packed(node: NodeView) -> NodeCost:
    inner, (columns,) = _sides(node, "N")
    return dense(_rows(node) * inner * columns, _UNPACKING * inner * columns)


def _unpacked_rows(node: NodeView) -> NodeCost:
    """Weights are outputs × inputs, of eight or four bits."""
    inner, columns = node.input(0).shape[-1], node.input(1).shape[0]
    return dense(_rows(node) * inner * columns, _UNPACKING * inner * columns)


def _of_four_bits(node: NodeView) -> NodeCost:
    inner, columns = node.input(0).shape[-1], node.output().shape[-1]
    return dense(_rows(node) * inner * columns, _UNPACKING * inner * columns)


def _adapted(node: NodeView) -> NodeCost:
    """Add the product with two adapters of few columns in between."""
    inner, (columns,) = _sides(node, "N")
    rank = node.input(3).shape[0]
    weights = inner * columns + rank * (inner + columns)
    return dense(_rows(node) * weights, _UNPACKING * weights + _rows(node) * columns)


def _before(node: NodeView, skip: int, scale: int) -> int:
    """FLOPs of the normalisation before a product, and of what is added first."""
    flops = RMS_NORM_FLOPS if node.has(scale) else 0
    return (flops + node.has(skip)) * node.input(0).count


def _gated(node: NodeView) -> NodeCost:
    """Multiply two projections, one of them activated."""
    inner, (columns,) = _sides(node, "N")
    weights, made = 2 * inner * columns, _rows(node) * columns
    activated = (activation_flops(node.text("activation", "silu")) + 1) * made
    return dense(_rows(node) * weights, _UNPACKING * weights + activated + _before(node, 1, 2))


def _projections(node: NodeView) -> NodeCost:
    inner, (queries, keys) = _sides(node, "Nq", "Nkv")
    weights = inner * (queries + 2 * keys)
    return dense(_rows(node) * weights, _UNPACKING * weights + _before(node, 1, 2))


def _ordered(node: NodeView) -> NodeCost:
    """Requantise each element; one that is added is scaled first."""
    elements = node.output().count
    return dense(elements * node.input(0).shape[-1], (3 + 2 * node.has(6)) * elements)


def _router_and_gates(node: NodeView) -> NodeCost:
    weight, activated = node.input(1), node.output(1)
    return dense(_rows(node) * weight.count, (activation_flops("silu") + 1) * activated.count)


def _packed_experts(node: NodeView) -> NodeCost:
    """Each token runs through k experts: gate, up (where there is one) and down; only chosen experts are read."""
    x, gate = node.input(0), node.input(2)
    experts, inner = gate.shape[0], gate.shape[1]
    chosen = _rows(node) * node.integer("k", 1)
    blobs = [node.input(index) for index in (2, 3, 4) if node.has(index)]
    each = inner * x.shape[-1] * len(blobs)
    touched = min(experts, chosen)
    reads = x.bytes + node.input(1).bytes + sum(blob.bytes * touched // experts for blob in blobs)
    macs = chosen * each
    return NodeCost(flops=2 * macs + _UNPACKING * touched * each, macs=macs, reads=reads)


def _gated_bias(node: NodeView) -> NodeCost:
    """Project each head of the queries to a few gates, then scale the bias of every pair of positions."""
    query, weight = node.input(0), node.input(3)
    rows = query.count // weight.shape[0]
    return dense(rows * weight.count, query.count + 2 * node.output().count)


RULES: dict[str, CostRule] = {
    f"com.microsoft:{name}": rule
    for name, rule in {
        "GatedRelativePositionBias": _gated_bias,
        "MatMulBlockQuantizedFp4Weight": _unpacked_rows,
        "MatMulBlockQuantizedFp8Weight": _unpacked_rows,
        "MatMulFpQ4": _of_four_bits,
        "MatMulNBitsMlp": _gated,
        "MatMulNBitsQLoRA": _adapted,
        "MatMulNBitsQkv": _projections,
        "MatMulPacked": _packed,
        "MoEPacked": _packed_experts,
        "QOrderedMatMul": _ordered,
        "RouterGateUpProj": _router_and_gates,
    }.items()
}
