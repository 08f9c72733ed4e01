"""Stages of a plan by ``graphpipe`` and what they cost: passes, memory, synchronisation, and transfers between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mtpp.checker.training.graphpipe.costs import (
    GraphModel,
    LayerChoice,
    Passes,
    moved_bytes,
    synchronisation_ticks,
    transfer_ticks,
)
from mtpp.checker.training.graphpipe.setting import Setting


@dataclass(frozen=True)
class GraphStage:
    """Layers by position with the way each is run, on d devices, with micro-batches of b samples, l in flight, kFkB."""

    runs_as: Mapping[int, LayerChoice]
    d: int
    b: int
    k: int
    in_flight: int


@dataclass(frozen=True)
class TimedStage:
    """A stage as time goes by: both passes of a micro-batch and the synchronisation, in ticks."""

    b: int
    k: int
    in_flight: int
    forward: int
    backward: int
    synchronisation: int

    @property
    def both(self) -> int:
        """Ticks of the two passes."""
        return self.forward + self.backward


@dataclass(frozen=True)
class Channel:
    """An edge of a stage graph: micro-batches go from *source* to *target*, gradients back; in ticks."""

    source: int
    target: int
    forward: int
    backward: int


@dataclass(frozen=True)
class Pipeline:
    """Stages in a topological order, and channels in ascending order."""

    mini_batch: int
    stages: Sequence[TimedStage]
    channels: Sequence[Channel]


def stage_passes(stage: GraphStage) -> Passes:
    """Return what a micro-batch takes in a stage, all of whose layers can run its samples."""
    known = [choice.passes(stage.b // stage.d) for choice in stage.runs_as.values()]
    costs = [one for one in known if one is not None]
    assert len(costs) == len(known)
    return Passes(
        sum(one.forward for one in costs), sum(one.backward for one in costs), sum(one.kept_bytes for one in costs)
    )


def memory_bytes(stage: GraphStage) -> int:
    """Return what a stage needs on each of its devices."""
    fixed = sum(choice.fixed_bytes for choice in stage.runs_as.values())
    return fixed + stage.in_flight * stage_passes(stage).kept_bytes


def timed_stage(stage: GraphStage, setting: Setting) -> TimedStage:
    """Return a stage as a simulation sees it."""
    costs = stage_passes(stage)
    parameters = sum(choice.parameter_bytes for choice in stage.runs_as.values())
    synchronisation = synchronisation_ticks(parameters, stage.d, setting)
    return TimedStage(stage.b, stage.k, stage.in_flight, costs.forward, costs.backward, synchronisation)


def edges_between(model: GraphModel, stage_of: Mapping[int, int], *, line_of: int = 0) -> list[tuple[int, int]]:
    """Return the edges of the stage graph, ascending; *line_of* stages follow one another besides."""
    found = {(stage_of[u], stage_of[v]) for u, v, _ in model.edges if stage_of[u] != stage_of[v]}
    return sorted(found | {(s, s + 1) for s in range(line_of - 1)})


def channels_of(model: GraphModel, stages: Sequence[GraphStage], setting: Setting) -> list[Channel]:
    """Return all transfers between stages, ascending by their ends; with ``sequential``, also those of nothing."""
    stage_of = {layer: s for s, stage in enumerate(stages) for layer in stage.runs_as}
    moved: dict[tuple[int, int], list[int]] = {}
    if setting.sequential:
        moved = {(s, s + 1): [0, 0] for s in range(len(stages) - 1)}
    for u, v, size in model.edges:
        a, b = stage_of[u], stage_of[v]
        if a == b:
            continue
        sums = moved.setdefault((a, b), [0, 0])
        there = size + stages[b].runs_as[v].forward_extra.get(u, 0)
        back = size + stages[a].runs_as[u].backward_extra.get(v, 0)
        sums[0] += moved_bytes(there, stages[a].b, setting.times_of)
        sums[1] += moved_bytes(back, stages[b].b, setting.times_of)
    return [
        Channel(a, b, *(transfer_ticks(size, min(stages[a].d, stages[b].d), setting) for size in sizes))
        for (a, b), sizes in sorted(moved.items())
    ]


def depth_of(count: int, channels: Sequence[Channel]) -> int:
    """Return the stages on the longest path; *channels* lead forward and are in ascending order."""
    longest = [1] * count
    for one in channels:
        longest[one.target] = max(longest[one.target], longest[one.source] + 1)
    return max(longest, default=0)


def time_per_sample(pipeline: Pipeline) -> Fraction:
    """Return what the slowest stage or channel takes for each sample."""
    stages, batch = pipeline.stages, pipeline.mini_batch
    return max(
        *(Fraction(stage.both, stage.b) + Fraction(stage.synchronisation, batch) for stage in stages),
        *(Fraction(one.forward, stages[one.source].b) for one in pipeline.channels),
        *(Fraction(one.backward, stages[one.target].b) for one in pipeline.channels),
        Fraction(0),
    )


def path_bound(pipeline: Pipeline) -> int:
    """Return J, in ticks: no simulated iteration is below it. Stages are in a topological order; O(channels).

    Passes of a stage, between what leads to it and what follows, cannot overlap. The first forward pass of a stage x
    comes after one pass on each stage of any path to it, with a transfer between each two; its M micro-batches occupy
    it; and after its last backward pass there is one on each stage of the path back. Instead of all of x, a path may go
    on to a stage behind it.
    """
    stages, batch = pipeline.stages, pipeline.mini_batch
    taken = [batch // stage.b * stage.both for stage in stages]
    for one in sorted(pipeline.channels, key=lambda one: -one.source):
        through = stages[one.source].both + one.forward + one.backward + taken[one.target]
        taken[one.source] = max(taken[one.source], through)
    both, forward = [0] * len(stages), [0] * len(stages)
    for one in sorted(pipeline.channels, key=lambda one: one.target):
        s, t, sender = one.source, one.target, stages[one.source]
        both[t] = max(both[t], both[s] + sender.both + one.forward + one.backward)
        forward[t] = max(forward[t], forward[s] + sender.forward + one.forward)
    reached = [max(both[x] + taken[x], forward[x] + taken[x] + stage.synchronisation) for x, stage in enumerate(stages)]
    moved = [
        batch // stages[sender].b * ticks
        for one in pipeline.channels
        for sender, ticks in ((one.source, one.forward), (one.target, one.backward))
    ]
    return max(reached + moved, default=0)
