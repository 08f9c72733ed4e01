"""A model to be trained: layers that can be run in several ways on several devices, and the tensors between them.

The input of planners for training (Tarnawski et al. 2021, section 3.6). A layer has *configurations* for some degrees
of tensor parallelism, the paper's TMPCs: what it takes of time and memory on each of t devices. Costs of communication
belong to edges, as in that paper: a tensor that two layers read is paid for twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NewType

from mtpp.document_shape import pointer
from mtpp.errors import InputError
from mtpp.inference.topological import cycle_text, find_cycle, first_come_order
from mtpp.units import PICOSECONDS, Exact

FilePosition = NewType("FilePosition", int)
"""Index of a layer or op among those of its model, as the file lists them."""

LinePlace = NewType("LinePlace", int)
"""Index of an op along a line: one topological order of a model; each op stands behind all that it reads from."""

TIME_UNITS = tuple(unit for unit in PICOSECONDS if unit.isascii())
"""Units that times may be in."""

LARGEST_COST = 2**62
"""No time comes to as many picoseconds, and nothing has as many bytes."""

LayerId = int | str
"""What a file calls a layer: a number in Piper's files, a name in the native ones."""


@dataclass(frozen=True)
class SampleCosts:
    """Costs of a micro-batch of some samples on each device.

    Attributes
    ----------
    forward, backward
        Of the two passes, in the model's unit.
    memory_bytes
        Kept for each micro-batch in flight.
    """

    forward: Exact
    backward: Exact
    memory_bytes: int


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
    micro_batches
        Costs by the samples that a device takes at once; empty: only those of :attr:`TrainingModel.micro_batch_size`
        are known, and those in sum.
    trainable_bytes
        Parameters on each device that are trained; None: all.
    """

    id: str
    time_per_sample: Exact
    parameter_bytes: int
    memory_a: int
    memory_b: int
    forward_sync_bytes: Mapping[LayerId, int] = field(default_factory=dict)
    backward_sync_bytes: Mapping[LayerId, int] = field(default_factory=dict)
    recomputes: bool = False
    micro_batches: Mapping[int, SampleCosts] = field(default_factory=dict)
    trainable_bytes: int | None = None

    @property
    def gradient_bytes(self) -> int:
        """Gradients on each device, which replicas synchronise: one for each parameter that is trained."""
        return self.parameter_bytes if self.trainable_bytes is None else self.trainable_bytes


@dataclass(frozen=True)
class Layer:
    """One layer; *configurations* are by degree of tensor parallelism. *name* is the only one of its kind.

    *trainable_bytes* are those of its parameters that are trained, on all devices together; None: all.
    """

    id: LayerId
    name: str
    configurations: Mapping[int, Sequence[Configuration]]
    trainable_bytes: int | None = None


@dataclass(frozen=True)
class Edge:
    """Layer *target* needs the output of *source*: c(u, v) bytes if they are in different stages."""

    source: LayerId
    target: LayerId
    communication_bytes: int


@dataclass(frozen=True)
class ModelPlaces:
    """JSON pointers (RFC 6901) into the file of a training model, whose layers and edges are in the file's order.

    Attributes
    ----------
    source
        What messages call the file; None: the caller knows.
    layers, edges
        Keys of the two lists.
    configurations
        Key of a layer's configurations.
    time, forward_sync, backward_sync
        Keys in a configuration.
    """

    source: str | None = None
    layers: str = "layers"
    edges: str = "edges"
    configurations: str = "configurations"
    time: str = "time"
    forward_sync: str = "sync_in"
    backward_sync: str = "sync_out"

    def layer(self, index: int, *keys: str | int) -> str:
        """Return the place of the layer at *index*, or of what it has under *keys*."""
        return pointer(self.layers, index, *keys)

    def edge(self, index: int) -> str:
        """Return the place of the edge at *index*."""
        return pointer(self.edges, index)

    def configuration(self, layer: int, degree: int, index: int, *keys: str | int) -> str:
        """Return the place of a configuration for t = *degree*, or of what it has under *keys*."""
        return self.layer(layer, self.configurations, degree, index, *keys)


OWN_FORMAT: Final = ModelPlaces()
"""Places in a file of the native format, and in a model that was never in a file."""


@dataclass(frozen=True, eq=False)
class TrainingModel:
    """Layers and edges, an acyclic graph, with the unit of the layers' times.

    Attributes
    ----------
    time_unit
        One of :data:`TIME_UNITS`.
    defaults
        What the file says of the machine it was written for: any of ``devices``, ``memory_bytes``,
        ``bandwidth_bytes_per_s`` and ``micro_batches``. Shown, never used unasked.
    metadata
        Any JSON; kept, and nothing is computed from it. ``assumptions``, where a reader made some, lists them.
    places
        Where the file has all this.
    micro_batch_size
        Samples that times, memory per micro-batch and bytes of edges are of; None: the file does not say.

    Raises
    ------
    InputError
        If a layer has no configuration, an id or a name is taken, an edge leads to no layer, to itself or where another
        one leads, the layers make a cycle, a cost is negative or too large for 64 bits, a configuration names a
        neighbour that is none, or costs by size contradict those of *micro_batch_size*; *where* is what *places* says.
    """

    name: str
    time_unit: str
    layers: Sequence[Layer]
    edges: Sequence[Edge]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    places: ModelPlaces = OWN_FORMAT
    micro_batch_size: int | None = None

    def __post_init__(self) -> None:
        kept = {"layers": tuple(self.layers), "edges": tuple(self.edges)}
        vars(self).update(kept, defaults=dict(self.defaults), metadata=dict(self.metadata))
        if self.time_unit not in TIME_UNITS:
            remedy = f"use one of {', '.join(TIME_UNITS)}"
            raise self.fault(f"unknown unit of time {self.time_unit!r}", "/time_unit", remedy)
        if not self.layers:
            raise self.fault("the model has no layers", f"/{self.places.layers}", "give at least one")
        _check_layers(self)
        _check_edges(self)
        _check_neighbours(self)
        _check_costs(self)
        _check_sizes(self)

    def fault(self, problem: str, where: str, remedy: str | None = None) -> InputError:
        """Return the error that something is wrong with the file of this model, at a place from :attr:`places`."""
        return InputError(problem, source=self.places.source, where=where, remedy=remedy)

    @property
    def assumptions(self) -> Sequence[str]:
        """What a reader assumed where the file leaves something open, for people; from :attr:`metadata`."""
        said = self.metadata.get("assumptions")
        return [one for one in said if isinstance(one, str)] if isinstance(said, list) else []

    @cached_property
    def index_of(self) -> Mapping[LayerId, FilePosition]:
        """Position of each layer in :attr:`layers`, by id."""
        return {layer.id: FilePosition(i) for i, layer in enumerate(self.layers)}

    @cached_property
    def ends(self) -> Sequence[tuple[FilePosition, FilePosition]]:
        """Positions of source and target of each edge."""
        return [(self.index_of[edge.source], self.index_of[edge.target]) for edge in self.edges]

    @cached_property
    def degrees(self) -> Sequence[int]:
        """Degrees of tensor parallelism that some layer has a configuration for, ascending."""
        return sorted({t for layer in self.layers for t, choices in layer.configurations.items() if choices})

    @cached_property
    def order(self) -> Sequence[FilePosition]:
        """Positions of the layers in the topological order that always takes the earliest in file order."""
        order = first_come_order(len(self.layers), self.ends)
        if len(order) < len(self.layers):
            cycle = find_cycle(len(self.layers), self.ends, order)
            names = cycle_text([self.layers[i].name for i in cycle])
            remedy = "remove an edge: every layer comes after those that it needs"
            raise self.fault(
                f"the layers make a cycle: {names}", self.places.edge(self.ends.index((cycle[0], cycle[1]))), remedy
            )
        return [FilePosition(v) for v in order]

    def each_configuration(self) -> Iterator[tuple[int, int, int, Configuration]]:
        """Go through all configurations: the position of the layer, its degree, the position in that list, itself."""
        for i, layer in enumerate(self.layers):
            for t, choices in layer.configurations.items():
                for c, choice in enumerate(choices):
                    yield i, t, c, choice

    @cached_property
    def neighbours(self) -> Mapping[LayerId, tuple[Sequence[LayerId], Sequence[LayerId]]]:
        """Ids of the layers before and after each, in the order of the edges."""
        around: dict[LayerId, tuple[list[LayerId], list[LayerId]]] = {layer.id: ([], []) for layer in self.layers}
        for edge in self.edges:
            around[edge.target][0].append(edge.source)
            around[edge.source][1].append(edge.target)
        return around


def _check_layers(model: TrainingModel) -> None:
    places = model.places
    for key in ("id", "name"):
        first: dict[LayerId, int] = {}
        for i, layer in enumerate(model.layers):
            value = layer.id if key == "id" else layer.name
            if first.setdefault(value, i) != i:
                earlier = places.layer(first[value])
                raise model.fault(f"duplicate {key} {value!r}, first used at {earlier}", places.layer(i))
    for i, layer in enumerate(model.layers):
        where = places.layer(i, places.configurations)
        if not any(layer.configurations.values()):
            remedy = "give one for at least one degree of tensor parallelism"
            raise model.fault(f"layer {layer.name!r} has no configuration", where, remedy)
        for t, choices in layer.configurations.items():
            if t < 1:
                raise model.fault("a degree of tensor parallelism must be at least 1", f"{where}/{t}")
            taken: set[str] = set()
            for c, choice in enumerate(choices):
                if choice.id in taken:
                    problem = f"layer {layer.name!r} has several configurations {choice.id!r} for t = {t}"
                    raise model.fault(problem, places.configuration(i, t, c, "id"), "give each its own id")
                taken.add(choice.id)


def _check_edges(model: TrainingModel) -> None:
    places = model.places
    seen: dict[tuple[LayerId, LayerId], int] = {}
    for e, edge in enumerate(model.edges):
        for end in (edge.source, edge.target):
            if end not in model.index_of:
                raise model.fault(f"there is no layer {end!r}", places.edge(e))
        if edge.source == edge.target:
            raise model.fault(f"the edge leads from layer {edge.source!r} to itself", places.edge(e))
        first = seen.setdefault((edge.source, edge.target), e)
        if first != e:
            problem = (
                f"duplicate edge from layer {edge.source!r} to layer {edge.target!r}, first at {places.edge(first)}"
            )
            raise model.fault(problem, places.edge(e))
    _ = model.order  # raises on a cycle


def _check_neighbours(model: TrainingModel) -> None:
    places = model.places
    around = {identity: (set(before), set(after)) for identity, (before, after) in model.neighbours.items()}
    for i, t, c, choice in model.each_configuration():
        before, after = around[model.layers[i].id]
        for sizes, real, key, what in (
            (choice.forward_sync_bytes, before, places.forward_sync, "predecessor"),
            (choice.backward_sync_bytes, after, places.backward_sync, "successor"),
        ):
            for other in sizes:
                if other not in real:
                    problem = f"a cost of synchronisation for an edge that does not exist: {other!r} is no {what}"
                    where = places.configuration(i, t, c, key, other)
                    raise model.fault(problem, where, "remove it, or add the edge")


def _check_costs(model: TrainingModel) -> None:
    for i, t, c, choice in model.each_configuration():
        place = model.places.configuration(i, t, c)
        if not 0 <= choice.time_per_sample * PICOSECONDS[model.time_unit] < LARGEST_COST:
            problem = "a time must be at least 0 and below 2^62 ps (53 days)"
            raise model.fault(problem, f"{place}/{model.places.time}", "check the time and its unit")
        sizes = (
            choice.parameter_bytes,
            choice.memory_a,
            choice.memory_b,
            *choice.forward_sync_bytes.values(),
            *choice.backward_sync_bytes.values(),
        )
        if not 0 <= min(sizes) <= max(sizes) < LARGEST_COST:
            raise model.fault("a size must be at least 0 and below 2^62 bytes", place)
    for e, edge in enumerate(model.edges):
        if not 0 <= edge.communication_bytes < LARGEST_COST:
            raise model.fault("a size must be at least 0 and below 2^62 bytes", model.places.edge(e))


def _check_sizes(model: TrainingModel) -> None:
    """Check costs by micro-batch size: none is negative, and those of the model's own size are as stated for it."""
    ours = model.micro_batch_size
    if ours is not None and ours < 1:
        raise model.fault("a micro-batch has at least 1 sample", "/micro_batch_size")
    for i, t, c, choice in model.each_configuration():
        if not choice.micro_batches:
            continue
        where = model.places.configuration(i, t, c, "micro_batches")
        if ours is None:
            remedy = "add micro_batch_size: the samples that times and bytes are of"
            raise model.fault("costs by micro-batch size in a model that has none", where, remedy)
        for size, costs in choice.micro_batches.items():
            if size < 1:
                raise model.fault(f"a micro-batch has at least 1 sample, not {size}", f"{where}/{size}")
            for key, time in (("forward", costs.forward), ("backward", costs.backward)):
                if not 0 <= time * PICOSECONDS[model.time_unit] < LARGEST_COST:
                    problem = "a time must be at least 0 and below 2^62 ps (53 days)"
                    raise model.fault(problem, f"{where}/{size}/{key}", "check the time and its unit")
            if not 0 <= costs.memory_bytes < LARGEST_COST:
                raise model.fault("a size must be at least 0 and below 2^62 bytes", f"{where}/{size}/memory_bytes")
        same = choice.micro_batches.get(ours)
        if same is not None and same.forward + same.backward != choice.time_per_sample:
            problem = f"forward and backward add up to {_decimal(same.forward + same.backward)}"
            samples = "1 sample" if ours == 1 else f"{ours} samples"
            remedy = f"they must be the time of {samples}, {_decimal(choice.time_per_sample)}"
            raise model.fault(problem, f"{where}/{ours}", remedy)


def _decimal(time: Exact) -> str:
    return f"{float(time):.17g}" if isinstance(time, Fraction) else str(time)


def require_synchronisation(model: TrainingModel) -> TrainingModel:
    """Return *model* if its configurations for t > 1 have a cost of synchronisation for every edge of their layer.

    For t = 1 there is nothing to hand on: what is not there is 0.
    """
    places = model.places
    for i, t, c, choice in model.each_configuration():
        if t == 1:
            continue
        before, after = model.neighbours[model.layers[i].id]
        for sizes, others, key, what in (
            (choice.forward_sync_bytes, before, places.forward_sync, "from"),
            (choice.backward_sync_bytes, after, places.backward_sync, "to"),
        ):
            for other in others:
                if other not in sizes:
                    raise model.fault(
                        f"no cost of synchronisation over {t} devices for the edge {what} {other!r}",
                        places.configuration(i, t, c, key),
                        f'add it, in bytes: "{other}": …; 0 if there is none',
                    )
    return model
