"""Simulation of one iteration of a training pipeline: when each pass and each transfer begins, and what follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int64Array
from mtpp.training.stage_graph import StageGraph
from mtpp.training.timeline import BACKWARD, FORWARD, SYNCHRONISATION, TRANSFER, Bar, Stretch, Timeline, TimelineRow
from mtpp.units import PICOSECONDS

AT_ONCE = -1
"""Channel of a message that takes no turn: it is there when its pass ends."""


class Span(NamedTuple):
    """A pass, or the message that it sends, from *start* to *end* in ticks; *number* as in orders of passes."""

    number: int
    start: int
    end: int


def _drawn_name(number: int) -> str:
    """Return what charts call a pass, with micro-batches counted from 0 as in all other schedules."""
    return f"{'F' if number > 0 else 'B'}{abs(number) - 1}"


@dataclass(frozen=True)
class RowTimes:
    """Figures of a row, which runs one pass at a time, in ticks.

    Attributes
    ----------
    first_forward_start, first_backward_start, last_forward_end, last_backward_end
        Of its passes, halves of backward passes included, whatever their micro-batches.
    busy
        Its passes.
    bubble
        The rest of the iteration: it waits.
    peak_in_flight
        Micro-batches whose activations it keeps at a time, at most.
    """

    first_forward_start: int
    first_backward_start: int
    last_forward_end: int
    last_backward_end: int
    busy: int
    bubble: int
    peak_in_flight: int


@dataclass(frozen=True)
class StageTimes(RowTimes):
    """Figures of a stage, in ticks; *synchronisation* comes after the last pass, and is no bubble."""

    synchronisation: int


@dataclass(frozen=True)
class ChannelTimes:
    """A channel from stage *source* to stage *target*, with the ticks that its *messages* keep it busy."""

    source: int
    target: int
    forward: bool
    messages: int
    busy: int


@dataclass(frozen=True)
class Phases:
    """Warm-up, steady state and cool-down of a pipeline; they add up to the iteration, in ticks.

    Attributes
    ----------
    warm_up
        Until the first backward pass begins.
    steady
        In between.
    cool_down
        From the end of the last forward pass on.
    """

    warm_up: int
    steady: int
    cool_down: int


@dataclass(frozen=True, eq=False)
class SimulatedPasses(ABC):
    """Starts of all passes and messages of a network.

    Attributes
    ----------
    start
        Of each pass of *network* in ticks, int64.
    sent
        When each message enters its channel, in ticks, int64.
    """

    network: PassNetwork
    start: Int64Array
    sent: Int64Array

    @cached_property
    def end(self) -> Int64Array:
        """When each pass ends, in ticks, int64."""
        return self.start + self.network.duration

    @property
    @abstractmethod
    def iteration(self) -> int:
        """Ticks until all is done."""

    @property
    @abstractmethod
    def row_times(self) -> Sequence[RowTimes]:
        """Figures of each row."""

    def passes_of(self, row: int) -> slice:
        """Return the passes of a row in the network."""
        return slice(*map(int, self.network.row_start[row : row + 2]))

    def extremes(self, row: int, forward: NDArray[np.bool_]) -> tuple[int, int, int, int]:
        """Return the first starts of forward and backward passes of a row, and the last ends; *forward*: which is."""
        start, end = self.start[self.passes_of(row)], self.end[self.passes_of(row)]
        first, last = (start[forward].min(), start[~forward].min()), (end[forward].max(), end[~forward].max())
        return int(first[0]), int(first[1]), int(last[0]), int(last[1])

    @cached_property
    def phases(self) -> Phases:
        """Warm-up, steady state and cool-down."""
        first = min(one.first_backward_start for one in self.row_times)
        last = max(one.last_forward_end for one in self.row_times)
        return Phases(first, last - first, self.iteration - last)

    @property
    def bubble_share(self) -> float:
        """Part of the iteration that rows wait, on average over rows; 0 where there is nothing to do."""
        waits = sum(one.bubble for one in self.row_times)
        return waits / (len(self.row_times) * self.iteration) if self.iteration else 0.0


@dataclass(frozen=True, eq=False)
class Simulation(SimulatedPasses):
    """Starts of all passes and messages of a stage graph, whose rows are stages."""

    graph: StageGraph

    @cached_property
    def ends(self) -> Sequence[int]:
        """When the last pass of each stage ends, in ticks."""
        return [int(end) for end in self.end[self.network.row_start[1:] - 1]]

    @cached_property
    def iteration(self) -> int:
        """Ticks until all stages have synchronised their gradients."""
        stages = self.graph.stages
        return max(end + stage.synchronisation_ticks for end, stage in zip(self.ends, stages, strict=True))

    @cached_property
    def critical(self) -> Sequence[Stretch]:
        """Passes of the critical path, and the synchronisation that it may end with: O(passes + messages).

        It ends with the first stage that ends the iteration.
        """
        synchronisation = [stage.synchronisation_ticks for stage in self.graph.stages]
        last = next(s for s, end in enumerate(self.ends) if end + synchronisation[s] == self.iteration)
        row_start = self.network.row_start
        found = []
        for step in critical_path(self.network, self.start, self.sent, int(row_start[last + 1]) - 1):
            if not step.message:
                row = int(np.searchsorted(row_start, step.number, side="right")) - 1
                found.append(Stretch(row, int(self.start[step.number]), int(self.end[step.number])))
        if synchronisation[last]:
            found.append(Stretch(last, self.ends[last], self.iteration))
        return found

    @cached_property
    def stages(self) -> Sequence[StageTimes]:
        """Figures of each stage."""
        return [self._stage(s) for s in range(len(self.graph.stages))]

    @property
    def row_times(self) -> Sequence[StageTimes]:
        """Figures of each stage."""
        return self.stages

    def passes(self, stage: int) -> Sequence[Span]:
        """Return the passes of a stage in the order in which they run."""
        here = self.passes_of(stage)
        numbers = self.graph.stages[stage].order.tolist()
        return list(map(Span, numbers, self.start[here].tolist(), self.end[here].tolist()))

    @cached_property
    def _by_channel(self) -> tuple[Int64Array, Int64Array]:
        """Messages of all channels, one after the other, and where each begins."""
        order = np.argsort(self.network.channel, kind="stable")
        return order, np.searchsorted(self.network.channel[order], np.arange(self.network.channels + 1))

    def messages(self, channel: int) -> Sequence[Span]:
        """Return the messages of a channel of :attr:`channels`, by the passes that send them, in their order."""
        order, starts = self._by_channel
        at = order[starts[channel] : starts[channel + 1]]
        sender = np.searchsorted(self.network.message_start, at, side="right") - 1
        stage = self.channels[channel].source
        numbers = self.graph.stages[stage].order[sender - self.network.row_start[stage]]
        ends = self.sent[at] + self.network.message_duration[at]
        return list(map(Span, numbers.tolist(), self.sent[at].tolist(), ends.tolist()))

    def _stage(self, s: int) -> StageTimes:
        stage, forward = self.graph.stages[s], self.graph.stages[s].order > 0
        busy = stage.micro_batches * (stage.forward_ticks + stage.backward_ticks)
        return StageTimes(
            *self.extremes(s, forward),
            busy,
            self.iteration - busy - stage.synchronisation_ticks,
            int(np.cumsum(np.where(forward, 1, -1)).max()),
            stage.synchronisation_ticks,
        )

    @cached_property
    def channels(self) -> Sequence[ChannelTimes]:
        """Figures of each channel: for each transfer forward, then back."""
        found = []
        for one in self.graph.transfers:
            for source, target, ticks, forward in (
                (one.source, one.target, one.forward_ticks, True),
                (one.target, one.source, one.backward_ticks, False),
            ):
                count = self.graph.stages[source].micro_batches
                found.append(ChannelTimes(source, target, forward, count, count * ticks))
        return found

    @cached_property
    def timeline(self) -> Timeline:
        """All passes, synchronisations and messages, as charts draw them: O(passes + messages)."""
        graph = self.graph
        rows = [TimelineRow(f"stage {s}", graph.label(s), self._bars(s)) for s in range(len(graph.stages))]
        channels = []
        for c, one in enumerate(self.channels):
            bars = [Bar(TRANSFER, _drawn_name(m.number), "", m.start, m.end) for m in self.messages(c)]
            name = f"{one.source} → {one.target}"
            channels.append(TimelineRow(name, name, bars))
        unit = PICOSECONDS[graph.time_unit]
        return Timeline(graph.name, self.iteration, unit, timed=True, rows=rows, channels=channels)

    def _bars(self, stage: int) -> Sequence[Bar]:
        bars = [
            Bar(
                FORWARD if one.number > 0 else BACKWARD,
                _drawn_name(one.number),
                str(abs(one.number) - 1),
                one.start,
                one.end,
            )
            for one in self.passes(stage)
        ]
        end, gradients = self.ends[stage], self.graph.stages[stage].synchronisation_ticks
        if gradients:
            bars.append(Bar(SYNCHRONISATION, SYNCHRONISATION, "", end, end + gradients))
        return bars


class PathStep(NamedTuple):
    """A pass of a network, or a message, by its number there."""

    message: bool
    number: int


def critical_path(network: PassNetwork, start: Int64Array, sent: Int64Array, last: int | None = None) -> list[PathStep]:
    """Return passes and messages each of which begins when the one before it ends, up to the last pass.

    Parameters
    ----------
    start, sent
        Starts of passes and messages, as :func:`mtpp.solvers.planners.simulation.kernels.pass_times.pass_times` sets
        them; every pass runs.
    last
        The last pass of the path; None: the one that ends with the iteration.

    Notes
    -----
    Of several, the path that comes from the lowest row at the end, unless *last* is given, and, backwards, stays in a
    row where it can, else takes the message with the lowest number; a message comes from its sender where it can, else
    from the message before it on its channel. O(passes + messages).
    """
    row = np.repeat(np.arange(len(network.row_start) - 1), np.diff(network.row_start))
    sender = np.repeat(np.arange(len(start)), np.diff(network.message_start))
    end, arrival = start + network.duration, sent + network.message_duration
    previous = _previous_on_channel(network)
    incoming = np.argsort(network.target, kind="stable")
    first = np.searchsorted(network.target[incoming], np.arange(len(start) + 1))
    if last is None:
        last = int(np.lexsort((np.arange(len(end)), -row, end))[-1])
    path = [PathStep(message=False, number=last)]
    while True:
        step = path[-1]
        at = step.number
        if step.message:
            if sent[at] == end[sender[at]]:
                path.append(PathStep(message=False, number=int(sender[at])))
            else:
                path.append(PathStep(message=True, number=int(previous[at])))
            continue
        if at and row[at - 1] == row[at] and end[at - 1] == start[at]:
            path.append(PathStep(message=False, number=at - 1))
            continue
        arrived = (int(m) for m in incoming[first[at] : first[at + 1]] if arrival[m] == start[at])
        found = next(arrived, None)
        if found is None:
            return path[::-1]
        path.append(PathStep(message=True, number=found))


def _previous_on_channel(network: PassNetwork) -> Int64Array:
    """Return the message before each one on its channel, −1 for none, int64."""
    order = np.argsort(network.channel, kind="stable")
    previous = np.full(len(order), -1, dtype=np.int64)
    same = network.channel[order[1:]] == network.channel[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    return previous


@dataclass(frozen=True, eq=False)
class PassNetwork:
    """Passes, numbered row by row in the order in which they run, and messages, numbered by the passes that send them.

    A simulation needs no more than this. A row is what runs one pass at a time: a stage, or a device with several
    stages. A message leaves when its pass ends, takes its turn on its channel, and the pass that it is for waits for
    it. All messages of a channel come from one row, so that first come, first served is the order of that row.

    Attributes
    ----------
    row_start
        Where the passes of each row begin, int64, shape (rows + 1,).
    duration
        Of each pass in ticks, int64.
    message_start
        Where the messages of each pass begin, int64, shape (passes + 1,).
    target
        The pass that waits for each message, int64.
    channel
        Of each message, int64, or :data:`AT_ONCE`.
    message_duration
        Ticks that each message keeps its channel busy, int64.
    channels
        How many there are.
    """

    row_start: Int64Array
    duration: Int64Array
    message_start: Int64Array
    target: Int64Array
    channel: Int64Array
    message_duration: Int64Array
    channels: int
