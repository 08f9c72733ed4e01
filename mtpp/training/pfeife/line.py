"""A graph or a layer model in a line: its ops in a topological order, with what training takes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.instance import Instance
from mtpp.machine.link import Link
from mtpp.training.model import Configuration, FilePosition, LinePlace, TrainingModel
from mtpp.training.pfeife.costs import LineCosts, LineTensor
from mtpp.units import PICOSECONDS, Exact, InTicks, ceil_ratio

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class TrainedOps:
    """Training of each op of a graph, in file order.

    Attributes
    ----------
    trainable_bytes
        Of the parameters that are trained.
    share
        Part of the backward pass that has to run, from 0 to 1.
    """

    trainable_bytes: Sequence[int]
    share: Sequence[Exact]

    @classmethod
    def of(cls, graph: CostGraph) -> TrainedOps | None:
        """Return what a graph states, and what follows for the rest of it; None where it states nothing.

        An op without ``trainable_bytes`` trains all of its parameters. One without ``backward_share`` computes the
        gradient of its parameters if any is trained, and of what it reads if anything is trained before it: a half each
        if it has parameters, else all of its backward pass is the latter.
        """
        stated, shares = getattr(graph, "trainable_bytes", ()), getattr(graph, "backward_share", ())
        if not stated and not shares:
            return None
        sizes = graph.read_bytes.tolist()
        trainable = [
            size if own is None else own for size, own in zip(sizes, stated or [None] * len(sizes), strict=True)
        ]
        share: list[Exact] = [0] * graph.op_count
        trained_before = [False] * graph.op_count
        readers: list[list[int]] = [[] for _ in sizes]
        for u, v in zip(*(ends.tolist() for ends in graph.edges), strict=True):
            readers[u].append(v)
        for v in graph.order.tolist():
            own = shares[v] if shares else None
            if own is not None:
                share[v] = own
            elif sizes[v]:
                share[v] = _HALF * trained_before[v] + _HALF * (trainable[v] > 0)
            else:
                share[v] = int(trained_before[v])
            if share[v] or trainable[v]:
                for reader in readers[v]:
                    trained_before[reader] = True
        return cls(trainable, share)

    def has_backward(self, op: int) -> bool:
        """Tell whether an op has a backward pass at all, if one that takes no time."""
        return bool(self.share[op] or self.trainable_bytes[op])


def backward_ticks(work: int, ratio: Exact, share: Exact = 1) -> int:
    """Return the ticks of a backward pass, rounded up once: forward ticks × ratio × the part of it that runs."""
    whole = Fraction(ratio) * share * work
    return ceil_ratio(whole.numerator, whole.denominator)


def fixed_bytes(parameters: int, trained: int, state: Exact) -> int:
    """Return bytes held of parameters: *state* times those that are trained, the others as they are."""
    return ceil_ratio(trained * state.numerator, state.denominator) + parameters - trained


FASTEST, LEAST_KEPT, SMALLEST = "fastest", "least-kept", "smallest"
CHOICES = (FASTEST, LEAST_KEPT, SMALLEST)
"""Which configuration with t = 1 every layer runs as: the fastest that fits by itself, the one that keeps least for a
micro-batch, or the one that holds least with one micro-batch in flight."""

LARGEST_BYTES = 2**60
"""All parameters, states and tensors of an iteration together stay below as many bytes."""


@dataclass(frozen=True, eq=False)
class ModelLine(InTicks):
    """Ops or layers in the order along which stages are cut.

    Attributes
    ----------
    kind
        ``graph`` or ``layers``, of the model.
    names
        Of all ops by place; layers by the id that their file gives them.
    ticks_per_unit
        Ticks in *time_unit*; 1 tick = 1 ps unless that is ``"1"``.
    sizes_known
        Whether the model gives all bytes, so that memory can be told.
    configurations, choice
        What each layer runs as, by place, and by which rule of :data:`CHOICES`; empty and the first for graphs.
    smallest
        Bytes that each layer holds at least, with one micro-batch in flight, as any of its configurations.
    trained
        Whether any op of a graph is trained; None where the graph does not say which are: all.
    repeated_bytes
        Bytes that count more than once at most, since each op of a graph keeps all weights that it reads.
    """

    name: str
    kind: Literal["graph", "layers"]
    names: Sequence[str | int]
    time_unit: str
    ticks_per_unit: int
    costs: LineCosts
    sizes_known: bool
    configurations: Sequence[Configuration] = ()
    choice: str = FASTEST
    smallest: Sequence[int] = ()
    trained: bool | None = None
    repeated_bytes: int = 0

    @property
    def layers(self) -> Sequence[str | int]:
        """Its ops, as a graph has them."""
        return self.names

    @property
    def ends(self) -> Sequence[tuple[LinePlace, LinePlace]]:
        """Places of the two ops of each edge."""
        return [(one.producer, reader) for one in self.costs.tensors for reader in one.consumers]

    @property
    def order(self) -> Sequence[LinePlace]:
        """All places, one after the other: a line is a topological order of its ops."""
        return [LinePlace(p) for p in range(self.costs.ops)]

    def reordered(self, order: Sequence[LinePlace]) -> ModelLine:
        """Return the same with its ops in another topological order, given by their places in this one."""
        return replace(
            self,
            names=[self.names[p] for p in order],
            costs=self.costs.reordered(order),
            smallest=[self.smallest[p] for p in order] if self.smallest else (),
            configurations=[self.configurations[p] for p in order] if self.configurations else (),
        )

    @property
    def least_held(self) -> Sequence[int]:
        """Bytes that each op holds at least with one micro-batch in flight, whatever it runs as, by place."""
        held: list[int] = (self.costs.fixed_bytes + self.costs.kept_bytes).tolist()
        return self.smallest or held


def graph_line(
    graph: CostGraph,
    instance: Instance,
    *,
    backward_ratio: Exact,
    state: Exact,
    latency: int = 0,
) -> ModelLine:
    """Return a graph in a line, in its own topological order.

    Parameters
    ----------
    instance
        The graph in ticks.
    backward_ratio
        Backward pass / forward pass of ops whose backward pass the graph does not give; rounded up for each op. An op
        of whose parameters not all are trained, or before which nothing is, runs a part of it.
    state
        Bytes that training holds for each byte of parameters that are trained: they, their gradients and the
        optimiser's state. What is not trained is held once.
    latency
        Of a hand-over, in ticks.
    """
    given = [FilePosition(v) for v in graph.order.tolist()]
    place = {v: LinePlace(p) for p, v in enumerate(given)}
    work = [int(instance.work[v]) for v in given]
    trained = TrainedOps.of(graph)
    backward = [
        backward_ticks(ticks, backward_ratio, 1 if trained is None else trained.share[v])
        for v, ticks in zip(given, work, strict=True)
    ]
    for p, v in enumerate(given):
        own = graph.backward[v] if getattr(graph, "backward", ()) else None
        if own is not None:
            backward[p] = ceil_ratio(own.numerator * instance.ticks_per_unit, own.denominator)
    sizes = graph.tensor_bytes.tolist()
    kept = [0] * len(given)
    for t, (producer, size) in enumerate(zip(graph.tensor_producer.tolist(), sizes, strict=True)):
        if trained is None or any(map(trained.has_backward, (producer, *graph.tensor_consumers(t).tolist()))):
            kept[place[producer]] += max(0, size)
    for p, v in enumerate(given):
        stated = graph.kept_bytes[v] if getattr(graph, "kept_bytes", ()) else None
        if stated is not None:
            kept[p] = stated
    tensors = [
        LineTensor(
            place[FilePosition(producer)],
            [place[FilePosition(int(v))] for v in graph.tensor_consumers(t)],
            int(instance.transfer[t]),
            None if size == UNKNOWN_BYTES else size,
        )
        for t, (producer, size) in enumerate(zip(graph.tensor_producer.tolist(), sizes, strict=True))
    ]
    parameters = graph.read_bytes.tolist()
    updated = parameters if trained is None else trained.trainable_bytes
    fixed = [fixed_bytes(parameters[v], updated[v], state) for v in given]
    repeated = sum(parameters) - graph.all_bytes
    costs = LineCosts(_array(work), _array(backward), _array(fixed), _array(kept), tensors, latency)
    return ModelLine(
        graph.name,
        "graph",
        [graph.op_names[v] for v in given],
        graph.time_unit,
        instance.ticks_per_unit,
        costs,
        all(one.size_bytes is not None for one in tensors),
        trained=None if trained is None else any(map(trained.has_backward, given)),
        repeated_bytes=fixed_bytes(repeated, repeated, max(state, 1)),
    )


def layer_line(
    model: TrainingModel,
    *,
    bandwidth_bytes_per_s: int,
    backward_ratio: Exact,
    memory_bytes: int | None,
    choice: str = FASTEST,
    latency: int = 0,
) -> ModelLine:
    """Return a layer model in its own topological order, every layer as one of its configurations with t = 1.

    Parameters
    ----------
    memory_bytes
        Of the largest device: a configuration that needs more by itself does not fit; None: all do.
    choice
        Of :data:`CHOICES`; those but the first are for where no plan fits with it, such as configurations that
        recompute.

    Raises
    ------
    InputError
        If a layer has no configuration with t = 1.

    Notes
    -----
    Where a configuration lists forward and backward pass of a micro-batch of the model's size, these are its times;
    else its time is split into 1 and *backward_ratio* parts.
    """
    given = model.order
    chosen = [_configuration(model, v, memory_bytes, choice) for v in given]
    times = [_passes(one, model, backward_ratio) for one in chosen]
    place = {model.layers[v].id: LinePlace(p) for p, v in enumerate(given)}
    tensors = [
        LineTensor(
            place[edge.source],
            [place[edge.target]],
            Link(bandwidth_bytes_per_s).streaming_ps(edge.communication_bytes),
            edge.communication_bytes,
        )
        for edge in model.edges
    ]
    costs = LineCosts(
        _array([forward for forward, _ in times]),
        _array([backward for _, backward in times]),
        _array([one.memory_b for one in chosen]),
        _array([one.memory_a for one in chosen]),
        tensors,
        latency,
    )
    names = [model.layers[v].id for v in given]
    ticks = PICOSECONDS[model.time_unit]
    held = [min(one.memory_a + one.memory_b for one in model.layers[v].configurations[1]) for v in given]
    return ModelLine(model.name, "layers", names, model.time_unit, ticks, costs, True, chosen, choice, held)


def _configuration(model: TrainingModel, layer: int, memory_bytes: int | None, choice: str) -> Configuration:
    choices = model.layers[layer].configurations.get(1, ())
    if not choices:
        raise model.fault(
            f"layer {model.layers[layer].name!r} has no configuration for one device",
            model.places.layer(layer, model.places.configurations),
            "this planner gives every stage one device: add a configuration with t = 1",
        )
    if choice == LEAST_KEPT:
        return min(choices, key=lambda one: (one.memory_a, one.memory_b, one.time_per_sample))
    if choice == SMALLEST:
        return min(choices, key=lambda one: (one.memory_a + one.memory_b, one.memory_a, one.time_per_sample))
    fitting = [one for one in choices if memory_bytes is None or one.memory_a + one.memory_b <= memory_bytes]
    return min(fitting or choices, key=lambda one: (one.time_per_sample, one.memory_a, one.memory_b))


def _passes(one: Configuration, model: TrainingModel, backward_ratio: Exact) -> tuple[int, int]:
    ticks = PICOSECONDS[model.time_unit]
    listed = one.micro_batches.get(model.micro_batch_size or 0)
    if listed is not None:
        forward, backward = Fraction(listed.forward), Fraction(listed.backward)
    else:
        forward = Fraction(one.time_per_sample) / (1 + backward_ratio)
        backward = one.time_per_sample - forward
    return tuple(ceil_ratio((time * ticks).numerator, (time * ticks).denominator) for time in (forward, backward))  # type: ignore[return-value]


def _array(numbers: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if max(numbers, default=0) >= 2**62:
        raise InputError("a cost is too large: it reaches 2^62", remedy="check the costs and their units")
    return np.array(numbers, dtype=np.int64)
