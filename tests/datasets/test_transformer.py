"""Transformers have the ops, shapes and parameters of the architecture."""

from __future__ import annotations

import pytest

from mtpp.datasets.roofline_network import ELEMENT_BYTES
from mtpp.datasets.transformer import transformer
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device
from mtpp.names import TRANSFORMERS


def op_count(kind: str, layers: int) -> int:
    """Return how many ops there should be with joint heads."""
    embedding, normalisation, mask, output = 2, 1, 1, 1
    encoder = embedding + 14 * layers + normalisation
    decoder = embedding + mask + (15 if kind == "decoder" else 24) * layers + normalisation + output
    return {"encoder": encoder, "decoder": decoder, "encoder-decoder": encoder + decoder}[kind]


def readers(graph: CostGraph, kind: str) -> list[int]:
    """Return how many ops read each output of ops of a kind."""
    return [
        len(graph.tensor_consumers(t))
        for t in range(graph.tensor_count)
        if graph.op_kinds[graph.tensor_producer[t]] == kind
    ]


@pytest.mark.parametrize("kind", TRANSFORMERS)
@pytest.mark.parametrize("layers", [1, 2, 12])
def test_ops_of_each_kind(kind: str, layers: int) -> None:
    """Counts are as documented, edges lead forward, and one op ends it all."""
    graph = transformer(layers, kind=kind)
    assert graph.op_count == graph.tensor_count == op_count(kind, layers)
    sources, targets = graph.edges
    assert (sources < targets).all()
    unread = [t for t in range(graph.tensor_count) if not len(graph.tensor_consumers(t))]
    assert unread == [graph.op_count - 1]


def test_gpt2_small() -> None:
    """Twelve layers of GPT-2's sizes have its 124 million parameters, but for norms and biases and a tied output."""
    graph = transformer(12, hidden=768, heads=12, sequence=1024, vocabulary=50257)
    embeddings, positions = 50257 * 768, 1024 * 768
    assert int(graph.param_bytes.sum()) == ELEMENT_BYTES * (2 * embeddings + positions + 12 * 12 * 768 * 768)
    # 2 FLOPs per parameter and token, and twice 2 · s² · h per layer for scores and sums.
    flops = 2 * 1024 * (embeddings + 12 * 12 * 768 * 768) + 12 * 4 * 1024**2 * 768
    products = sum(int(w) for w, kind in zip(graph.work, graph.op_kinds, strict=True) if kind == "MatMul")
    assert products >= load_device().modelled_work_ps(flops, 0)


def test_masks_and_memories_are_read_by_every_layer() -> None:
    """The causal mask has a reader per decoder layer, and the encoder's output two, for keys and for values."""
    assert readers(transformer(5), "Trilu") == [5]
    assert readers(transformer(5, kind="encoder-decoder"), "Trilu") == [5]
    assert max(readers(transformer(5, kind="encoder-decoder"), "LayerNormalization")) == 10
    assert readers(transformer(5, kind="encoder"), "Trilu") == []


def test_split_heads() -> None:
    """Each head's ops come once per head, with the same FLOPs and parameters in all, and a Concat joins them."""
    joint = transformer(3, hidden=64, heads=4, sequence=32, vocabulary=100)
    split = transformer(3, hidden=64, heads=4, sequence=32, vocabulary=100, split_heads=True)
    assert split.op_count == joint.op_count + 3 * (4 * 7 + 1 - 7)
    assert split.param_bytes.sum() == joint.param_bytes.sum()
    assert readers(split, "Concat") == [1] * 3
    assert split.op_kinds.count("Softmax") == 4 * joint.op_kinds.count("Softmax")
    softmax = {int(split.tensor_bytes[v]) for v, kind in enumerate(split.op_kinds) if kind == "Softmax"}
    assert softmax == {32 * 32 * ELEMENT_BYTES}


def test_embeddings_read_a_row_per_token() -> None:
    """The work of the lookup does not depend on the vocabulary; its parameters do."""
    small, large = (transformer(1, vocabulary=size) for size in (1000, 100_000))
    assert small.op_kinds[0] == large.op_kinds[0] == "Gather"
    assert small.work[0] == large.work[0]
    assert 100 * small.param_bytes[0] == large.param_bytes[0]


def test_same_arguments_same_graph() -> None:
    """Nothing is random, and names tell apart what differs."""
    assert transformer(3).work == transformer(3).work
    shapes = [{}, {"kind": "encoder"}, {"hidden": 384}, {"heads": 6}, {"sequence": 64}, {"vocabulary": 9}]
    names = {transformer(2, **shape).name for shape in [*shapes, {"split_heads": True}]}
    assert len(names) == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layers": 0}, "0 for layers"),
        ({"sequence": 0}, "0 for sequence"),
        ({"heads": 5}, "5 heads cannot share a hidden size of 768"),
        ({"kind": "cnn"}, "unknown kind of transformer 'cnn'"),
        ({"layers": 10**7}, "too large"),
    ],
)
def test_what_cannot_be_made(arguments: dict[str, int], words: str) -> None:
    """Impossible sizes are refused in a few words."""
    with pytest.raises(InputError, match=words):
        transformer(**{"layers": 1, **arguments})
