"""Queries, keys, heads and channels of an attention op: one reader for each of its spellings.

The default domain's ``Attention`` (opset 23), and those of domain ``com.microsoft`` whose sequences have one length;
:mod:`mtpp.formats.onnx.flops.packed_attention` has the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.formats.onnx.node_view import MalformedNode, NodeView
from mtpp.formats.onnx.values import Array


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of one attention op.

    Attributes
    ----------
    queries, keys
        Positions that ask, and positions that are looked at, the cached ones included.
    heads, key_heads
        Query heads, and key-value heads (fewer where several query heads share one).
    head_size, value_size
        Channels per head of queries and keys, and of values.
    buffer
        Positions that the cache has room for.
    window
        Positions that one query looks at, the last ones before it and its own; all where there is no window.
    """

    batch: int
    queries: int
    keys: int
    heads: int
    key_heads: int
    head_size: int
    value_size: int
    buffer: int
    window: int | None = None

    @property
    def keys_in_window(self) -> int:
        """Positions that a query looks at; masks, causal ones too, do not lessen it."""
        return self.keys if self.window is None else min(self.keys, self.window)

    @property
    def keys_read(self) -> int:
        """Positions that some query looks at: queries are the last positions."""
        return self.keys if self.window is None else min(self.keys, self.window + self.queries - 1)

    @property
    def value_width(self) -> int:
        """Channels of the output over all heads."""
        return self.heads * self.value_size

    @property
    def scores(self) -> int:
        """Number of (query, key) pairs over batch and heads."""
        return self.batch * self.heads * self.queries * self.keys_in_window

    @property
    def macs(self) -> int:
        """Multiply-accumulates of QKᵀ and of scores times V."""
        return self.scores * (self.head_size + self.value_size)


def _heads(node: NodeView, name: str) -> int:
    heads = node.integer(name, 0)
    if heads < 1:
        raise MalformedNode(f"{node.kind} lacks the attribute {name}")
    return heads


def standard_geometry(node: NodeView) -> Geometry:
    """Read the default domain's Attention: Q, K, V of rank 4 (heads apart) or rank 3 (heads side by side)."""
    query, key, value = node.input(0), node.input(1), node.input(2)
    if query.rank == 4:
        batch, heads, queries, head_size = query.shape
        _, key_heads, keys, _ = key.shape
        value_size = value.shape[-1]
    else:
        heads, key_heads = _heads(node, "q_num_heads"), _heads(node, "kv_num_heads")
        batch, queries, width = query.shape
        keys = key.shape[1]
        head_size, value_size = width // heads, value.shape[-1] // key_heads
    past = node.input_or_none(4)
    if past is not None:
        keys += past.shape[2]
    return Geometry(batch, queries, keys, heads, key_heads, head_size, value_size, keys)


def packed_geometry(node: NodeView) -> Geometry:
    """Read com.microsoft Attention and QAttention: one input, and one weight for queries, keys and values."""
    x, weight = node.input(0), node.input(1)
    heads = _heads(node, "num_heads")
    batch, queries, _ = x.shape
    sizes = node.integers("qkv_hidden_sizes") or [weight.shape[-1] // 3] * 3
    quantized = node.kind.endswith("QAttention")
    past = node.input_or_none(8 if quantized else 4)
    cached = past.shape[3] if past is not None else 0
    shared = bool(node.integer("past_present_share_buffer", 0)) and past is not None
    keys, buffer = _cached_keys(queries, cached, shared=shared, past_length=None if quantized else node.value(6))
    return Geometry(batch, queries, keys, heads, heads, sizes[0] // heads, sizes[2] // heads, buffer)


def _cached_keys(queries: int, cached: int, *, shared: bool, past_length: Array | None) -> tuple[int, int]:
    """Return the positions that are looked at, and the room for them; a shared buffer counts as full if nobody says."""
    if not shared:
        return queries + cached, queries + cached
    if past_length is None or not past_length.size:
        return cached, cached
    return min(cached, queries + int(past_length.reshape(-1)[0])), cached


def multi_head_geometry(node: NodeView) -> Geometry:
    """Read com.microsoft MultiHeadAttention: separate, packed (QKV in one) or half packed (KV in one) inputs."""
    query = node.input(0)
    heads = _heads(node, "num_heads")
    key, value = node.input_or_none(1), node.input_or_none(2)
    batch, queries = query.shape[:2]
    if query.rank == 5:
        head_size = value_size = query.shape[4]
        keys = queries
    else:
        head_size = query.shape[2] // heads
        value_size, keys = head_size, queries
        if key is not None and key.rank == 5:
            keys = key.shape[1]
        elif key is not None:
            keys = key.shape[2] if key.rank == 4 else key.shape[1]
        if value is not None:
            value_size = value.shape[3] if value.rank == 4 else value.shape[2] // heads
    past, buffer = node.input_or_none(6), keys
    if past is not None and (key is None or key.rank != 4):
        keys, buffer = _cached_keys(keys, past.shape[2], shared=node.has(8), past_length=node.value(8))
    return Geometry(batch, queries, keys, heads, heads, head_size, value_size, buffer)


def decoding_geometry(node: NodeView) -> Geometry:
    """Read com.microsoft DecoderMaskedMultiHeadAttention: one new position, cached ones or those of an encoder."""
    query, key, value = node.input(0), node.input_or_none(1), node.input_or_none(2)
    heads = _heads(node, "num_heads")
    batch, queries, width = query.shape
    head_size = width // (heads if key is not None else 3 * heads)
    value_size = head_size
    if value is not None:
        value_size = value.shape[3] if value.rank == 4 else value.shape[2] // heads
    if key is not None and key.rank == 4:
        keys = buffer = key.shape[2]
    else:
        past = node.input_or_none(5)
        shared = bool(node.integer("past_present_share_buffer", 0)) and past is not None
        cached = past.shape[2] if past is not None else 0
        keys, buffer = _cached_keys(queries, cached, shared=shared, past_length=node.value(7))
    return Geometry(batch, queries, keys, heads, heads, head_size, value_size, buffer)


def sparse_geometry(node: NodeView) -> Geometry:
    """Read com.microsoft SparseAttention: caches of a fixed length, which counts as full if nobody says."""
    query, key, past = node.input(0), node.input_or_none(1), node.input(3)
    heads, key_heads = _heads(node, "num_heads"), _heads(node, "kv_num_heads")
    batch, queries, width = query.shape
    head_size = width // (heads if key is not None else heads + 2 * key_heads)
    buffer, total = past.shape[2], node.value(7)
    keys = min(buffer, int(total.reshape(-1)[0])) if total is not None and total.size else buffer
    return Geometry(batch, queries, keys, heads, key_heads, head_size, head_size, buffer)


def group_query_geometry(node: NodeView) -> Geometry:
    """Read com.microsoft GroupQueryAttention; without a known total length the cache counts as full."""
    query, key, past = node.input(0), node.input_or_none(1), node.input_or_none(3)
    heads, key_heads = _heads(node, "num_heads"), _heads(node, "kv_num_heads")
    batch, queries, width = query.shape
    head_size = width // (heads if key is not None else heads + 2 * key_heads)
    cached = past.shape[2] if past is not None else 0
    total = node.value(6)
    keys = int(total.reshape(-1)[0]) if total is not None and total.size else queries + cached
    window = node.integer("local_window_size", -1)
    return Geometry(
        batch,
        queries,
        keys,
        heads,
        key_heads,
        head_size,
        head_size,
        max(keys, cached),
        window if window > 0 else None,
    )
