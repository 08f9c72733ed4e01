"""Op-level networks of any size: the blocks that real models are made of, strung together at random."""

from __future__ import annotations

import numpy as np

from mtpp.datasets.roofline_network import ELEMENT_BYTES, RooflineNetwork
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Tensor
from mtpp.machine.presets import load_device

HEADS = 8
MLP_FACTOR = 4
ROWS = (64, 196, 784, 1024, 3136)
COLUMNS = (64, 128, 256, 512, 1024)
RESIZE_PROBABILITY = 0.08
SKIP_PROBABILITY = 0.15
MOST_SKIPS = 6
SECOND_OUTPUT_COLUMNS = 2
FARTHEST_SECOND_READER = 40


def layered_network(n: int, seed: int = 0, *, tensors: int | None = None) -> CostGraph:
    """Draw a network of exactly *n* ops, costs in picoseconds on the preset ``reference``.

    Parameters
    ----------
    n
        Number of ops, at least 1; made for 10³ to 10⁶.
    seed
        Same arguments give the same network (for one version of NumPy).
    tensors
        Number of tensors, at least *n*; by default *n*, one per op. The others are second outputs.

    Raises
    ------
    InputError
        If *n* is below 1, or *tensors* below *n*.

    Notes
    -----
    A chain of blocks drawn from three kinds: attention with a residual branch around it and around its
    feed-forward half (queries, keys and values each fan out to eight heads), a residual bottleneck of three
    convolutions, and an inception-like module of parallel branches. Now and then the activations change shape, or are
    kept aside and joined again several blocks later as in a U-Net. The last ops, too few for a block, are a chain.
    Work is the roofline time; tensors carry bytes, so that the link's bandwidth remains the system's. Second outputs
    are what normalisations and dropouts keep beside their result, a few numbers per row, for one of the next ops.

    O(n) time and memory.
    """
    if n < 1:
        raise InputError(f"a network of {n} ops", remedy="ask for at least 1")
    if tensors is not None and tensors < n:
        raise InputError(f"{tensors} tensors of {n} ops", remedy="ask for at least one per op")
    random = np.random.default_rng([seed, n])
    net = RooflineNetwork(load_device())
    flow = net.add("Conv", [], rows=784, columns=64, flops=2 * 784 * 64 * 147, params=64 * 147)
    skips: list[int] = []
    blocks = (_attention, _bottleneck, _branches)
    while n - net.size >= _LARGEST_BLOCK:
        flow = blocks[random.integers(len(blocks))](net, flow, random)
        if random.random() < RESIZE_PROBABILITY:
            flow = net.linear(flow, int(random.choice(COLUMNS)), rows=int(random.choice(ROWS)), kind="Conv")
        if random.random() < SKIP_PROBABILITY:
            if len(skips) == MOST_SKIPS or (skips and random.random() < 0.5):
                flow = _concat(net, [flow, skips.pop(int(random.integers(len(skips))))])
            elif flow not in skips:
                skips.append(flow)
    while net.size < n:
        flow = net.elementwise("Relu", [flow])
    seconds = _second_outputs(net, (tensors or n) - n, np.random.default_rng([seed, n, tensors or n]))
    return net.to_graph(f"layered-{n}-{seed}", {"generator": "layered", "seed": seed}, seconds)


def _second_outputs(net: RooflineNetwork, count: int, random: np.random.Generator) -> list[Tensor]:
    last = net.size - 1
    producers = np.sort(random.integers(max(1, last), size=count)).tolist()
    distances = random.integers(1, FARTHEST_SECOND_READER + 1, size=count).tolist()
    return [
        Tensor(
            f"s{i}",
            net.ops[v].name,
            (net.ops[min(v + distance, last)].name,) if v < last else (),
            net.rows[v] * SECOND_OUTPUT_COLUMNS * ELEMENT_BYTES,
        )
        for i, (v, distance) in enumerate(zip(producers, distances, strict=True))
    ]


def _concat(net: RooflineNetwork, inputs: list[int]) -> int:
    # A kept tensor may have another number of rows; joined by size, it adds the columns that its elements need.
    rows = net.rows[inputs[0]]
    elements = sum(net.rows[u] * net.columns[u] for u in inputs)
    joined = net.add("Concat", inputs, rows=rows, columns=max(1, elements // rows), flops=0)
    return net.linear(joined, net.columns[inputs[0]], kind="Conv")


def _attention(net: RooflineNetwork, x: int, random: np.random.Generator) -> int:
    rows, columns = net.rows[x], net.columns[x]
    head = columns // HEADS
    normal = net.elementwise("LayerNormalization", [x], cost=8)
    query, key, value = (net.linear(normal, columns) for _ in range(3))
    heads = []
    for _ in range(HEADS):
        scores = net.add("MatMul", [query, key], rows=rows, columns=rows, flops=2 * rows * rows * head)
        weights = net.elementwise("Softmax", [scores], cost=5)
        heads.append(net.add("MatMul", [weights, value], rows=rows, columns=head, flops=2 * rows * rows * head))
    joined = net.add("Concat", heads, rows=rows, columns=columns, flops=0)
    x = net.elementwise("Add", [x, net.linear(joined, columns)])
    normal = net.elementwise("LayerNormalization", [x], cost=8)
    hidden = net.elementwise("Gelu", [net.linear(normal, MLP_FACTOR * columns)], cost=8)
    return net.elementwise("Add", [x, net.linear(hidden, columns)])


def _bottleneck(net: RooflineNetwork, x: int, random: np.random.Generator) -> int:
    columns = net.columns[x]
    y = net.elementwise("Relu", [net.linear(x, max(1, columns // 4), kind="Conv")])
    y = net.elementwise("Relu", [net.linear(y, max(1, columns // 4), kind="Conv", taps=9)])
    y = net.linear(y, columns, kind="Conv")
    shortcut = net.linear(x, columns, kind="Conv") if random.random() < 0.25 else x
    return net.elementwise("Relu", [net.elementwise("Add", [y, shortcut])])


def _branches(net: RooflineNetwork, x: int, random: np.random.Generator) -> int:
    columns = net.columns[x]
    ends = []
    for length in random.integers(1, 4, size=4).tolist():
        y = x
        for depth in range(length):
            taps = 9 if depth else 1
            y = net.elementwise("Relu", [net.linear(y, max(1, columns // 4), kind="Conv", taps=taps)])
        ends.append(y)
    return net.add("Concat", ends, rows=net.rows[x], columns=columns, flops=0)


_LARGEST_BLOCK = 3 * HEADS + 16 + 4
"""No block, with the change of shape and the join that may follow it, has more ops than this."""
