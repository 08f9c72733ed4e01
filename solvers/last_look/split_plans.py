"""Last look at split points and a schedule: order, memory and iteration are derived from the plan once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mtpp.errors import InconsistentResult
from mtpp.names import TORCH_PIPELINING
from mtpp.solvers.last_look.layers import look_at_equal, look_at_least_memory, look_at_memory
from mtpp.solvers.last_look.replayed_schedule import MOST_REPLAYED, replayed_iteration
from mtpp.solvers.planners.pfeife.candidate import Scheduled
from mtpp.solvers.planners.pfeife.schedule_arrays import arrays_of
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.pfeife.schedule import PassKind, PassSchedule


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
    if problem.rules.buffers == TORCH_PIPELINING:
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


def look_at_split_plan(problem: SplitProblem, found: SplitPlan | NoSplitPlan) -> None:
    """Derive a plan's iteration and memory from its split and its passes, and hold it to its problem.

    Notes
    -----
    O(ops + tensors + passes), about 7 µs for each pass up to :data:`MOST_REPLAYED`, 2 µs from there on.
    """
    limits = problem.memory_bytes
    _look_at_line(problem.line, found.problem.line)
    if found.schedule is None:
        return
    _look_at_split(found.split, found.schedule.stages, problem.line.costs.ops)
    sums = split_sums(replace(problem, line=found.problem.line), found.schedule, found.split)
    look_at_equal(found.peak_bytes, sums.peak_bytes, "device", "needs {} bytes")
    if isinstance(found, NoSplitPlan):
        look_at_memory(found.peak_bytes, [None] * problem.devices, "device")
        fits = limits is not None and all(need <= limit for need, limit in zip(found.peak_bytes, limits, strict=True))
        look_at_least_memory(found.memory.value, found.least_memory_bytes, max(limits or (0,)) if fits else None)
        return
    look_at_memory(found.peak_bytes, limits or [None] * problem.devices, "device")
    if found.schedule.devices != problem.devices or found.schedule.micro_batches != problem.micro_batches:
        sizes = f"{found.schedule.devices} devices and {found.schedule.micro_batches} micro-batches"
        due = f"{problem.devices} and {problem.micro_batches}"
        raise InconsistentResult(f"the plan's schedule is of {sizes}, not of {due}")
    look_at_equal([(f, g) for f, g, _ in found.stage_ticks], sums.passes, "stage", "takes {} ticks of both passes")
    handovers = [(*ends, ticks) for ends, ticks in sorted(sums.handovers.items())]
    straight = problem.rules.transport == "direct"
    said = [(s, s + 1, ticks) for s, (*_, ticks) in enumerate(found.stage_ticks[:-1])]
    look_at_equal([*found.straight_handovers] if straight else said, handovers, "hand-over", "is {}")
    many = sum(map(len, found.schedule.rows)) > MOST_REPLAYED
    iteration = _swept_iteration(found) if many else replayed_iteration(found.schedule, sums.passes, handovers)
    if iteration != found.iteration:
        taken = "never ends" if iteration is None else f"takes {iteration}"
        raise InconsistentResult(f"the plan's iteration is {found.iteration} ticks, and replayed it {taken}")


def _look_at_line(given: ModelLine, along: ModelLine) -> None:
    """Check that a line has the ops and tensors of the one that was given, in a topological order."""
    if sorted(map(repr, along.names)) != sorted(map(repr, given.names)):
        raise InconsistentResult("the plan's ops are not those of the model")
    for one in along.costs.tensors:
        first = min(one.consumers, default=along.costs.ops)
        if first <= one.producer:
            raise InconsistentResult(
                f"the plan has {along.names[first]!r} at place {first} along its order of ops, not behind "
                f"{along.names[one.producer]!r} at place {one.producer} that it reads from"
            )
    if along is given:
        return
    for name, ours, theirs in zip(*_by_name(given), _by_name(along)[1], strict=True):
        if ours != theirs:
            raise InconsistentResult(f"{name} costs {theirs} along the plan's order of ops, and {ours} in the model's")
    for there, here in zip(_tensors(along), _tensors(given), strict=True):
        if there != here:
            raise InconsistentResult(f"a tensor is {there} along the plan's order of ops, and {here} in the model's")


def _by_name(line: ModelLine) -> tuple[list[str], list[tuple[int, ...]]]:
    """Return names, told apart from numbers and ascending, and the time and memory of each op."""
    costs = line.costs
    columns = [one.tolist() for one in (costs.forward, costs.backward, costs.fixed_bytes, costs.kept_bytes)]
    names = [repr(name) for name in line.names]
    places = sorted(range(costs.ops), key=names.__getitem__)
    return [names[p] for p in places], [tuple(column[p] for column in columns) for p in places]


def _tensors(line: ModelLine) -> list[tuple[str, list[str], int, int | None]]:
    names = [repr(name) for name in line.names]
    return [
        (names[one.producer], sorted(names[v] for v in one.consumers), one.ticks, one.size_bytes)
        for one in line.costs.tensors
    ]


def _swept_iteration(found: SplitPlan) -> int | None:
    arrays = arrays_of(found.schedule)
    if arrays is None:
        return None
    return Scheduled(found.problem, arrays, None).of(np.asarray(found.split, dtype=np.int64)).ticks


def _look_at_split(split: Sequence[int], stages: int, ops: int) -> None:
    ascending = all(begin < end for begin, end in pairwise(split))
    if len(split) != stages + 1 or split[0] != 0 or split[-1] != ops or not ascending:
        raise InconsistentResult(f"the plan cuts {ops} ops into {stages} stages at {split}")
