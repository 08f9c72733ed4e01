"""A model to be trained in ticks by samples on a device: what every pass, every tensor and every parameter costs.

1 tick = 1 ps; every cost is rounded up once. A layer that lists no costs by samples takes a third of its time for the
forward pass and the rest for the backward pass, both in proportion to samples. Only configurations on one device count:
the paper has no tensor parallelism (Jeon et al. 2025, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.checker.training.model import LayerId, StatedConfiguration, StatedModel, layer_ids, synchronised

PER_SECOND = 10**12
"""Ticks."""


class Passes(NamedTuple):
    """Ticks of both passes of a micro-batch on a device, and bytes that are kept for it while it is in flight."""

    forward: int
    backward: int
    kept_bytes: int

    @property
    def both(self) -> int:
        """Ticks of the two passes."""
        return self.forward + self.backward


@dataclass(frozen=True)
class LayerChoice:
    """One way to run a layer on a device.

    Attributes
    ----------
    fixed_bytes
        Whatever is in flight.
    listed
        Costs by samples; empty: any number of samples follows from *per_sample* ticks and *kept_per_sample* bytes.
    forward_extra, backward_extra
        Bytes besides those of an edge, by predecessor and by successor.
    """

    name: str
    parameter_bytes: int
    fixed_bytes: int
    listed: Mapping[int, Passes]
    per_sample: Fraction
    kept_per_sample: Fraction
    forward_extra: Mapping[int, int] = field(default_factory=dict)
    backward_extra: Mapping[int, int] = field(default_factory=dict)

    def passes(self, samples: int) -> Passes | None:
        """Return the costs of so many samples on each device; None if they cannot be run."""
        if self.listed:
            return self.listed.get(samples)
        time = self.per_sample * samples
        return Passes(ceil(time / 3), ceil(2 * time / 3), ceil(self.kept_per_sample * samples))


@dataclass(frozen=True)
class GraphModel:
    """Layers, by their position in the file.

    Attributes
    ----------
    ids
        What plans call the layers.
    choices
        Of each layer, those that the rules allow.
    barred
        Names of its configurations on one device that recompute activations, where that is not allowed.
    edges
        Positions of source and target, and bytes.
    times_of
        Samples that the file says its times are of; None: it does not.
    """

    time_unit: str
    ids: Sequence[LayerId]
    choices: Sequence[Sequence[LayerChoice]]
    barred: Sequence[frozenset[str]]
    edges: Sequence[tuple[int, int, int]]
    times_of: int | None


def graph_model(model: StatedModel, setting: Setting) -> GraphModel:
    """Return *model* with every cost in ticks."""
    ids = layer_ids(model)
    place = {name: i for i, name in enumerate(ids)}
    unit = PICOSECONDS_PER_UNIT[model.time_unit]

    def choice(stated: StatedConfiguration) -> LayerChoice:
        return LayerChoice(
            stated.id,
            synchronised(stated),
            stated.memory_b,
            {
                samples: Passes(ceil(costs.forward * unit), ceil(costs.backward * unit), costs.memory_bytes)
                for samples, costs in stated.micro_batches.items()
            },
            Fraction(stated.time_per_sample) * unit / setting.times_of,
            Fraction(stated.memory_a, setting.times_of),
            {place[other]: size for other, size in stated.forward_sync_bytes.items()},
            {place[other]: size for other, size in stated.backward_sync_bytes.items()},
        )

    alone = [layer.configurations.get(1, ()) for layer in model.layers]
    return GraphModel(
        model.time_unit,
        ids,
        [[choice(one) for one in found if setting.recompute or not one.recomputes] for found in alone],
        [frozenset(one.id for one in found if one.recomputes and not setting.recompute) for found in alone],
        [(place[edge.source], place[edge.target], edge.communication_bytes) for edge in model.edges],
        model.micro_batch_size,
    )


def moved_bytes(size: int, micro_batch: int, times_of: int) -> int:
    """Return the bytes of a tensor for a micro-batch, given those of *times_of* samples."""
    return -(-size * micro_batch // times_of)


def transfer_ticks(size: int, width: int, setting: Setting) -> int:
    """Return what moving *size* bytes over *width* links takes."""
    return setting.latency_ticks + -(-size * PER_SECOND // (setting.bandwidth * width))


def synchronisation_ticks(parameter_bytes: int, d: int, setting: Setting) -> int:
    """Return what a ring over d replicas takes for the gradients of a stage."""
    return -(-2 * (d - 1) * parameter_bytes * PER_SECOND // (d * setting.bandwidth))
