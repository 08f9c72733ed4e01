"""Cost rules of attention over packed or paged sequences, blocks of keys, and windows with global tokens.

All are of domain ``com.microsoft``. Lengths, layouts and flags that are constants are counted; where a run computes
them, every token may look at as many keys as there is room for, and no token is a global one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mtpp.formats.modelled.flop_counts import RMS_NORM_FLOPS
from mtpp.formats.modelled.node_cost import NodeCost, dense
from mtpp.formats.onnx.flops.attention import added_to_heads, flops_per_score, rotary_flops
from mtpp.formats.onnx.flops.attention_geometry import decoding_geometry, packed_geometry, sparse_geometry
from mtpp.formats.onnx.flops.cost_rule import CostRule
from mtpp.formats.onnx.node_view import MalformedNode, NodeView


def _whole(node: NodeView, index: int) -> list[int] | None:
    value = node.value(index)
    return None if value is None else [int(one) for one in value.reshape(-1)]


def _new_tokens(cumulative: Sequence[int] | None) -> list[int] | None:
    """Return the lengths of packed sequences from the places where they begin and end."""
    if cumulative is None:
        return None
    return [end - begin for begin, end in itertools.pairwise(cumulative)]


def _packed_pairs(node: NodeView, tokens: int, *, offsets: int, cumulative: int) -> int:
    """Return the pairs of a token and a key of its sequence."""
    lengths = _new_tokens(_whole(node, cumulative))
    if lengths is not None:
        return sum(length * length for length in lengths)
    return tokens * min(tokens, node.input(offsets).shape[-1])


def _packed(node: NodeView) -> NodeCost:
    """Project tokens without padding; each looks at those of its sequence."""
    x, weight = node.input(0), node.input(1)
    heads = node.integer("num_heads", 1)
    sizes = node.integers("qkv_hidden_sizes") or [weight.shape[-1] // 3] * 3
    pairs = _packed_pairs(node, x.shape[0], offsets=3, cumulative=4)
    projection = x.shape[0] * weight.count
    return dense(projection + pairs * (sizes[0] + sizes[2]), heads * pairs * flops_per_score(masked=node.has(5)))


def _packed_heads(node: NodeView) -> NodeCost:
    query, value = node.input(0), node.input_or_none(2)
    heads = node.integer("num_heads", 1)
    width = query.shape[1] * query.shape[3] if query.rank == 4 else query.shape[1]
    made = value.shape[1] if value is not None else width
    pairs = _packed_pairs(node, query.shape[0], offsets=4, cumulative=5)
    around = heads * pairs * flops_per_score(masked=node.has(6))
    return dense(pairs * (width + made), around + added_to_heads(node, 3))


def _paged(node: NodeView) -> NodeCost:
    """Look at cached tokens in blocks; the mask is causal, and lessens nothing. Only pages that are looked at count."""
    query, cache, table = node.input(0), node.input(3), node.input(7)
    heads, key_heads = node.integer("num_heads", 1), node.integer("kv_num_heads", 1)
    tokens = query.shape[0]
    packed = not node.has(1)
    size = query.shape[1] // (heads + 2 * key_heads if packed and node.has(4) else heads)
    made = node.integer("v_head_size", 0) or size
    room = table.shape[-1] * cache.shape[1]
    window = node.integer("local_window_size", -1)
    lengths, past = _new_tokens(_whole(node, 5)), _whole(node, 6)
    asked = [tokens] if lengths is None else lengths
    cached = [room] * len(asked)
    if lengths is not None and past is not None:
        cached = [before + new for before, new in zip(past, lengths, strict=True)]
    pairs = sum(new * (min(keys, window) if window > 0 else keys) for new, keys in zip(asked, cached, strict=True))
    sequences = table.shape[0]
    looked = sum(cached) if lengths is not None and past is not None else sequences * room
    caches = [node.input(index) for index in (3, 4) if node.has(index)]
    pages = sum(one.bytes * min(one.count, looked * math.prod(one.shape[2:])) // max(1, one.count) for one in caches)
    rest = sum(getattr(kind, "bytes", 0) for index, kind in enumerate(node.inputs) if index not in (3, 4))
    turned = tokens * (heads + key_heads) * size
    extra = rotary_flops(node, turned, size, cosines=8) + (RMS_NORM_FLOPS * turned if node.has(12) else 0)
    capped = node.number("softcap", 0.0) != 0.0
    cost = dense(heads * pairs * (size + made), heads * pairs * flops_per_score(masked=True, capped=capped) + extra)
    written = sum(kind.bytes * tokens // max(1, math.prod(kind.shape[:2])) for kind in caches)
    return NodeCost(cost.flops, cost.macs, reads=rest + pages, writes=node.output().bytes + written)


def _sparse_pairs(node: NodeView, queries: int, keys: int) -> list[int] | None:
    """Return the pairs of a query and a key in a block of its row, of each layout; None if a run says the layouts."""
    rows, columns = node.value(5), node.value(6)
    block = node.integer("sparse_block_size", 0)
    if rows is None or columns is None or block < 1:
        return None
    positions = np.arange(max(0, keys - queries), keys)
    found = []
    for layout, starts in enumerate(np.asarray(rows)):
        in_row = [
            sum(max(0, min(block, keys - block * int(column))) for column in columns[layout][begin:end])
            for begin, end in itertools.pairwise(starts)
        ]
        if positions.size and positions[-1] // block >= len(in_row):
            raise MalformedNode(f"{len(in_row)} rows of blocks of {block} do not reach position {positions[-1]}")
        found.append(sum(in_row[position // block] for position in positions))
    return found


def _sparse(node: NodeView) -> NodeCost:
    """Count the blocks of each head's layout, whole ones; heads take the layouts in turn."""
    g = sparse_geometry(node)
    layouts = _sparse_pairs(node, g.queries, g.keys) or [g.queries * g.keys]
    pairs = g.batch * sum(layouts[head % len(layouts)] for head in range(g.heads))
    turned = g.batch * g.queries * (g.heads + g.key_heads) * g.head_size
    rotary = rotary_flops(node, turned, g.head_size, cosines=9)
    return dense(pairs * (g.head_size + g.value_size), pairs * flops_per_score(masked=True) + rotary)


