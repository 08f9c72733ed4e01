"""Models of many parallel branches to be trained, as in the evaluation of GraphPipe (Jeon et al. 2024, appendix A.2).

Branches that do not meet before the end have (layers + 1) ^ branches downsets: what makes wide models hard to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mtpp.datasets.sizes import check_graph_size, check_least
from mtpp.datasets.training_network import TrainingNetwork, Work
from mtpp.errors import InputError
from mtpp.inference.system import System, load_system
from mtpp.ranges import MOST_MICRO_BATCH
from mtpp.training.model import Layer, TrainingModel

WIDTH = 4096
"""Of all feed-forward layers of DLRM and CANDLE-Uno."""

TOP_LAYERS = 4
"""Feed-forward layers behind the join of DLRM and CANDLE-Uno: the paper does not say how many, only how wide."""


def multi_modal_transformer(
    branches: int = 4,
    layers: int = 8,
    *,
    micro_batch: int = 2,
    sequence: int = 256,
    hidden: int = 1024,
    heads: int = 16,
    feed_forward: int = 4096,
    operators: bool = False,
    seed: int | None = None,
    network: TrainingNetwork | None = None,
) -> TrainingModel:
    """Return branches of Transformer layers that are concatenated at the end.

    Parameters
    ----------
    branches, layers
        Branches, and Transformer layers of each; at least 1.
    micro_batch
        Samples in a micro-batch.
    sequence, hidden, heads, feed_forward
        Tokens of a sample, width of a token, attention heads, and width of the feed-forward layers.
    operators
        Layers are attention and two feed-forward layers each, in place of whole Transformer layers.
    seed
        Draws the length of each branch's sequences from half to one and a half of *sequence*, so that no two branches
        need be alike; None: all are.
    network
        What layers are added to; None: one of the system ``reference``.
    """
    _check(branches, layers, branches * layers * (3 if operators else 1))
    net = network or TrainingNetwork(load_system())
    ends = []
    for branch, length in enumerate(_sizes(branches, sequence, seed)):
        tokens = micro_batch * length
        attention = _attention(tokens, length, hidden, heads)
        up, down = _linear(tokens, hidden, feed_forward), _linear(tokens, feed_forward, hidden)
        whole = _together(attention, up, down, tokens * hidden)
        flow: list[int] = []
        for i in range(layers):
            name = f"branch {branch} layer {i}"
            read = 0 if flow else tokens * hidden
            if operators:
                flow = [net.add(f"{name} attention", flow, tokens * hidden, attention, read=read)]
                flow = [net.add(f"{name} up", flow, tokens * feed_forward, up)]
                flow = [net.add(f"{name} down", flow, tokens * hidden, down)]
            else:
                flow = [net.add(name, flow, tokens * hidden, whole, read=read)]
        ends += flow
    _join(net, ends)
    return net.model(_name("mmt", branches, layers, seed) + ("-operators" if operators else ""))


def dlrm(
    dense: int = 7,
    sparse: int = 7,
    layers: int = 4,
    *,
    micro_batch: int = 64,
    entries: int = 1_000_000,
    embedding: int = 64,
    bag: int = 100,
    top: int = TOP_LAYERS,
    seed: int | None = None,
    network: TrainingNetwork | None = None,
) -> TrainingModel:
    """Return a recommendation model: branches of feed-forward layers and embeddings, joined, and layers behind that.

    Parameters
    ----------
    dense, sparse
        Branches of *layers* feed-forward layers, and of one bag of embeddings each; *dense* at least 1.
    entries, embedding, bag
        Entries of a table, width of an embedding, and embeddings of a sample, which are concatenated.
    top
        Feed-forward layers behind the join.
    seed
        Draws the width of each dense branch from half to one and a half of :data:`WIDTH`; None: all have that.
    network
        As for :func:`multi_modal_transformer`.
    """
    check_least("branches of embeddings", sparse, 0)
    check_least("layers behind the join", top, 0)
    _check(dense, layers, dense * layers + sparse + top)
    net = network or TrainingNetwork(load_system())
    ends = [_feed_forward(net, f"dense {b}", layers, micro_batch, w) for b, w in enumerate(_sizes(dense, WIDTH, seed))]
    for branch in range(sparse):
        output = micro_batch * bag * embedding
        # Rows that are looked up are read and written; no device needs more than its part of the table.
        look_up = Work(0, 2 * output + micro_batch * bag, entries * embedding, output, output)
        ends.append(net.add(f"sparse {branch} embedding", [], output, look_up, read=micro_batch * bag))
    _top(net, _join(net, ends), micro_batch, top)
    return net.model(_name("dlrm", dense, layers, seed) + f"-sparse-{sparse}")


def candle_uno(
    branches: int = 7,
    layers: int = 4,
    *,
    micro_batch: int = 256,
    top: int = TOP_LAYERS,
    seed: int | None = None,
    network: TrainingNetwork | None = None,
) -> TrainingModel:
    """Return branches of feed-forward layers, joined, and *top* layers behind that; the rest as for :func:`dlrm`."""
    check_least("layers behind the join", top, 0)
    _check(branches, layers, branches * layers + top)
    net = network or TrainingNetwork(load_system())
    widths = _sizes(branches, WIDTH, seed)
    ends = [_feed_forward(net, f"branch {b}", layers, micro_batch, width) for b, width in enumerate(widths)]
    _top(net, _join(net, ends), micro_batch, top)
    return net.model(_name("candle-uno", branches, layers, seed))


FAMILIES: dict[str, Callable[..., TrainingModel]] = {
    "mmt": multi_modal_transformer,
    "dlrm": dlrm,
    "candle-uno": candle_uno,
}
"""The models by name, all with sizes of their own."""

MICRO_BATCH_SIZES = {
    "mmt": tuple(2**i for i in range(6)),
    "dlrm": tuple(2**i for i in range(4, 12)),
    "candle-uno": tuple(2**i for i in range(6, 13)),
}
"""Samples of micro-batches that :func:`multi_branch_model` has costs of."""

_MOST_SIZES = 64


def multi_branch_model(
    family: str, *, micro_batch_sizes: Sequence[int] | None = None, system: System | None = None, **sizes: Any
) -> TrainingModel:
    """Return a model of one of :data:`FAMILIES` with costs for several sizes of micro-batches, without recomputation.

    Parameters
    ----------
    micro_batch_sizes
        Samples that a device may take at once; None: those of :data:`MICRO_BATCH_SIZES`. Times and bytes of the model
        are of the least of them.
    system
        Peak rates that times follow; None: those of the preset ``v100``.
    sizes
        ``branches`` (of DLRM: ``dense`` and ``sparse``), ``layers`` and ``seed`` of the family.

    Raises
    ------
    InputError
        If a number is below 1, or too large.

    Notes
    -----
    A roofline of whole layers, which takes the place of measured times: a pass takes what its FLOPs take at peak, or
    its parameters and activations at the memory's bandwidth, whichever is longer. Small micro-batches are inefficient
    for they read all parameters.
    """
    wanted = sorted(set(MICRO_BATCH_SIZES[family] if micro_batch_sizes is None else micro_batch_sizes))
    if not wanted or wanted[0] < 1 or wanted[-1] > MOST_MICRO_BATCH or len(wanted) > _MOST_SIZES:
        problem = f"sizes of micro-batches must be up to {_MOST_SIZES} whole numbers from 1 to {MOST_MICRO_BATCH:,}"
        raise InputError(problem, parameter="micro_batch_sizes", remedy="write 1,2,4")
    machine = system or load_system("v100")
    models = [
        FAMILIES[family](micro_batch=size, network=TrainingNetwork(machine, micro_batch_size=size), **sizes)
        for size in wanted
    ]
    layers = [_all_sizes(same) for same in zip(*(model.layers for model in models), strict=True)]
    return replace(models[0], layers=layers)


def _all_sizes(layers: Sequence[Layer]) -> Layer:
    """Return the first of some layers, which differ in the size of their micro-batch, with the costs of all."""
    first = layers[0]
    tables = [layer.configurations[1][0].micro_batches for layer in layers]
    costs = {size: one for table in tables for size, one in table.items()}
    return replace(
        first, configurations={**first.configurations, 1: [replace(first.configurations[1][0], micro_batches=costs)]}
    )


def _check(branches: int, layers: int, all_layers: int) -> None:
    check_least("branches", branches, 1)
    check_least("layers in a branch", layers, 1)
    check_graph_size(all_layers, all_layers + branches)


def _name(kind: str, branches: int, layers: int, seed: int | None) -> str:
    return f"{kind}-{branches}x{layers}" + ("" if seed is None else f"-{seed}")


def _sizes(branches: int, size: int, seed: int | None) -> list[int]:
    if seed is None:
        return [size] * branches
    drawn = np.random.default_rng([seed, branches]).integers(size // 2, 3 * size // 2, branches, endpoint=True)
    return [int(one) for one in drawn]


def _linear(rows: int, width_in: int, width_out: int) -> Work:
    weights = width_in * width_out
    # Devices hold columns: the output is gathered forward, what goes back to the input is summed.
    return Work(
        flops=2 * rows * weights,
        touched=rows * (width_in + width_out) + weights,
        params=weights,
        kept=rows * width_out,
        reduced=rows * max(width_in, width_out),
    )


def _attention(tokens: int, length: int, hidden: int, heads: int) -> Work:
    weights = 4 * hidden * hidden
    scores = tokens * length * heads
    return Work(
        flops=2 * tokens * weights + 4 * tokens * length * hidden,
        touched=6 * tokens * hidden + 4 * scores + weights,
        params=weights,
        kept=5 * tokens * hidden + 2 * scores,
        reduced=tokens * hidden,
    )


def _together(attention: Work, up: Work, down: Work, reduced: int) -> Work:
    """Return a Transformer layer: attention and feed-forward part sum up once each, as in Megatron-LM."""
    parts = (attention, up, down)
    return Work(
        flops=sum(part.flops for part in parts),
        touched=sum(part.touched for part in parts),
        params=sum(part.params for part in parts),
        kept=sum(part.kept for part in parts),
        reduced=2 * reduced,
    )


def _feed_forward(net: TrainingNetwork, name: str, layers: int, rows: int, width: int) -> int:
    work = _linear(rows, width, width)
    flow = net.add(f"{name} layer 0", [], rows * width, work, read=rows * width)
    for i in range(1, layers):
        flow = net.add(f"{name} layer {i}", [flow], rows * width, work)
    return flow


def _join(net: TrainingNetwork, ends: Sequence[int]) -> int:
    size = sum(net.sizes[end] for end in ends)
    return net.add("concatenation", ends, size, Work(0, 2 * size, 0, 0, 0))


def _top(net: TrainingNetwork, join: int, rows: int, layers: int) -> None:
    flow, width = join, net.sizes[join] // rows
    for i in range(layers):
        flow = net.add(f"top {i}", [flow], rows * WIDTH, _linear(rows, width, WIDTH))
        width = WIDTH
