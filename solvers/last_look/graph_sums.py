"""Memory, passes and transfers of stages that form a graph, summed up from the layers of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mtpp.training.model import Configuration
from mtpp.training.stage_costs import PipelineCosts, ScheduledStage
from mtpp.units import PICOSECONDS, Exact

_SECOND = PICOSECONDS["s"]


class StageSums(NamedTuple):
    """Ticks of both passes of a micro-batch and of synchronising gradients, and bytes that each device needs."""

    forward_ticks: int
    backward_ticks: int
    synchronisation_ticks: int
    memory_bytes: int


def stage_sums(costs: PipelineCosts, stage: ScheduledStage) -> StageSums:
    """Sum up a stage: costs of the samples on a device that its layers list, or in proportion. O(layers)."""
    forward = backward = kept = fixed = parameters = 0
    for one in stage.configurations.values():
        ticks = _passes(costs, one, stage.micro_batch // stage.data_parallel)
        forward, backward, kept = forward + ticks[0], backward + ticks[1], kept + ticks[2]
        fixed += one.memory_b
        parameters += one.parameter_bytes if one.trainable_bytes is None else one.trainable_bytes
    d = stage.data_parallel
    ring = _up(2 * (d - 1) * parameters * _SECOND, d * costs.bandwidth_bytes_per_s)
    return StageSums(forward, backward, ring, fixed + stage.in_flight * kept)


def _passes(costs: PipelineCosts, one: Configuration, samples: int) -> tuple[int, int, int]:
    unit = PICOSECONDS[costs.model.time_unit]
    listed = one.micro_batches.get(samples)
    if listed is not None:
        return _scaled(listed.forward, unit, 1), _scaled(listed.backward, unit, 1), listed.memory_bytes
    third = 3 * costs.times_of
    return (
        _scaled(one.time_per_sample, unit * samples, third),
        _scaled(one.time_per_sample, 2 * unit * samples, third),
        _up(one.memory_a * samples, costs.times_of),
    )


def transfer_sums(
    costs: PipelineCosts, stages: Sequence[ScheduledStage], *, line: bool
) -> dict[tuple[int, int], tuple[int, int]]:
    """Sum up what passes between stages there and back, in ticks, by source and target. O(edges).

    Parameters
    ----------
    line
        Whether each stage hands on to the next one, be it nothing.
    """
    model, of = costs.model, costs.times_of
    place = {layer: s for s, stage in enumerate(stages) for layer in stage.configurations}
    moved = {(s, s + 1): (0, 0) for s in range(len(stages) - 1)} if line else {}
    for edge, (u, v) in zip(model.edges, model.ends, strict=True):
        a, b = place[u], place[v]
        if a != b:
            there = edge.communication_bytes + stages[b].configurations[v].forward_sync_bytes.get(edge.source, 0)
            back = edge.communication_bytes + stages[a].configurations[u].backward_sync_bytes.get(edge.target, 0)
            before = moved.get((a, b), (0, 0))
            moved[a, b] = (
                before[0] + _up(there * stages[a].micro_batch, of),
                before[1] + _up(back * stages[b].micro_batch, of),
            )
    found = {}
    for (a, b), sizes in moved.items():
        rate = costs.bandwidth_bytes_per_s * min(stages[a].data_parallel, stages[b].data_parallel)
        there, back = (costs.latency_ticks + _up(size * _SECOND, rate) for size in sizes)
        found[a, b] = there, back
    return found


def _scaled(time: Exact, times: int, parts: int) -> int:
    return _up(time.numerator * times, time.denominator * parts)


def _up(whole: int, parts: int) -> int:
    return -(-whole // parts)
