"""A model to be trained: layers that can be run in several ways on several devices, and the tensors between them.

The input of planners for training (Tarnawski et al. 2021, section 3.6). A layer has *configurations* for some degrees
of tensor parallelism, the paper's TMPCs: what it takes of time and memory on each of t devices. Costs of communication
belong to edges, as in that paper: a tensor that two layers read is paid for twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mtpp.errors import InputError
from mtpp.units import PICOSECONDS, Exact

LayerId = int | str
"""What a file calls a layer: a number in Piper's files, a name in the native ones."""


@dataclass(frozen=True)
class Configuration:
    """One way to run a layer on t devices, the paper's TMPC.

    Attributes
    ----------
    time_per_sample
        X.p: forward and backward pass of one micro-batch, with what the t devices tell each other; in the model's unit.
    parameter_bytes
        X.w: parameters on each device.
    memory_a, memory_b
        X.a, X.b: bytes on each device, a for each micro-batch in flight, and b.
    forward_sync_bytes, backward_sync_bytes
        X.c^fw by predecessor, X.c^bw by successor: bytes that handing a tensor from another stage to all t devices
        takes. Neighbours that are not named cost nothing.
    recomputes
        Whether activations are computed a second time in place of being kept.
    """

    id: str
    time_per_sample: Exact
    parameter_bytes: int
    memory_a: int
    memory_b: int
    forward_sync_bytes: Mapping[LayerId, int] = field(default_factory=dict)
    backward_sync_bytes: Mapping[LayerId, int] = field(default_factory=dict)
    recomputes: bool = False


@dataclass(frozen=True)
class Layer:
    """One layer; *configurations* are by degree of tensor parallelism. *name* is the only one of its kind."""

    id: LayerId
    name: str
    configurations: Mapping[int, Sequence[Configuration]]


@dataclass(frozen=True)
class Edge:
    """Layer *target* needs the output of *source*: c(u, v) bytes if they are in different stages."""

    source: LayerId
    target: LayerId
    communication_bytes: int


@dataclass(frozen=True, eq=False)
class TrainingModel:
    """Layers and edges, with the unit of the layers' times. Make one with :meth:`build`.

    Attributes
    ----------
    time_unit
        A key of :data:`mtpp.units.PICOSECONDS`.
    defaults
        What the file says of the machine it was written for: any of ``devices``, ``memory_bytes``,
        ``bandwidth_bytes_per_s`` and ``micro_batches``. Shown, never used unasked.
    """

    name: str
    time_unit: str
    layers: Sequence[Layer]
    edges: Sequence[Edge]
    defaults: Mapping[str, Any]

    @classmethod
    def build(
        cls,
        name: str,
        time_unit: str,
        layers: Sequence[Layer],
        edges: Sequence[Edge],
        defaults: Mapping[str, Any] | None = None,
    ) -> TrainingModel:
        """Check that layers and edges make an acyclic graph and that all costs belong to something.

        Raises
        ------
        InputError
            If a layer has no configuration, an id or a name is taken, an edge leads to no layer, to itself or where
            another one leads, the layers make a cycle, or a configuration names a neighbour that is none; *where* is
            a pointer ``/layers/3/…`` or ``/edges/7``. A format that is written otherwise says so itself before.
        """
        if time_unit not in PICOSECONDS:
            raise InputError(f"{time_unit!r} is no unit of time", where="/time_unit", remedy="use s, ms, us, ns or ps")
        if not layers:
            raise InputError("the model has no layers", where="/layers", remedy="give at least one")
        model = cls(name, time_unit, tuple(layers), tuple(edges), dict(defaults or {}))
        _check_layers(model)
        _check_edges(model)
        _check_neighbours(model)
        return model

    @cached_property
    def index_of(self) -> Mapping[LayerId, int]:
        """Position of each layer in :attr:`layers`, by id."""
        return {layer.id: i for i, layer in enumerate(self.layers)}

    @cached_property
    def ends(self) -> Sequence[tuple[int, int]]:
        """Positions of source and target of each edge."""
        return [(self.index_of[edge.source], self.index_of[edge.target]) for edge in self.edges]

    @cached_property
    def degrees(self) -> Sequence[int]:
        """Degrees of tensor parallelism that some layer has a configuration for, ascending."""
        return sorted({t for layer in self.layers for t, choices in layer.configurations.items() if choices})

    @cached_property
    def order(self) -> Sequence[int]:
        """Positions of the layers in the topological order that always takes the earliest in file order.

        Raises
        ------
        InputError
            If there is none: the edges make a cycle; it names one of its layers.
        """
        return _topological_order(self)


