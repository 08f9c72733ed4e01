"""The planning problem for training: a model on K devices, every cost in integer ticks and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cached_property

from mtpp.errors import InputError
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine, OnEqualDevices
from mtpp.names import CONVENTIONS
from mtpp.training.model import Configuration, Layer, TrainingModel
from mtpp.units import PICOSECONDS, Exact, ceil_ratio

LARGEST_TOTAL = 2**62
"""What all layers could cost together, times the degrees that it is compared over, must stay below this."""


@dataclass(frozen=True)
class Schemes:
    """Which schemes a plan may use; the paper's ablations leave one out."""

    data_parallel: bool = True
    tensor_parallel: bool = True
    recompute: bool = True


@dataclass(frozen=True, eq=False)
class Choice:
    """A configuration in ticks: everything that choosing it for a layer costs.

    Attributes
    ----------
    compute_ticks
        X.p, rounded up.
    weight_ticks
        4 · X.w / B, rounded up: what synchronising gradients is a fraction of.
    sync_in_ticks, sync_out_ticks
        2 · X.c^fw / B and 2 · X.c^bw / B, rounded up, for each of the layer's in-edges and out-edges in the order of
        :attr:`PlanningProblem.edges_in` and :attr:`PlanningProblem.edges_out`.
    """

    configuration: Configuration
    compute_ticks: int
    weight_ticks: int
    memory_a: int
    memory_b: int
    sync_in_ticks: Sequence[int]
    sync_out_ticks: Sequence[int]


