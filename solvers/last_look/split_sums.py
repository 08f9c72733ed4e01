"""Memory of devices and times of stages of a split, summed up op by op and tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mtpp.training.pfeife.passes import PassKind
from mtpp.training.pfeife.problem import TORCH, SplitProblem
from mtpp.training.pfeife.schedule import PassSchedule


@dataclass(frozen=True)
class SplitSums:
    """Sums of a split.

    Attributes
    ----------
    passes
        Forward and backward ticks of each stage on its device.
    handovers
        Ticks by source and target: of tensors that go from neighbour to neighbour, or straight to their readers.
    peak_bytes
        That each device needs.
    """

    passes: Sequence[tuple[int, int]]
    handovers: dict[tuple[int, int], int]
    peak_bytes: Sequence[int]


def split_sums(problem: SplitProblem, schedule: PassSchedule, split: Sequence[int]) -> SplitSums:
    """Sum up a split along the problem's line under a schedule. O(ops + tensors · stages + passes)."""
    costs, devices = problem.line.costs, problem.devices
    stages = len(split) - 1
    place = [s for s, (begin, end) in enumerate(pairwise(split)) for _ in range(begin, end)]
    columns = (costs.forward, costs.backward, costs.fixed_bytes, costs.kept_bytes)
    forward, backward, fixed, kept = (column.tolist() for column in columns)
    times = [[0, 0] for _ in range(stages)]
    need, flying = [0] * devices, [0] * stages
    for v, s in enumerate(place):
        speed = problem.speeds[s % devices]
        for k, ticks in enumerate((forward[v], backward[v])):
            times[s][k] += -(-ticks * speed.denominator // speed.numerator)
        need[s % devices] += fixed[v]
        flying[s] += kept[v]
    handovers, received = _handed_over(problem, place, stages)
    if problem.rules.buffers == TORCH:
        for s, size in enumerate(received):
            need[s % devices] += problem.micro_batches * size
    else:
        flying = [size + more for size, more in zip(flying, received, strict=True)]
    for d, row in enumerate(schedule.rows):
        held = most = 0
        for one in row:
            if one.kind == PassKind.FORWARD:
                held += flying[one.stage]
                most = max(most, held)
            elif one.kind != PassKind.INPUT:
                held -= flying[one.stage]
        need[d] += most
    return SplitSums([(there, back) for there, back in times], handovers, need)


def _handed_over(
    problem: SplitProblem, place: Sequence[int], stages: int
) -> tuple[dict[tuple[int, int], int], list[int]]:
    """Return the ticks of hand-overs, and the bytes that each stage receives of a micro-batch, both ways."""
    straight = problem.rules.transport == "direct"
    latency = problem.line.costs.latency
    found = {} if straight else {(s, s + 1): 0 for s in range(stages - 1)}
    received = [0] * stages
    moving: set[tuple[int, int]] = set()
    for one in problem.line.costs.tensors:
        source, size = place[one.producer], one.size_bytes or 0
        readers = {place[v] for v in one.consumers} - {source}
        if straight:
            hops = [(source, target) for target in readers]
        else:
            hops = [(s, s + 1) for s in range(source, max(readers, default=source))]
        for hop in hops:
            found[hop] = found.get(hop, 0) + one.ticks
            moving.add(hop)
            received[hop[0]] += size
            received[hop[1]] += size
    return {hop: ticks + (latency if hop in moving else 0) for hop, ticks in found.items()}, received