def _check_layers(model: TrainingModel) -> None:
    for key in ("id", "name"):
        first: dict[LayerId, int] = {}
        for i, layer in enumerate(model.layers):
            value = layer.id if key == "id" else layer.name
            if first.setdefault(value, i) != i:
                raise InputError(
                    f"duplicate {key} {value!r}, first used at /layers/{first[value]}", where=f"/layers/{i}"
                )
    for i, layer in enumerate(model.layers):
        if not any(layer.configurations.values()):
            raise InputError(
                f"layer {layer.name!r} has no configuration",
                where=f"/layers/{i}",
                remedy="give one for at least one degree of tensor parallelism",
            )
        for t, choices in layer.configurations.items():
            if t < 1:
                raise InputError("a degree of tensor parallelism must be at least 1", where=f"/layers/{i}")
            ids = [choice.id for choice in choices]
            if len(set(ids)) < len(ids):
                problem = f"layer {layer.name!r} has several configurations of one name for t = {t}"
                raise InputError(problem, where=f"/layers/{i}", remedy="give each its own")


def _check_edges(model: TrainingModel) -> None:
    seen: dict[tuple[LayerId, LayerId], int] = {}
    for e, edge in enumerate(model.edges):
        for end in (edge.source, edge.target):
            if end not in model.index_of:
                raise InputError(f"no layer has the id {end!r}", where=f"/edges/{e}")
        if edge.source == edge.target:
            raise InputError(f"the edge leads from layer {edge.source!r} to itself", where=f"/edges/{e}")
        first = seen.setdefault((edge.source, edge.target), e)
        if first != e:
            raise InputError(f"duplicate edge, first given at /edges/{first}", where=f"/edges/{e}")
    if len(model.order) < len(model.layers):
        raise AssertionError("an order leaves no layer out")


def _check_neighbours(model: TrainingModel) -> None:
    before: dict[LayerId, set[LayerId]] = {layer.id: set() for layer in model.layers}
    after: dict[LayerId, set[LayerId]] = {layer.id: set() for layer in model.layers}
    for edge in model.edges:
        before[edge.target].add(edge.source)
        after[edge.source].add(edge.target)
    for i, layer in enumerate(model.layers):
        for t, choices in layer.configurations.items():
            for choice in choices:
                for sizes, real, what in (
                    (choice.forward_sync_bytes, before, "predecessor"),
                    (choice.backward_sync_bytes, after, "successor"),
                ):
                    for other in sizes:
                        if other not in real[layer.id]:
                            raise InputError(
                                f"configuration {choice.id!r} for t = {t} has a sync cost for {other!r}, "
                                f"which is no {what} of layer {layer.name!r}",
                                where=f"/layers/{i}",
                                remedy="remove it, or add the edge",
                            )


def _topological_order(model: TrainingModel) -> list[int]:
    waiting = [0] * len(model.layers)
    after: list[list[int]] = [[] for _ in model.layers]
    for source, target in model.ends:
        waiting[target] += 1
        after[source].append(target)
    ready = [i for i, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in after[i]:
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(ready, j)
    if len(order) < len(model.layers):
        left = min(i for i, count in enumerate(waiting) if count)
        # Layers behind a cycle wait as well: go back along waiting predecessors until one comes up again.
        back = {target: source for source, target in model.ends if waiting[source] and waiting[target]}
        seen: set[int] = set()
        while left not in seen:
            seen.add(left)
            left = back[left]
        raise InputError(
            f"the layers make a cycle through {model.layers[left].name!r}",
            where=f"/layers/{left}",
            remedy="remove an edge: every layer must come after those it needs",
        )
    return order
