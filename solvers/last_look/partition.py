"""Last look at a partition: its order, its groups, its bottleneck and its memory, against its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from mtpp.errors import InconsistentBound, InconsistentResult, InvalidPartition
from mtpp.inference.instance import Instance
from mtpp.inference.objective import StageCosts, keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition

MOST_SUMMED = 100_000
"""Ops and readers of tensors that are summed up in plain Python, which takes less than a microsecond for each."""


def look_at_partition(
    instance: Instance,
    partition: Partition,
    bottleneck: int,
    found_by: str,
    *,
    together: Sequence[Sequence[str]] = (),
    bounds: Iterable[tuple[str, int]] = (),
    costs: StageCosts | None = None,
) -> None:
    """Derive a partition's bottleneck and memory from its assignment, and hold it to its order, groups and bounds.

    Parameters
    ----------
    bottleneck
        In ticks, as the search says it.
    found_by
        Part of the search that says so.
    together
        Groups of op names that share a stage.
    bounds
        Names and values of all lower bounds, in ticks.
    costs
        Of the partition, where they were derived from it before.

    Notes
    -----
    O(n + pins) beside the costs.
    """
    try:
        again = Partition.from_stages(instance, partition.assignment)
    except InvalidPartition as error:
        raise InconsistentResult(f"the partition found by {found_by} is none: {error.problem}") from None
    costs = costs or stage_costs(instance, again)
    if costs.bottleneck != bottleneck:
        raise InconsistentResult(
            f"{found_by} found a bottleneck of {bottleneck} ticks, and its slowest stage costs {costs.bottleneck}"
        )
    look_at_sums(instance, again, costs)
    if min(costs.cost.min(), costs.param_bytes.min(), costs.state_bytes.min(), costs.peak_bytes.min()) < 0:
        raise InconsistentResult(f"a stage found by {found_by} costs less than nothing")
    if not keeps_stage_memory(instance, costs):
        held = costs.held_bytes.tolist()
        limits = [instance.machine.classes[c].memory_bytes for c in instance.cost.class_of(len(held)).tolist()]
        most, limit = max(
            (pair for pair in zip(held, limits, strict=True) if pair[1] is not None), key=lambda pair: pair[0] - pair[1]
        )
        raise InconsistentResult(f"a stage found by {found_by} needs {most} bytes, and the limit is {limit}")
    look_at_groups(instance, again, together, found_by)
    look_at_bounds(bottleneck, bounds)


def look_at_groups(instance: Instance, partition: Partition, together: Sequence[Sequence[str]], found_by: str) -> None:
    """Check that the ops of each group, given by names, share a stage."""
    if not together:
        return
    place = dict(zip(instance.op_names, partition.assignment.tolist(), strict=True))
    for group in together:
        stages = sorted({place[name] for name in group})
        if len(stages) > 1:
            raise InconsistentResult(
                f"{found_by} put {group[0]!r} and ops that share its stage into stages {stages[0]} and {stages[-1]}"
            )


def look_at_sums(instance: Instance, partition: Partition, costs: StageCosts) -> None:
    """Sum up work, parameters and transfers of stages op by op and tensor by tensor, where there are not too many."""
    if instance.op_count + len(instance.pins) > MOST_SUMMED:
        return
    stage = partition.assignment.tolist()
    sums = [[0, 0, 0] for _ in range(partition.k)]
    row_of = instance.cost.class_of(partition.k)
    work = instance.cost.work.tolist()
    classes = row_of.tolist()
    for s, ops in enumerate(costs.ops.tolist()):
        times = instance.machine.classes[classes[s]].stage_times_ps
        sums[s][0] += times[min(ops, len(times)) - 1] if times and ops else 0  # longer ones are refused before
    for v, (s, size) in enumerate(zip(stage, instance.cost.own_bytes.tolist(), strict=True)):
        sums[s][0] += work[classes[s]][v]
        sums[s][1] += size
    weights = instance.cost.weights
    begin, readers = weights.offsets.tolist(), weights.readers.tolist()
    for w, size in enumerate(weights.bytes.tolist()):
        for s in {stage[v] for v in readers[begin[w] : begin[w + 1]]}:
            sums[s][1] += size
    for s, paid in enumerate(_transfers(instance, stage, row_of.tolist())):
        sums[s][2] = paid
    said = zip(costs.work.tolist(), costs.param_bytes.tolist(), (costs.input + costs.output).tolist(), strict=True)
    for s, (ours, theirs) in enumerate(zip(said, sums, strict=True)):
        if ours != tuple(theirs):
            raise InconsistentResult(
                f"stage {s} has work, parameters and transfers of {ours}, and summed up op by op {tuple(theirs)}"
            )


def _transfers(instance: Instance, stage: list[int], class_of: list[int]) -> list[int]:
    """Return what each stage pays for tensors that it cuts, or that pass its boundaries, tensor by tensor."""
    paid = [0] * len(class_of)
    start, pins = instance.pin_offsets.tolist(), instance.pins.tolist()
    boundary, transfer = instance.cost.boundary, instance.cost.transfer.tolist()
    links, ticks = instance.cost.link_of.tolist(), [] if boundary is None else boundary.ticks.tolist()
    busy = sorted(set(stage))
    for t in range(instance.tensor_count):
        touched = {stage[v] for v in pins[start[t] : start[t + 1]]}
        if boundary is None:
            for s in touched if len(touched) > 1 else ():
                if instance.machine.classes[class_of[s]].stage_times_ps:
                    continue
                paid[s] += transfer[links[class_of[s]]][t]
            continue
        passed = [s for s in busy if min(touched) <= s <= max(touched)]
        for one, other in pairwise(passed):
            cost = ticks[boundary.row_of[class_of[one], class_of[other]]][t]
            paid[one] += cost
            paid[other] += cost
    return paid


def look_at_bounds(bottleneck: int, bounds: Iterable[tuple[str, int]]) -> None:
    """Check that no bound, by name and value, is above a bottleneck."""
    for name, value in bounds:
        if value > bottleneck:
            raise InconsistentBound(f"the lower bound {value} ({name}) is above the bottleneck {bottleneck}")