@dataclass(frozen=True, eq=False)
class PlanningProblem(OnEqualDevices):
    """Model × devices × batch: every cost in ticks, rounded up once. 1 tick = 1 ps.

    Attributes
    ----------
    machine
        Equal devices in one flat network: K, M and B of the paper.
    micro_batches
        N: degrees of data parallelism sum up to at most this, or to exactly this if *exact_micro_batches*.
    convention
        One of :data:`mtpp.names.CONVENTIONS`.

    Raises
    ------
    InputError
        If the number of micro-batches is not positive, if a layer is left without any configuration by the schemes, or
        if the costs are too large for 64 bits; *where* is what the model's places say.
    """

    model: TrainingModel
    _: KW_ONLY
    machine: Machine
    micro_batches: int
    exact_micro_batches: bool = False
    convention: str = CONVENTIONS[0]
    schemes: Schemes = field(default_factory=Schemes)

    def __post_init__(self) -> None:
        self.machine.require_uniform()
        if self.micro_batches < 1:
            raise InputError(f"must be above zero, not {self.micro_batches}", parameter="max_micro_batches")
        if self.convention not in CONVENTIONS:
            raise InputError(f"unknown convention {self.convention!r}", remedy=f"use {' or '.join(CONVENTIONS)}")
        self._check()

    @property
    def link(self) -> Link:
        """Of each device; its bandwidth is B."""
        return self.machine.device.link

    @cached_property
    def degrees(self) -> Sequence[int]:
        """Degrees of tensor parallelism that plans may use, ascending; some layer has a choice for each, and t ≤ K."""
        return [t for t in self.model.degrees if t <= self.devices and (t == 1 or self.schemes.tensor_parallel)]

    @cached_property
    def choices(self) -> Sequence[Sequence[Sequence[Choice]]]:
        """By degree (as in *degrees*), then by layer: what may be chosen; empty where there is nothing."""
        return [
            [
                [
                    self._choice(configuration, i)
                    for configuration in layer.configurations.get(t, ())
                    if self.schemes.recompute or not configuration.recomputes
                ]
                for i, layer in enumerate(self.model.layers)
            ]
            for t in self.degrees
        ]

    def _choice(self, configuration: Configuration, layer: int) -> Choice:
        edges = self.model.edges
        forward, backward = configuration.forward_sync_bytes, configuration.backward_sync_bytes
        return Choice(
            configuration,
            _ticks(configuration.time_per_sample, PICOSECONDS[self.model.time_unit]),
            self.link.streaming_ps(4 * configuration.gradient_bytes),
            configuration.memory_a,
            configuration.memory_b,
            [self.link.streaming_ps(2 * forward.get(edges[e].source, 0)) for e in self.edges_in[layer]],
            [self.link.streaming_ps(2 * backward.get(edges[e].target, 0)) for e in self.edges_out[layer]],
        )

    @cached_property
    def edge_ticks(self) -> Sequence[int]:
        """2 · c(u, v) / B for each edge, rounded up: paid by the stages at both ends."""
        return [self.link.streaming_ps(2 * edge.communication_bytes) for edge in self.model.edges]

    def _check(self) -> None:
        for i, layer in enumerate(self.model.layers):
            if not any(by_layer[i] for by_layer in self.choices):
                raise self.model.fault(
                    f"layer {layer.name!r} has no configuration that may be used",
                    self.model.places.layer(i, self.model.places.configurations),
                    self._missing(layer),
                )
        total = sum(self.edge_ticks) * 2
        memory = 0
        for i in range(len(self.model.layers)):
            here = [one for by_layer in self.choices for one in by_layer[i]]
            total += max(
                one.compute_ticks + one.weight_ticks + sum(one.sync_in_ticks) + sum(one.sync_out_ticks) for one in here
            )
            memory += max(one.memory_a * (1 + min(self.micro_batches, self.devices)) + one.memory_b for one in here)
        spread = max(self.devices, self.micro_batches if self.convention == "program" else 1)
        if spread * total >= LARGEST_TOTAL or memory >= LARGEST_TOTAL:
            raise InputError(
                "the costs are too large: all layers together, over all devices, reach 2^62",
                source=self.model.places.source,
                remedy="check the costs, the time unit and the bandwidth",
            )

    def _missing(self, layer: Layer) -> str:
        if any(layer.configurations.get(t) for t in self.degrees):
            return "without recomputation it needs one that keeps its activations"
        if not self.schemes.tensor_parallel:
            return "without tensor parallelism it needs one for t = 1"
        return f"it needs one for t = {self.devices}, the number of devices, or less"

    @cached_property
    def edges_in(self) -> Sequence[Sequence[int]]:
        """Edges into each layer, by their position in the model's edges."""
        return _edges_at(self.model)[0]

    @cached_property
    def edges_out(self) -> Sequence[Sequence[int]]:
        """Edges out of each layer."""
        return _edges_at(self.model)[1]

    @cached_property
    def data_degrees(self) -> Sequence[int]:
        """Degrees of data parallelism that the convention and the schemes allow, ascending, at most min(K, N)."""
        if not self.schemes.data_parallel:
            return [1]
        most = min(self.devices, self.micro_batches)
        return [d for d in range(1, most + 1) if self.convention == "paper" or self.micro_batches % d == 0]

    def spread(self, data_parallel: int) -> int:
        """Return over how many micro-batches a stage of degree d spreads one synchronisation of gradients.

        d by the paper's convention, which synchronises after each d of them; N, the whole batch, by the program's.
        """
        return data_parallel if self.convention == "paper" else self.micro_batches

    def stage_time(self, compute_and_edges: int, weights: int, data_parallel: int) -> Fraction:
        """Return the Time-Per-Sample of a stage, section 4 of the paper, in ticks; exact.

        Parameters
        ----------
        compute_and_edges
            Σ compute of its layers and all that its edges to other stages take, in ticks.
        weights
            Σ weight_ticks of its layers.
        """
        d = data_parallel
        return Fraction(compute_and_edges, d) + Fraction((d - 1) * weights, d * self.spread(d))


def _ticks(time: Exact, ticks_per_unit: int) -> int:
    return ceil_ratio(time.numerator * ticks_per_unit, time.denominator)


def _edges_at(model: TrainingModel) -> tuple[list[list[int]], list[list[int]]]:
    incoming: list[list[int]] = [[] for _ in model.layers]
    outgoing: list[list[int]] = [[] for _ in model.layers]
    for e, (source, target) in enumerate(model.ends):
        outgoing[source].append(e)
        incoming[target].append(e)
    return incoming, outgoing
