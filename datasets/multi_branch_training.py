"""Models of many parallel branches to be trained, as in the evaluation of GraphPipe (Jeon et al. 2024, appendix A.2).

Branches that do not meet before the end have (layers + 1) ^ branches downsets: what makes wide models hard to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtpp.datasets.sizes import check_graph_size, check_least
from mtpp.errors import InputError
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.presets import load_device
from mtpp.ranges import MOST_MICRO_BATCH
from mtpp.training.model import Configuration, Edge, Layer, SampleCosts, TrainingModel

WIDTH = 4096
"""Of all feed-forward layers of DLRM and CANDLE-Uno."""

TOP_LAYERS = 4
"""Feed-forward layers behind the join of DLRM and CANDLE-Uno: the paper does not say how many, only how wide."""

ELEMENT_BYTES = 4
"""Parameters and activations are float32."""

TENSOR_PARALLEL_BANDWIDTH = 300 * 10**9
"""Bytes a second between devices that share a layer: NVSwitch (Tarnawski et al. 2021, section 5)."""

DEGREES = (1, 2, 4, 8)
"""Degrees of tensor parallelism that layers have configurations for."""

RUNS, RUNS_RECOMPUTING = 3, 4
"""Forward and backward pass take as much as three forward passes; recomputation is one more."""

PLAIN, RECOMPUTING = "vanilla", "activation recomp"
"""The configurations of each layer for each degree, by their names in Piper's files."""


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
    net = network or TrainingNetwork(load_device())
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
    net = network or TrainingNetwork(load_device())
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
    net = network or TrainingNetwork(load_device())
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
    family: str, *, micro_batch_sizes: Sequence[int] | None = None, system: Device | None = None, **sizes: Any
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
    machine = system or load_device("v100")
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


@dataclass(frozen=True)
class Work:
    """What a layer does in the forward pass of one micro-batch, on one device; all counts are of elements.

    Attributes
    ----------
    flops
        Operations.
    touched
        Elements read and written: inputs, parameters in use, results on the way, output.
    params
        Parameters that it holds.
    kept
        What is kept for the backward pass beside the inputs: results on the way.
    reduced
        Elements summed over the t devices that share the layer, forward and as many backward.
    divisible
        Whether t devices can share it; otherwise each does all of it.
    """

    flops: int
    touched: int
    params: int
    kept: int
    reduced: int
    divisible: bool = True


@dataclass
class TrainingNetwork:
    """Layers in the order of their making, whose outputs have so many elements for one micro-batch.

    Times on *system* are in picoseconds, by the roofline: three times the forward pass, four times with recomputation,
    divided by t, and what the devices tell each other: a ring moves 2 · (t - 1) / t of what is summed. Memory is that
    of PipeDream-2BW with two versions of the parameters: without recomputation a layer keeps its inputs and what is on
    the way for each micro-batch in flight; with it only the inputs, and once what is on the way, as in Piper's files.
    Where t > 1, tensors from and to other stages have to reach all t devices.

    Attributes
    ----------
    micro_batch_size
        Samples of the micro-batch, for models that have costs by size: a layer has no recomputation then, for what is
        made again would depend on the size. Its time is that of both passes, each rounded up, as is its cost for so
        many samples on one device. None: costs of one size alone.
    """

    system: Device
    degrees: Sequence[int] = DEGREES
    micro_batch_size: int | None = None
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, name: str, inputs: Sequence[int], output: int, work: Work, *, read: int = 0) -> int:
        """Add a layer and return its number.

        Parameters
        ----------
        inputs
            Layers whose outputs it needs, all different.
        output
            Elements that it makes.
        read
            Elements of the model's own input that it reads.
        """
        number = len(self.layers)
        kept_inputs = (read + sum(self.sizes[u] for u in inputs)) * ELEMENT_BYTES
        recomputes = (False, True) if self.micro_batch_size is None else (False,)
        configurations = {
            t: [self._configuration(inputs, work, kept_inputs, t, recompute) for recompute in recomputes]
            for t in self.degrees
            if t == 1 or work.divisible
        }
        self.layers.append(Layer(number, name, configurations))
        self.sizes.append(output)
        self.edges += [Edge(u, number, self.sizes[u] * ELEMENT_BYTES) for u in inputs]
        return number

    def model(self, name: str) -> TrainingModel:
        """Return what has been made, checked; only now is it known who reads what each layer makes."""
        readers: list[list[int]] = [[] for _ in self.layers]
        for edge in self.edges:
            readers[int(edge.source)].append(int(edge.target))
        layers = []
        for v, layer in enumerate(self.layers):
            by_degree = {
                t: [self._handing_back(v, one, t, readers[v]) for one in here]
                for t, here in layer.configurations.items()
            }
            layers.append(Layer(v, layer.name, by_degree))
        return TrainingModel(name, "ps", layers, self.edges, micro_batch_size=self.micro_batch_size)

    def _configuration(
        self, inputs: Sequence[int], work: Work, kept_inputs: int, t: int, recompute: bool
    ) -> Configuration:
        runs = RUNS_RECOMPUTING if recompute else RUNS
        time = self._time(work, runs, t)
        forward, backward = self._time(work, 1, t), self._time(work, runs - 1, t)
        if self.micro_batch_size is not None:
            time = forward + backward
        # Sums are over in the forward pass, in the backward pass, and in the forward pass done again.
        moved = (runs - 1) * 2 * (t - 1) * work.reduced * ELEMENT_BYTES
        time += Link(TENSOR_PARALLEL_BANDWIDTH).streaming_ps(moved, t)
        params = -(-work.params * ELEMENT_BYTES // t)
        kept = -(-work.kept * ELEMENT_BYTES // t)
        memory_a = kept_inputs + (0 if recompute else kept)
        sizes = {}
        if self.micro_batch_size is not None and t == 1:
            sizes[self.micro_batch_size] = SampleCosts(forward, backward, memory_a)
        return Configuration(
            id=RECOMPUTING if recompute else PLAIN,
            time_per_sample=time,
            parameter_bytes=params,
            memory_a=memory_a,
            memory_b=2 * params + (kept if recompute else 0),
            forward_sync_bytes={u: self.sizes[u] * ELEMENT_BYTES if t > 1 else 0 for u in inputs},
            recomputes=recompute,
            micro_batches=sizes,
        )

    def _time(self, work: Work, runs: int, t: int) -> int:
        """Return the picoseconds of so many forward passes of a layer, divided over t devices."""
        return self.system.modelled_work_ps(-(-runs * work.flops // t), -(-runs * work.touched * ELEMENT_BYTES // t))

    def _handing_back(self, number: int, one: Configuration, t: int, readers: Sequence[int]) -> Configuration:
        size = self.sizes[number] * ELEMENT_BYTES if t > 1 else 0
        return replace(one, backward_sync_bytes=dict.fromkeys(readers, size))
