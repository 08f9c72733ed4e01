"""Simulated iteration of a timed schedule: starts of all passes and hand-overs, and the figures that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.training.pfeife.schedule import Pass, PassKind
from mtpp.training.pfeife.timed_schedule import TimedSchedule
from mtpp.training.simulation import RowTimes, SimulatedPasses, critical_path
from mtpp.training.timeline import (
    BACKWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    TRANSFER,
    Bar,
    Stretch,
    Timeline,
    TimelineRow,
)

_KINDS = (FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT)


@dataclass(frozen=True)
class DeviceTimes(RowTimes):
    """Figures of a device, in ticks.

    Attributes
    ----------
    stages
        That it runs.
    first_start, last_end
        Of all its passes.
    """

    stages: Sequence[int]
    first_start: int
    last_end: int


@dataclass(frozen=True)
class LinkTimes:
    """A channel from device *source* to device *target*, with the ticks that its *messages* keep it busy."""

    source: int
    target: int
    messages: int
    busy: int


@dataclass(frozen=True)
class PathPart:
    """A pass of the critical path, or a hand-over with the pass that sends it and the stage that it goes to."""

    sender: Pass
    target: int | None
    start: int
    end: int

    @property
    def name(self) -> str:
        """``0F0``, or ``0F0→1`` for a hand-over."""
        return self.sender.name if self.target is None else f"{self.sender.name}→{self.target}"


@dataclass(frozen=True, eq=False)
class ScheduleRun(SimulatedPasses):
    """Starts of all passes and hand-overs of a timed schedule, whose rows are devices.

    Attributes
    ----------
    links
        Devices at the ends of each channel: there is one for each pair.
    """

    timed: TimedSchedule
    links: Sequence[tuple[int, int]]

    @cached_property
    def passes(self) -> Sequence[Pass]:
        """All of them, device by device, as in *network*."""
        return [one for row in self.timed.schedule.rows for one in row]

    @cached_property
    def iteration(self) -> int:
        """Ticks until the last pass ends."""
        return int(self.end.max())

    @cached_property
    def starts(self) -> dict[str, int]:
        """When each pass begins, in ticks, by its name: ``0F0``."""
        return {one.name: start for one, start in zip(self.passes, self.start.tolist(), strict=True)}

    @cached_property
    def devices(self) -> Sequence[DeviceTimes]:
        """Figures of each device."""
        return [self._device(d) for d in range(self.timed.schedule.devices)]

    @property
    def row_times(self) -> Sequence[DeviceTimes]:
        """Figures of each device."""
        return self.devices

    def _device(self, d: int) -> DeviceTimes:
        schedule, here = self.timed.schedule, self.passes_of(d)
        busy = int(self.network.duration[here].sum())
        return DeviceTimes(
            *self.extremes(d, np.array([one.kind == PassKind.FORWARD for one in schedule.rows[d]])),
            busy,
            self.iteration - busy,
            schedule.in_flight[d],
            range(d, schedule.stages, schedule.devices),
            int(self.start[here][0]),
            int(self.end[here][-1]),
        )

    @cached_property
    def channels(self) -> Sequence[LinkTimes]:
        """Figures of each channel."""
        here = self.network.channel >= 0
        used = self.network.channel[here]
        counts = np.bincount(used, minlength=len(self.links)).tolist()
        busy = [0] * len(self.links)
        for c, ticks in zip(used.tolist(), self.network.message_duration[here].tolist(), strict=True):
            busy[c] += ticks
        return [LinkTimes(*ends, counts[c], busy[c]) for c, ends in enumerate(self.links)]

    @cached_property
    def _sender(self) -> Int64Array:
        """The pass that sends each message."""
        return np.repeat(np.arange(len(self.start)), np.diff(self.network.message_start))

    @cached_property
    def critical_path(self) -> Sequence[PathPart]:
        """Passes and hand-overs without a gap from the first pass to the end; hand-overs in no time are left out."""
        parts = []
        for step in critical_path(self.network, self.start, self.sent):
            at = step.number
            if not step.message:
                parts.append(PathPart(self.passes[at], None, int(self.start[at]), int(self.end[at])))
            elif self.network.message_duration[at]:
                parts.append(self._message(at))
        return parts

    def _message(self, m: int) -> PathPart:
        sent, target = int(self.sent[m]), self.passes[int(self.network.target[m])].stage
        sender = self.passes[int(self._sender[m])]
        return PathPart(sender, target, sent, sent + int(self.network.message_duration[m]))

    @cached_property
    def timeline(self) -> Timeline:
        """All passes and hand-overs, as charts draw them: O(passes + messages)."""
        timed, schedule = self.timed, self.timed.schedule
        bars = [
            Bar(_KINDS[one.kind], one.name, str(one.micro_batch), start, end, one.stage // schedule.devices)
            for one, start, end in zip(self.passes, self.start.tolist(), self.end.tolist(), strict=True)
        ]
        starts = self.network.row_start.tolist()
        rows = [
            TimelineRow(f"device {d}", f"device {d}", bars[starts[d] : starts[d + 1]]) for d in range(schedule.devices)
        ]
        sent: list[list[Bar]] = [[] for _ in self.links]
        for m, c in enumerate(self.network.channel.tolist()):
            if c >= 0:
                part = self._message(m)
                sent[c].append(Bar(TRANSFER, part.name, "", part.start, part.end))
        names = [f"{source} → {target}" for source, target in self.links]
        return Timeline(
            timed.name,
            self.iteration,
            timed.ticks_per_unit,
            timed.timed,
            rows,
            [TimelineRow(name, name, one) for name, one in zip(names, sent, strict=True)],
            timed.loops,
            [
                Stretch(part.sender.stage % schedule.devices, part.start, part.end)
                for part in self.critical_path
                if part.target is None
            ],
        )
