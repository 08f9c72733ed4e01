"""Costs of the stages of a pipeline and of the transfers between them, for any size of micro-batches, in ticks.

The cost model of GraphPipe (Jeon et al. 2025, sections 3 and 5), exact: every cost of a layer, of a transfer and of a
synchronisation is rounded up to whole ticks (1 tick = 1 ps) once, then added up. Costs of samples that a model does not
list follow from those of its own micro-batches in proportion, and a backward pass takes twice the forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mtpp.errors import InputError
from mtpp.machine.link import Link
from mtpp.training.model import Configuration, TrainingModel
from mtpp.training.stage_graph import PipelineStage, StageGraph, StageTransfer, interleaved_order
from mtpp.units import PICOSECONDS, Exact, ceil_ratio

BACKWARD = 2
"""Times a forward pass that a backward pass takes, where a model does not tell them apart."""


@dataclass(frozen=True)
class PassCosts:
    """Ticks of both passes of a micro-batch on each device, and bytes kept for it while it is in flight."""

    forward_ticks: int
    backward_ticks: int
    memory_bytes: int

    @property
    def both_ticks(self) -> int:
        """Ticks of both passes together."""
        return self.forward_ticks + self.backward_ticks


@dataclass(frozen=True)
class ScheduledStage:
    """Layers that share devices, with their micro-batches.

    Attributes
    ----------
    configurations
        Of each layer, by its position in the model.
    data_parallel
        d: replicas, which take micro_batch / d samples each.
    micro_batch
        b, in samples; a multiple of d.
    in_flight, interval
        Micro-batches in flight, and k of the kFkB order.
    """

    configurations: Mapping[int, Configuration]
    data_parallel: int
    micro_batch: int
    in_flight: int
    interval: int = 1

    @property
    def samples(self) -> int:
        """Samples of a micro-batch on each device."""
        return self.micro_batch // self.data_parallel


@dataclass(frozen=True)
class PipelineCosts:
    """A model, its devices and its mini-batch: all that costs depend on.

    Attributes
    ----------
    times_of
        Samples that the model's times, memory and bytes are of.
    """

    model: TrainingModel
    mini_batch: int
    link: Link
    times_of: int

    def passes(self, configuration: Configuration, samples: int) -> PassCosts:
        """Return what a layer costs for so many samples on each device."""
        known = configuration.micro_batches.get(samples)
        if known is not None:
            return PassCosts(self._ticks(known.forward), self._ticks(known.backward), known.memory_bytes)
        time, whole = configuration.time_per_sample * samples, (1 + BACKWARD) * self.times_of
        return PassCosts(
            self._ticks(time, whole),
            self._ticks(BACKWARD * time, whole),
            ceil_ratio(configuration.memory_a * samples, self.times_of),
        )

    def _ticks(self, time: Exact, parts: int = 1) -> int:
        return ceil_ratio(time.numerator * PICOSECONDS[self.model.time_unit], time.denominator * parts)

    def transfer(self, sizes: Sequence[int], micro_batch: int, width: int) -> int:
        """Return the ticks of a transfer of a micro-batch over *width* links, given bytes of each of its tensors."""
        return self.moved(sum(self.scaled(size, micro_batch) for size in sizes), width)

    def scaled(self, size: int, micro_batch: int) -> int:
        """Return the bytes of a tensor for a micro-batch."""
        return ceil_ratio(size * micro_batch, self.times_of)

    def moved(self, count: int, width: int) -> int:
        """Return the ticks of moving so many bytes over *width* links."""
        return self.link.message_ps(count, width)

    def scaled_edges(self, micro_batch: int) -> Sequence[int]:
        """Return the bytes of the tensors of all edges for a micro-batch."""
        if micro_batch not in self._scaled_edges:
            self._scaled_edges[micro_batch] = [
                self.scaled(edge.communication_bytes, micro_batch) for edge in self.model.edges
            ]
        return self._scaled_edges[micro_batch]

    @cached_property
    def _scaled_edges(self) -> dict[int, Sequence[int]]:
        return {}

    def synchronisation(self, stage: ScheduledStage) -> int:
        """Return the ticks of synchronising the gradients of a stage: a ring over its replicas."""
        return self.ring(sum(one.gradient_bytes for one in stage.configurations.values()), stage.data_parallel)

    def ring(self, count: int, d: int) -> int:
        """Return the ticks of synchronising so many bytes by a ring over so many replicas."""
        return self.link.streaming_ps(2 * (d - 1) * count, d)

    def memory_bytes(self, stage: ScheduledStage) -> int:
        """Return the bytes that each device of a stage needs."""
        kept = sum(self.passes(one, stage.samples).memory_bytes for one in stage.configurations.values())
        return sum(one.memory_b for one in stage.configurations.values()) + stage.in_flight * kept

    def stage_name(self, stage: ScheduledStage) -> str:
        """Return the first and the last layer of a stage, from sources to sinks."""
        ordered = [layer for layer in self.model.order if layer in stage.configurations]
        first, last = (self.model.layers[ordered[at]].name for at in (0, -1))
        return first if len(ordered) == 1 else f"{first} … {last}"

    def stage_graph(self, stages: Sequence[ScheduledStage], names: Sequence[str], *, line: bool = False) -> StageGraph:
        """Return the stage graph of a pipeline, whose layers are each in one of the stages.

        Parameters
        ----------
        line
            Whether each stage waits for the one before, though nothing may pass between them.

        Notes
        -----
        Bytes that hand a tensor to all devices that share a layer (``forward_sync_bytes``, ``backward_sync_bytes``) are
        added to the tensor's own.
        """
        place = {layer: s for s, stage in enumerate(stages) for layer in stage.configurations}
        moved: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for edge, (u, v) in zip(self.model.edges, self.model.ends, strict=True):
            a, b = place[u], place[v]
            if a == b:
                continue
            forward, backward = moved.setdefault((a, b), ([], []))
            size = edge.communication_bytes
            forward.append(size + stages[b].configurations[v].forward_sync_bytes.get(edge.source, 0))
            backward.append(size + stages[a].configurations[u].backward_sync_bytes.get(edge.target, 0))
        if line:
            for s in range(len(stages) - 1):
                moved.setdefault((s, s + 1), ([], []))
        return StageGraph(
            self.model.name,
            self.model.time_unit,
            self.mini_batch,
            [self._stage(stage, name) for stage, name in zip(stages, names, strict=True)],
            [self._transfer(stages, *ends, *sizes) for ends, sizes in sorted(moved.items())],
        )

    def _stage(self, stage: ScheduledStage, name: str) -> PipelineStage:
        costs = [self.passes(one, stage.samples) for one in stage.configurations.values()]
        count, rest = divmod(self.mini_batch, stage.micro_batch)
        if rest:
            problem = f"micro-batches of {stage.micro_batch:,} samples ({name}) do not divide {self.mini_batch:,}"
            raise InputError(problem, parameter="batch_size")
        return PipelineStage(
            name,
            stage.micro_batch,
            sum(one.forward_ticks for one in costs),
            sum(one.backward_ticks for one in costs),
            self.synchronisation(stage),
            interleaved_order(count, stage.in_flight, stage.interval),
        )

    def _transfer(
        self, stages: Sequence[ScheduledStage], a: int, b: int, forward: Sequence[int], backward: Sequence[int]
    ) -> StageTransfer:
        width = min(stages[a].data_parallel, stages[b].data_parallel)
        return StageTransfer(
            a,
            b,
            self.transfer(forward, stages[a].micro_batch, width),
            self.transfer(backward, stages[b].micro_batch, width),
        )
