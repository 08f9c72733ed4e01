"""Timed schedule: passes of devices in their order, what each stage takes, and what stages hand to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mtpp.errors import InputError
from mtpp.training.pfeife.costs import LARGEST_SUM
from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule
from mtpp.units import InTicks


@dataclass(frozen=True)
class Handover:
    """Tensors that stage *source* hands to stage *target* behind it, and gradients back; *ticks* each way."""

    source: int
    target: int
    ticks: int


@dataclass(frozen=True, eq=False)
class TimedSchedule(InTicks):
    """A schedule whose passes and hand-overs take known times; an iteration stays below :data:`LARGEST_SUM` ticks.

    Attributes
    ----------
    ticks_per_unit
        Ticks in *time_unit*; 1 tick = 1 ps unless that is ``"1"``.
    forward_ticks, backward_ticks
        Of each stage and one micro-batch.
    handovers
        From stage to stage; a pass waits for those of all stages that hand it something, even in no time.
    """

    name: str
    time_unit: str
    ticks_per_unit: int
    schedule: PassSchedule
    forward_ticks: Sequence[int]
    backward_ticks: Sequence[int]
    handovers: Sequence[Handover]

    def __post_init__(self) -> None:
        stages = self.schedule.stages
        if not len(self.forward_ticks) == len(self.backward_ticks) == stages:
            raise InputError(f"the schedule has {stages:,} stages, and {len(self.forward_ticks):,} have times")
        moved = 2 * sum(one.ticks for one in self.handovers)
        if self.schedule.micro_batches * (sum(self.forward_ticks) + sum(self.backward_ticks) + moved) >= LARGEST_SUM:
            raise InputError("the times are too large: an iteration may reach 2^61 ticks", remedy="check the times")

    @property
    def loops(self) -> int:
        """Stages of the devices that have most."""
        return -(-self.schedule.stages // self.schedule.devices)

    def ticks(self, one: Pass) -> int:
        """Return what a pass takes; the half for inputs is the larger one where they differ."""
        if one.kind == PassKind.FORWARD:
            return self.forward_ticks[one.stage]
        whole = self.backward_ticks[one.stage]
        if one.kind == PassKind.BACKWARD:
            return whole
        return whole // 2 if one.kind == PassKind.WEIGHT else whole - whole // 2

    @cached_property
    def _targets(self) -> Sequence[Sequence[tuple[int, int]]]:
        """Stages that each stage hands tensors to, ascending, with the ticks."""
        return self._neighbours([(one.source, one.target, one.ticks) for one in self.handovers])

    @cached_property
    def _sources(self) -> Sequence[Sequence[tuple[int, int]]]:
        """Stages that each stage hands gradients to, ascending, with the ticks."""
        return self._neighbours([(one.target, one.source, one.ticks) for one in self.handovers])

    def _neighbours(self, ends: Sequence[tuple[int, int, int]]) -> Sequence[Sequence[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = [[] for _ in self.forward_ticks]
        for source, target, ticks in sorted(ends):
            found[source].append((target, ticks))
        return found

    def messages(self, one: Pass) -> Iterator[tuple[Pass, int]]:
        """Yield the passes of other stages that wait for what a pass sends, by stage, and the ticks of each hand-over.

        Forward passes send tensors; backward passes, or their halves for inputs, send gradients.
        """
        if one.kind == PassKind.FORWARD:
            for stage, ticks in self._targets[one.stage]:
                yield Pass(stage, PassKind.FORWARD, one.micro_batch), ticks
        elif one.kind != PassKind.WEIGHT:
            for stage, ticks in self._sources[one.stage]:
                yield self._backward(stage, one.micro_batch), ticks

    def followers(self, one: Pass) -> Iterator[Pass]:
        """Yield the passes of the same stage and micro-batch that a pass has to end before."""
        if one.kind == PassKind.FORWARD:
            yield self._backward(one.stage, one.micro_batch)
        elif one.kind == PassKind.INPUT:
            yield Pass(one.stage, PassKind.WEIGHT, one.micro_batch)

    def _backward(self, stage: int, micro_batch: int) -> Pass:
        """Return the backward pass, or its half for inputs."""
        whole = Pass(stage, PassKind.BACKWARD, micro_batch)
        return whole if whole in self.schedule.passes else Pass(stage, PassKind.INPUT, micro_batch)


def neighbour_handovers(ticks: Sequence[int]) -> Sequence[Handover]:
    """Return the hand-overs of stages that each hand everything to the next one: *ticks* of all but the last."""
    return [Handover(s, s + 1, one) for s, one in enumerate(ticks)]
