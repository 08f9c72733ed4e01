"""The path bound J of a pipeline: passes of a stage, between what leads to it and what follows, cannot overlap.

The first forward pass of a stage x comes after one pass on each stage of any path to it, with a transfer between each
two; its M micro-batches occupy it; and after its last backward pass there is one on each stage of the path back.
Instead of all of x, a path may go on to a stage behind it.
"""

from __future__ import annotations

from mtpp.checker.training.graphpipe.pipeline import Pipeline


def path_bound(pipeline: Pipeline) -> int:
    """Return J, in ticks: no simulated iteration is below it. Stages are in a topological order; O(channels)."""
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
