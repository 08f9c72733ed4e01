"""Transformers op by op, with the shapes of real ones: encoders, decoders, and both with cross-attention."""

from __future__ import annotations

from dataclasses import dataclass

from mtpp.datasets.roofline_network import RooflineNetwork
from mtpp.datasets.sizes import check_graph_size, check_least
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device
from mtpp.names import TRANSFORMERS

MLP_FACTOR = 4
NORMALISATION_COST = ACTIVATION_COST = 8
SOFTMAX_COST = 5
"""FLOPs per element."""

_MOST_OPS_OF_A_LAYER = 24


def transformer(
    layers: int,
    *,
    kind: str = "decoder",
    hidden: int = 768,
    heads: int = 12,
    sequence: int = 128,
    vocabulary: int = 32_000,
    split_heads: bool = False,
) -> CostGraph:
    """Return a transformer of *layers* equal layers (of each sort, for an encoder with a decoder).

    Parameters
    ----------
    kind
        One of :data:`mtpp.names.TRANSFORMERS`: self-attention with a causal mask, without one, or an encoder whose
        output the cross-attention of every decoder layer reads.
    hidden, heads, sequence, vocabulary
        Width of the residual stream, attention heads (a divisor of it), tokens at once, and rows of the embeddings.
    split_heads
        Whether each head has ops of its own, joined by a Concat, as when heads are spread over devices; otherwise one
        op computes all heads.

    Raises
    ------
    InputError
        If a number is below 1, *heads* does not divide *hidden*, or *kind* is unknown.

    Notes
    -----
    Vaswani et al. (2017), Attention Is All You Need, with normalisation before each part and residuals around it, as in
    GPT-2; the feed-forward network is 4 · hidden wide. Nothing is random. An encoder layer has 14 ops, a decoder layer
    15 (the causal mask, one tensor that all of them read, is added to the scores), one with cross-attention 24. With
    split heads each head has the 6 ops (7 if masked) that all have together otherwise. Embeddings read one row per
    token of their parameters, and reshapes are free and left out. Costs are those of
    :class:`~mtpp.datasets.roofline_network.RooflineNetwork` on the preset ``reference``, in picoseconds.
    O(ops) time and memory.
    """
    if kind not in TRANSFORMERS:
        raise InputError(f"unknown kind of transformer {kind!r}", remedy=f"use one of {', '.join(TRANSFORMERS)}")
    sizes = {"layers": layers, "hidden": hidden, "heads": heads, "sequence": sequence, "vocabulary": vocabulary}
    for what, value in sizes.items():
        check_least(f"for {what}", value, 1)
    if hidden % heads:
        raise InputError(f"{heads} heads cannot share a hidden size of {hidden}", remedy="choose a divisor")
    per_layer = 2 * _MOST_OPS_OF_A_LAYER + (14 * heads if split_heads else 0)
    check_graph_size(layers * per_layer, 2 * layers * per_layer)
    model = _Transformer(RooflineNetwork(load_device()), hidden, heads, sequence, vocabulary, split_heads)
    memory = None
    if kind != "decoder":
        memory = model.encoder(layers)
    if kind != "encoder":
        model.decoder(layers, memory)
    name = f"transformer-{kind}-l{layers}-h{hidden}-a{heads}-s{sequence}-v{vocabulary}"
    metadata = {"generator": "transformer", "kind": kind, **sizes, "split_heads": split_heads}
    return model.net.to_graph(name + ("-split" if split_heads else ""), metadata)


@dataclass(frozen=True)
class _Transformer:
    """A network to which layers are added; what methods take and give back are ops."""

    net: RooflineNetwork
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    split_heads: bool

    def encoder(self, layers: int) -> int:
        x = self.embedding()
        for _ in range(layers):
            x = self.feed_forward(self.attention(x))
        return self.normalised(x)

    def decoder(self, layers: int, memory: int | None) -> int:
        x = self.embedding()
        size = self.sequence
        mask = self.net.add("Trilu", [], rows=size, columns=size, flops=0)
        for _ in range(layers):
            x = self.attention(x, mask=mask)
            if memory is not None:
                x = self.attention(x, memory=memory)
            x = self.feed_forward(x)
        return self.net.linear(self.normalised(x), self.vocabulary)

    def embedding(self) -> int:
        tokens = self.net.add(
            "Gather", [], rows=self.sequence, columns=self.hidden, flops=0,
            params=self.vocabulary * self.hidden, params_read=self.sequence * self.hidden,
        )  # fmt: skip
        elements = self.sequence * self.hidden
        return self.net.add("Add", [tokens], rows=self.sequence, columns=self.hidden, flops=elements, params=elements)

    def normalised(self, x: int) -> int:
        return self.net.elementwise("LayerNormalization", [x], NORMALISATION_COST)

    def attention(self, x: int, *, mask: int | None = None, memory: int | None = None) -> int:
        """Add attention of x to itself, or to *memory*, and the residual around it."""
        normal = self.normalised(x)
        source = normal if memory is None else memory
        if self.split_heads:
            parts = [self.head(normal, source, mask, 1) for _ in range(self.heads)]
            joined = self.net.add("Concat", parts, rows=self.sequence, columns=self.hidden, flops=0)
        else:
            joined = self.head(normal, source, mask, self.heads)
        return self.net.elementwise("Add", [x, self.net.linear(joined, self.hidden)])

    def head(self, x: int, source: int, mask: int | None, heads: int) -> int:
        """Add *heads* heads at once: their queries from x, keys and values from *source*."""
        net, tokens = self.net, self.sequence
        columns = self.hidden // self.heads * heads
        query, key, value = net.linear(x, columns), net.linear(source, columns), net.linear(source, columns)
        flops = 2 * tokens * tokens * columns
        scores = net.add("MatMul", [query, key], rows=heads * tokens, columns=tokens, flops=flops)
        if mask is not None:
            scores = net.elementwise("Add", [scores, mask])
        weights = net.elementwise("Softmax", [scores], SOFTMAX_COST)
        return net.add("MatMul", [weights, value], rows=tokens, columns=columns, flops=flops)

    def feed_forward(self, x: int) -> int:
        wide = self.net.linear(self.normalised(x), MLP_FACTOR * self.hidden)
        active = self.net.elementwise("Gelu", [wide], ACTIVATION_COST)
        return self.net.elementwise("Add", [x, self.net.linear(active, self.hidden)])
