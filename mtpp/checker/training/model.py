"""A model to be trained in ticks: what each configuration of a layer and each edge costs, every cost rounded up once.

1 tick = 1 ps. Symbols are those of Tarnawski et al. (2021), sections 3.6 and 4: X.p of a configuration; 2·c(u, v)/B of
an edge; 2·X.c^fw/B and 2·X.c^bw/B of bringing a tensor to all t devices; 4·X.w/B, of which gradients take a part that
depends on d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.errors import InputError

LayerId = int | str


class StatedCosts(Protocol):
    """Costs of some samples on a device as a file states them; times are exact rationals in the file's unit."""

    @property
    def forward(self) -> Any: ...  # noqa: D102
    @property
    def backward(self) -> Any: ...  # noqa: D102
    @property
    def memory_bytes(self) -> int: ...  # noqa: D102


class StatedConfiguration(Protocol):
    """A configuration as a file states it; costs of time are exact rationals in the file's unit."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def time_per_sample(self) -> Any: ...  # noqa: D102
    @property
    def parameter_bytes(self) -> int: ...  # noqa: D102
    @property
    def trainable_bytes(self) -> int | None: ...  # noqa: D102
    @property
    def memory_a(self) -> int: ...  # noqa: D102
    @property
    def memory_b(self) -> int: ...  # noqa: D102
    @property
    def forward_sync_bytes(self) -> Mapping[LayerId, int]: ...  # noqa: D102
    @property
    def backward_sync_bytes(self) -> Mapping[LayerId, int]: ...  # noqa: D102
    @property
    def recomputes(self) -> bool: ...  # noqa: D102
    @property
    def micro_batches(self) -> Mapping[int, StatedCosts]: ...  # noqa: D102


def synchronised(one: StatedConfiguration) -> int:
    """Return the bytes whose gradients replicas add up: parameters on a device, or those of them that are trained."""
    return one.parameter_bytes if one.trainable_bytes is None else one.trainable_bytes


class StatedLayer(Protocol):
    """A layer as a file states it."""

    @property
    def id(self) -> LayerId: ...  # noqa: D102
    @property
    def configurations(self) -> Mapping[int, Sequence[StatedConfiguration]]: ...  # noqa: D102


class StatedEdge(Protocol):
    """An edge as a file states it."""

    @property
    def source(self) -> LayerId: ...  # noqa: D102
    @property
    def target(self) -> LayerId: ...  # noqa: D102
    @property
    def communication_bytes(self) -> int: ...  # noqa: D102


class StatedModel(Protocol):
    """A model as a file states it, which is all that the verifier takes from the reader of files."""

    @property
    def time_unit(self) -> str: ...  # noqa: D102
    @property
    def layers(self) -> Sequence[StatedLayer]: ...  # noqa: D102
    @property
    def edges(self) -> Sequence[StatedEdge]: ...  # noqa: D102
    @property
    def micro_batch_size(self) -> int | None: ...  # noqa: D102


@dataclass(frozen=True)
class LayerOption:
    """One way to run a layer on t devices.

    Attributes
    ----------
    compute, weights
        ⌈X.p⌉ and ⌈4·X.w/B⌉, in ticks.
    a, b
        Bytes on each device: a for each micro-batch in flight, and b.
    sync_in, sync_out
        ⌈2·X.c^fw/B⌉ by predecessor and ⌈2·X.c^bw/B⌉ by successor, in ticks; no entry: nothing.
    """

    name: str
    compute: int
    weights: int
    a: int
    b: int
    sync_in: Mapping[int, int]
    sync_out: Mapping[int, int]
    recomputes: bool


@dataclass(frozen=True)
class TickModel:
    """Layers, by their position in the file.

    Attributes
    ----------
    ids
        What plans call the layers.
    options
        Of each layer, by degree of tensor parallelism.
    edges
        Positions of source and target, and ⌈2·c/B⌉.
    edge_bytes, weight_bytes
        For networks of other bandwidths: c of each edge, and by layer the least t·X.w of all its configurations.
    """

    time_unit: str
    ids: Sequence[LayerId]
    options: Sequence[Mapping[int, Sequence[LayerOption]]]
    edges: Sequence[tuple[int, int, int]]
    edge_bytes: Sequence[int]
    weight_bytes: Sequence[int]


def layer_ids(model: StatedModel) -> list[LayerId]:
    """Return what plans call the layers; raise InputError if a plan cannot tell two apart."""
    ids = [layer.id for layer in model.layers]
    if len({str(name) for name in ids}) < len(ids):
        raise InputError("two layers have ids that are written alike", source="model", where="/layers")
    return ids


def transfer_ticks(size: int, bandwidth_bytes_per_s: int) -> int:
    """Return what *size* bytes take, rounded up."""
    return -(-size * 10**12 // bandwidth_bytes_per_s)


def training_model_in_ticks(model: StatedModel, bandwidth_bytes_per_s: int) -> TickModel:
    """Return *model* with every cost in ticks."""
    ids = layer_ids(model)
    place = {name: i for i, name in enumerate(ids)}
    per_unit = PICOSECONDS_PER_UNIT[model.time_unit]

    def option(stated: StatedConfiguration) -> LayerOption:
        forward, backward = (
            {place[other]: transfer_ticks(2 * size, bandwidth_bytes_per_s) for other, size in sizes.items()}
            for sizes in (stated.forward_sync_bytes, stated.backward_sync_bytes)
        )
        time = stated.time_per_sample
        return LayerOption(
            name=stated.id,
            compute=-(-time.numerator * per_unit // time.denominator),
            weights=transfer_ticks(4 * synchronised(stated), bandwidth_bytes_per_s),
            a=stated.memory_a,
            b=stated.memory_b,
            sync_in=forward,
            sync_out=backward,
            recomputes=stated.recomputes,
        )

    return TickModel(
        model.time_unit,
        ids,
        [{t: [option(one) for one in found] for t, found in layer.configurations.items()} for layer in model.layers],
        [
            (
                place[edge.source],
                place[edge.target],
                transfer_ticks(2 * edge.communication_bytes, bandwidth_bytes_per_s),
            )
            for edge in model.edges
        ],
        [edge.communication_bytes for edge in model.edges],
        [
            min(t * synchronised(one) for t, found in layer.configurations.items() for one in found)
            for layer in model.layers
        ],
    )
