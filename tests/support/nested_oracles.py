"""Every nested plan of a tiny model, tried one by one: appendix E of Tarnawski et al. (2021) from its text alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from training_oracles import trained_bytes

from mtpp.machine.machine import Machine
from mtpp.training.model import Configuration, TrainingModel
from mtpp.training.problem import Schemes
from mtpp.units import PICOSECONDS


class OracleStage(NamedTuple):
    """A stage of level 1: layers with their configurations, and both degrees."""

    chosen: tuple[tuple[int, Configuration], ...]
    data_parallel: int
    tensor_parallel: int


class OracleSuperstage(NamedTuple):
    """A superstage: its degree, and the parts inside each of its devices."""

    data_parallel: int
    inside: tuple[OracleSuperstage | OracleStage, ...]


Parts = tuple[OracleSuperstage | OracleStage, ...]


class Oracle:
    """One question, asked of all plans."""

    def __init__(
        self,
        model: TrainingModel,
        machine: Machine,
        *,
        memory_bytes: int,
        micro_batches: int,
        exact_micro_batches: bool = False,
        schemes: Schemes | None = None,
    ) -> None:
        self.model = model
        self.machine = machine
        self.memory = memory_bytes
        self.micro_batches = micro_batches
        self.exact = exact_micro_batches
        self.schemes = schemes or Schemes()

    def best(self) -> Fraction | None:
        """Return the least time per sample of all plans in ticks, None if there is no plan."""
        times = [time for memory, time in self._plans() if memory <= self.memory]
        return min(times, default=None)

    def least_memory(self) -> int | None:
        """Return the least memory per device with which there is a plan."""
        return min((memory for memory, _ in self._plans()), default=None)

    def _plans(self) -> Iterator[tuple[int, Fraction]]:
        everything = frozenset(range(len(self.model.layers)))
        for plan in self._splits(len(self.machine.levels), everything):
            degrees = degrees_sum(plan)
            if degrees == self.micro_batches or (degrees < self.micro_batches and not self.exact):
                yield self.cost(plan)

    def _splits(self, level: int, layers: frozenset[int]) -> Iterator[Parts]:
        yield from self._parts(level, layers, self.machine.levels[level - 1].devices)

    def _parts(self, level: int, layers: frozenset[int], devices: int) -> Iterator[Parts]:
        if not layers:
            yield ()
            return
        for first in self._beginnings(layers):
            for part, uses in self._as_part(level, first, devices):
                for rest in self._parts(level, layers - first, devices - uses):
                    yield (part, *rest)

    def _beginnings(self, layers: frozenset[int]) -> Iterator[frozenset[int]]:
        """Yield the sets that hold, of *layers*, all predecessors of their members."""
        ordered = sorted(layers)
        for bits in range(1, 2 ** len(ordered)):
            chosen = frozenset(layer for i, layer in enumerate(ordered) if bits >> i & 1)
            if all(u in chosen or u not in layers for u, v in self.model.ends if v in chosen):
                yield chosen

    def _as_part(
        self, level: int, layers: frozenset[int], devices: int
    ) -> Iterator[tuple[OracleSuperstage | OracleStage, int]]:
        for d in range(1, (devices if self.schemes.data_parallel else min(1, devices)) + 1):
            if level > 1:
                for inside in self._splits(level - 1, layers):
                    yield OracleSuperstage(d, inside), d
                continue
            for t in range(1, (devices // d if self.schemes.tensor_parallel else 1) + 1):
                options = [
                    [
                        (layer, one)
                        for one in self.model.layers[layer].configurations.get(t, ())
                        if self.schemes.recompute or not one.recomputes
                    ]
                    for layer in sorted(layers)
                ]
                for chosen in product(*options):
                    yield OracleStage(chosen, d, t), d * t

    def cost(self, plan: Parts) -> tuple[int, Fraction]:
        """Return the most memory that a device needs, and the time per sample in ticks."""
        return self._cost(plan, len(self.machine.levels), degrees_sum(plan))

    def _cost(self, parts: Parts, level: int, in_flight: int) -> tuple[int, Fraction]:
        most, slowest = 0, Fraction(0)
        rate = self.machine.levels[level - 1].link.bandwidth_bytes_per_s
        for part in parts:
            d = part.data_parallel
            if isinstance(part, OracleStage):
                kept = math.ceil(Fraction(in_flight, d))
                memory = sum(one.memory_a * kept + one.memory_b for _, one in part.chosen)
                time = self._stage_time(part, rate)
            else:
                memory, inside = self._cost(part.inside, level - 1, math.ceil(Fraction(in_flight, d)))
                time = max(inside / d, self._superstage_time(part, rate))
            most, slowest = max(most, memory), max(slowest, time)
            in_flight -= degrees_sum((part,))
        return most, slowest

    def _stage_time(self, stage: OracleStage, rate: int) -> Fraction:
        d = stage.data_parallel
        members = {layer for layer, _ in stage.chosen}
        unit = PICOSECONDS[self.model.time_unit]
        ticks, weights = 0, 0
        for layer, one in stage.chosen:
            ticks += math.ceil(Fraction(one.time_per_sample) * unit)
            weights += on_link(4 * trained_bytes(one), rate)
            for edge, (u, v) in zip(self.model.edges, self.model.ends, strict=True):
                if v == layer and u not in members:
                    ticks += on_link(2 * edge.communication_bytes, rate)
                    ticks += on_link(2 * one.forward_sync_bytes.get(edge.source, 0), rate)
                if u == layer and v not in members:
                    ticks += on_link(2 * edge.communication_bytes, rate)
                    ticks += on_link(2 * one.backward_sync_bytes.get(edge.target, 0), rate)
        return Fraction(1, d) * (ticks + Fraction(d - 1, d) * weights)

    def _superstage_time(self, part: OracleSuperstage, rate: int) -> Fraction:
        d = part.data_parallel
        members = set(layers_of(part))
        weights = sum(
            on_link(4 * min(t * trained_bytes(one) for t, ones in layer.configurations.items() for one in ones), rate)
            for i, layer in enumerate(self.model.layers)
            if i in members
        )
        edges = sum(
            on_link(2 * edge.communication_bytes, rate)
            for edge, (u, v) in zip(self.model.edges, self.model.ends, strict=True)
            if (u in members) != (v in members)
        )
        return Fraction(1, d) * (Fraction(d - 1, d) * weights + edges)


def on_link(size: int, rate: int) -> int:
    """Return the ticks that *size* bytes take, rounded up."""
    return math.ceil(Fraction(size * 10**12, rate))


def degrees_sum(parts: Sequence[OracleSuperstage | OracleStage]) -> int:
    """Return the sum over stages of the products of their degrees."""
    return sum(
        part.data_parallel * (degrees_sum(part.inside) if isinstance(part, OracleSuperstage) else 1) for part in parts
    )


def layers_of(part: OracleSuperstage | OracleStage) -> Iterator[int]:
    """Yield the layers of a part."""
    if isinstance(part, OracleStage):
        yield from (layer for layer, _ in part.chosen)
    else:
        for one in part.inside:
            yield from layers_of(one)
