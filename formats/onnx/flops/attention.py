"""Cost rules of attention ops, in their default-domain and ``com.microsoft`` spellings."""

from __future__ import annotations

import math

from mtpp.formats.modelled.flop_counts import RMS_NORM_FLOPS, SOFTMAX_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.onnx.flops.attention_geometry import (
    Geometry,
    group_query_geometry,
    multi_head_geometry,
    packed_geometry,
    standard_geometry,
)
from mtpp.formats.onnx.flops.cost_rule import CostRule
from mtpp.formats.onnx.node_view import MalformedNode, NodeView


def flops_per_score(*, masked: bool, capped: bool = False) -> int:
    """Scaling and softmax of a score; a mask is one addition, a cap is division, tanh, multiplication."""
    return 1 + SOFTMAX_FLOPS + (1 if masked else 0) + (3 if capped else 0)


def rotary_flops(node: NodeView, elements: int, head_size: int, cosines: int) -> int:
    """Three operations for each element of queries and keys that is turned, by as many angles as the cache has."""
    if not node.integer("do_rotary", 0):
        return 0
    cache = node.input_or_none(cosines)
    turned = head_size if cache is None else min(head_size, 2 * cache.shape[-1])
    return 3 * elements * turned // max(1, head_size)


def _around_the_scores(geometry: Geometry, *, masked: bool, capped: bool = False) -> int:
    return geometry.scores * flops_per_score(masked=masked, capped=capped)


def _standard(node: NodeView) -> NodeCost:
    geometry = standard_geometry(node)
    masked = node.has(3) or node.has(6) or bool(node.integer("is_causal", 0))
    capped = node.number("softcap", 0.0) != 0.0
    return dense(geometry.macs, _around_the_scores(geometry, masked=masked, capped=capped))


def _projected(node: NodeView) -> NodeCost:
    """One input is projected to queries, keys and values by one weight first."""
    x, weight = node.input(0), node.input(1)
    geometry = packed_geometry(node)
    projection = math.prod(x.shape[:2]) * weight.count
    masked = any(node.has(index) for index in (3, 5)) or bool(node.integer("unidirectional", 0))
    return dense(projection + geometry.macs, _around_the_scores(geometry, masked=masked))


def _multi_head(node: NodeView) -> NodeCost:
    geometry = multi_head_geometry(node)
    masked = node.has(4) or node.has(5) or bool(node.integer("unidirectional", 0))
    return dense(geometry.macs, _around_the_scores(geometry, masked=masked) + added_to_heads(node, 3))


def added_to_heads(node: NodeView, bias: int) -> int:
    """FLOPs of a bias of queries, keys and values, which the first three inputs hold; an encoder's have none."""
    given = [node.input(index) for index in range(3) if node.has(index)] if node.has(bias) else []
    return sum(one.count for index, one in enumerate(given) if index == 0 or one.rank != 4)


def _group_query(node: NodeView) -> NodeCost:
    """Count the mask always; rotary embedding of queries and keys is three operations per element, their norm four.

    Of cached keys and values only those are read that are in the window of some query.
    """
    geometry = group_query_geometry(node)
    rotated = geometry.batch * geometry.queries * (geometry.heads + geometry.key_heads) * geometry.head_size
    rotary = rotary_flops(node, rotated, geometry.head_size, cosines=7)
    rotary += RMS_NORM_FLOPS * rotated if node.has(14) else 0
    capped = node.number("softcap", 0.0) != 0.0
    cost = dense(geometry.macs, _around_the_scores(geometry, masked=True, capped=capped) + rotary)
    if geometry.window is None:
        return cost
    past = [node.input(index).bytes for index in (3, 4) if node.has(index)]
    rest = sum(getattr(kind, "bytes", 0) for kind in node.inputs) - sum(past)
    cached = max(1, geometry.keys - geometry.queries)
    kept = min(cached, max(0, geometry.keys_read - geometry.queries))
    return NodeCost(cost.flops, cost.macs, reads=rest + sum(past) * kept // cached)


def _linear_attention(node: NodeView) -> NodeCost:
    """Each token updates a key × value state per key-value head (k ⊗ v) and each query head reads it (q · S).

    The delta rules read the state a second time (Sᵀk) before they write it; decay scales it.
    """
    query, key, value = node.input(0), node.input(1), node.input(2)
    heads, key_heads = node.integer("q_num_heads", 1), node.integer("kv_num_heads", 1)
    tokens = math.prod(query.shape[:2])
    state = (key.shape[-1] // key_heads) * (value.shape[-1] // key_heads)
    rule = node.text("update_rule", "gated_delta")
    macs = tokens * state * (key_heads * (2 if "delta" in rule else 1) + max(heads, key_heads))
    return dense(macs, tokens * state * key_heads if "gated" in rule else 0)


def _packed_delta(node: NodeView) -> NodeCost:
    """Update a state of each value head as :func:`_linear_attention` does; heads and channels are axes of the inputs.

    Queries, keys and values side by side take their sizes from the state that they begin with.
    """
    query, value, state = node.input(0), node.input_or_none(2), node.input_or_none(6)
    if value is None:
        if state is None:
            raise MalformedNode("GatedDeltaNet has neither values nor a state")
        _, value_heads, value_size, size = state.shape
        tokens = math.prod(query.shape[:-1])
        heads = (query.shape[-1] - value_heads * value_size) // (2 * size)
    else:
        heads, size = query.shape[-2:]
        value_heads, value_size = value.shape[-2:]
        tokens = math.prod(query.shape[:-2])
    rule = node.text("update_rule", "gated_delta")
    updates = tokens * size * value_size
    macs = updates * (value_heads * (2 if "delta" in rule else 1) + max(heads, value_heads))
    return dense(macs, updates * value_heads if "gated" in rule else 0)


RULES: dict[str, CostRule] = {
    "Attention": _standard,
    "LinearAttention": _linear_attention,
    "ai.onnx.preview:FlexAttention": _standard,
    "com.microsoft:Attention": _projected,
    "com.microsoft:GatedDeltaNet": _packed_delta,
    "com.microsoft:GroupQueryAttention": _group_query,
    "com.microsoft:MultiHeadAttention": _multi_head,
    "com.microsoft:QAttention": _projected,
}