def _windowed(weight: int, global_weight: int, flags: int) -> CostRule:
    """Return the rule of attention in a window to both sides, and of global tokens to and from all.

    Keys and values are projected for all tokens by both weights, queries of global tokens by the second one.
    """

    def rule(node: NodeView) -> NodeCost:
        batch, tokens, width = node.input(0).shape
        heads, half = node.integer("num_heads", 1), node.integer("window", 0)
        if half < 1:
            raise MalformedNode(f"{node.kind} has no window")
        marked = node.value(flags)
        chosen = 0 if marked is None else int(np.count_nonzero(marked))
        projection = batch * tokens * node.input(weight).count
        if chosen:
            both = 2 * batch * tokens + chosen
            projection += both * node.input(global_weight).count // 3
        near = batch * tokens * min(tokens, 2 * half + 1)
        pairs = near + 2 * chosen * tokens
        return dense(projection + 2 * pairs * width, heads * pairs * flops_per_score(masked=True))

    return rule


def _decoding(node: NodeView) -> NodeCost:
    g = decoding_geometry(node)
    masked = node.has(3) or node.has(4)
    return dense(g.macs, g.scores * flops_per_score(masked=masked) + added_to_heads(node, 10))


def _decoding_projected(node: NodeView) -> NodeCost:
    g = packed_geometry(node)
    projection = g.batch * g.queries * node.input(1).count
    return dense(projection + g.macs, g.scores * flops_per_score(masked=node.has(3) or node.has(5)))


def cached_decoder_keys(node: NodeView) -> int:
    """Return the positions that DecoderAttention looks at, by its flags; as many as there may be if a run says them."""
    static, use_past = (_flag(node, index) for index in (8, 9))
    cache = node.input_or_none(6)
    fresh = node.input(1).shape[0] if static else node.input(0).shape[0]
    if not use_past:
        return fresh
    if cache is None:
        raise MalformedNode("DecoderAttention has no cache")
    return cache.shape[2] if static else fresh + cache.shape[2]


def _flag(node: NodeView, index: int) -> bool:
    value = node.value(index)
    return value is not None and bool(value.reshape(-1).any())


def _decoder(node: NodeView) -> NodeCost:
    """Tokens come before sequences; keys and values of an encoder that are cached are not projected again."""
    tokens, batch, width = node.input(0).shape
    keys, heads = cached_decoder_keys(node), node.integer("num_heads", 1)
    static, use_past = _flag(node, 8), _flag(node, 9)
    projected = 0 if static and use_past else node.input(1).shape[0] if static else tokens
    projection = batch * (tokens * node.input(2).count + projected * node.input(3).count)
    pairs = batch * tokens * keys
    return dense(projection + 2 * pairs * width, heads * pairs * flops_per_score(masked=node.has(5)))


def _ordered(node: NodeView) -> NodeCost:
    """Read three weights of their own; five results of products are quantised."""
    batch, tokens, _ = node.input(0).shape
    weights = [node.input(index) for index in (5, 6, 7)]
    heads, made = node.integer("num_heads", 1), weights[2].shape[-1]
    past = node.input_or_none(18)
    keys = tokens + (past.shape[3] if past is not None else 0)
    pairs = batch * tokens * keys
    products = batch * tokens * sum(one.count for one in weights) + pairs * (weights[0].shape[-1] + made)
    around = heads * pairs * (flops_per_score(masked=node.has(17)) + 2 * 3)
    return dense(products, around + 3 * batch * tokens * (sum(one.shape[-1] for one in weights) + made))


RULES: dict[str, CostRule] = {
    "com.microsoft:DecoderAttention": _decoder,
    "com.microsoft:DecoderMaskedMultiHeadAttention": _decoding,
    "com.microsoft:DecoderMaskedSelfAttention": _decoding_projected,
    "com.microsoft:LongformerAttention": _windowed(1, 4, 6),
    "com.microsoft:PackedAttention": _packed,
    "com.microsoft:PackedMultiHeadAttention": _packed_heads,
    "com.microsoft:PagedAttention": _paged,
    "com.microsoft:QOrderedAttention": _ordered,
    "com.microsoft:QOrderedLongformerAttention": _windowed(2, 8, 12),
    "com.microsoft:SparseAttention": _sparse,
}
