"""Simulated iteration of a pipeline: every pass as early as its stage's order, its inputs and the channels allow.

Orders of passes are fixed and a channel takes messages in the order in which they come, which is that of the sender's
passes. So every time is a maximum over times that are known before it, and no queue of events is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mtpp.checker.training.graphpipe.pipeline import Pipeline, TimedStage

MOST_MESSAGES = 10_000_000
"""Of all channels of a pipeline that is simulated."""


def passes_in_order(count: int, in_flight: int, k: int) -> list[int]:
    """Return the passes of *count* micro-batches: j is the forward pass of micro-batch j, from 1 on, -j its backward.

    F1 .. Fl, then k backwards and k forwards in turn, then what is left.
    """
    warm = min(in_flight, count)
    order = list(range(1, warm + 1))
    forward = backward = 0
    while warm + forward < count:
        some = min(k, count - backward)
        order += range(-backward - 1, -backward - some - 1, -1)
        backward += some
        more = min(k, count - warm - forward)
        order += range(warm + forward + 1, warm + forward + more + 1)
        forward += more
    order += range(-backward - 1, -count - 1, -1)
    return order


@dataclass
class _Channel:
    """Arrivals of messages so far; message i is at place i - 1."""

    receiver: int
    ticks: int
    sender_size: int
    receiver_size: int
    arrivals: list[int] = field(default_factory=list)

    def send(self, time: int) -> None:
        """Queue a message at *time*."""
        self.arrivals.append(max(time, self.arrivals[-1] if self.arrivals else 0) + self.ticks)

    def arrival(self, micro_batch: int) -> int | None:
        """Return when all samples that the receiver's micro-batch has, and those before, are there; None: unknown."""
        needed = -(-micro_batch * self.receiver_size // self.sender_size)
        return self.arrivals[needed - 1] if needed <= len(self.arrivals) else None


@dataclass
class _Running:
    """A stage in a simulation: its order, how far it is, and its channels by direction."""

    stage: TimedStage
    order: list[int]
    at: int = 0
    free: int = 0
    forward_ends: list[int] = field(default_factory=list)
    inputs: tuple[list[_Channel], list[_Channel]] = field(default_factory=lambda: ([], []))
    outputs: tuple[list[_Channel], list[_Channel]] = field(default_factory=lambda: ([], []))

    def advance(self) -> bool:
        """Run all passes whose inputs are known; return whether there were any."""
        begun = self.at
        while self.at < len(self.order):
            signed = self.order[self.at]
            backward = signed < 0
            micro_batch = abs(signed)
            start = self.free
            if backward:
                if micro_batch > len(self.forward_ends):
                    break
                start = max(start, self.forward_ends[micro_batch - 1])
            for channel in self.inputs[backward]:
                arrival = channel.arrival(micro_batch)
                if arrival is None:
                    return self.at > begun
                start = max(start, arrival)
            self.free = start + (self.stage.backward if backward else self.stage.forward)
            if not backward:
                self.forward_ends.append(self.free)
            for channel in self.outputs[backward]:
                channel.send(self.free)
            self.at += 1
        return self.at > begun


def messages(pipeline: Pipeline) -> int:
    """Return how many micro-batches all channels move, there and back."""
    batch, stages = pipeline.mini_batch, pipeline.stages
    return sum(batch // stages[s].b for one in pipeline.channels for s in (one.source, one.target))


def simulated_iteration(pipeline: Pipeline) -> int | None:
    """Return the ticks of one iteration; None if passes wait for each other.

    Notes
    -----
    O(passes · channels of a stage) time.
    """
    stages = pipeline.stages
    running = [
        _Running(stage, passes_in_order(pipeline.mini_batch // stage.b, stage.in_flight, stage.k)) for stage in stages
    ]
    for one in pipeline.channels:
        for backward, (sender, receiver, ticks) in enumerate(
            ((one.source, one.target, one.forward), (one.target, one.source, one.backward))
        ):
            channel = _Channel(receiver, ticks, stages[sender].b, stages[receiver].b)
            running[sender].outputs[backward].append(channel)
            running[receiver].inputs[backward].append(channel)
    waiting = list(range(len(stages) - 1, -1, -1))
    queued = [True] * len(stages)
    while waiting:
        s = waiting.pop()
        queued[s] = False
        if running[s].advance():
            for channel in (*running[s].outputs[0], *running[s].outputs[1]):
                if not queued[channel.receiver]:
                    queued[channel.receiver] = True
                    waiting.append(channel.receiver)
    if any(one.at < len(one.order) for one in running):
        return None
    return max((one.free + one.stage.synchronisation for one in running), default=0)
