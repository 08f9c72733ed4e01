"""Plans of given stages on devices with degrees: the best degrees and devices for them, held against the best plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.host.stop_reason import StopReason
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.solvers.layer_chains.devices import ChainStage
from mtpp.solvers.layer_chains.search import ChainResult, fastest_plan
from mtpp.solvers.layer_chains.solve import DegreeProblem, plan_of_stages, proven_bound
from mtpp.solvers.layer_chains.tables import ChainTables

GIVEN = "given"


def score_with_degrees(
    problem: DegreeProblem,
    labels: Sequence[int],
    devices: Sequence[int] | None = None,
    degrees: Sequence[int] | None = None,
) -> Plan:
    """Return a plan of given stages, with the least bottleneck of any plan as its lower bound.

    Parameters
    ----------
    labels
        Stage of each op, as :meth:`~mtpp.inference.partition.Partition.from_labels` takes them.
    devices
        Device of each stage; None: in fixed order that of its number, in free order the best for these stages.
    degrees
        Degree of each stage; None: the fastest that its device holds.

    Raises
    ------
    InvalidPartition
        If stages are not intervals of the graph's order, are more than devices may be used, or do not fit.
    """
    whole, tables = problem.instance, problem.tables
    partition = Partition.from_labels(whole, labels)
    in_order = partition.assignment[whole.order].tolist()
    names = [whole.op_names[v] for v in whole.order.tolist()]
    back = next((i for i in range(1, len(in_order)) if in_order[i] < in_order[i - 1]), None)
    if back is not None:
        raise InvalidPartition(
            f"{names[back]!r} stands behind a later stage: with tensor_parallel stages are consecutive layers"
        )
    starts = [i for i in range(len(in_order)) if i == 0 or in_order[i] != in_order[i - 1]]
    ends = list(zip(starts, [*starts[1:], len(in_order)], strict=True))
    if len(ends) > whole.most_used:
        raise InvalidPartition(f"{len(ends)} blocks were given, but k is {whole.most_used}")
    own = None if degrees is None else [degrees[in_order[start]] for start in starts]
    allowed = _only(problem, tables, ends, own)
    if devices is None and not whole.machine.free:
        devices = range(whole.k)
    if devices is None:
        found = fastest_plan(allowed, problem.devices)
    else:
        on = [devices[in_order[start]] for start in starts]
        found = _on(allowed, ends, on, [whole.machine.class_of[device] for device in on])
    if found is None:
        raise InvalidPartition(
            "a stage needs more than the memory of its device, at any degree that it may have", parameter="machine"
        )
    best = fastest_plan(tables, problem.devices)
    assert best is not None
    plan = plan_of_stages(problem, found, proven_bound(problem, tables, best.bottleneck), GIVEN, 0)
    return replace(plan, found_by=GIVEN, stopped=StopReason.FINISHED)


def _only(
    problem: DegreeProblem, tables: ChainTables, ends: Sequence[tuple[int, int]], degrees: Sequence[int] | None
) -> ChainTables:
    """Return the tables with the given intervals alone, each at its degree where one is given."""
    kept = np.zeros_like(tables.feasible)
    for s, (start, stop) in enumerate(ends):
        for a, choice in enumerate(problem.choices):
            kept[a, start, stop] = degrees is None or choice.alternative.degree == degrees[s]
    return replace(tables, feasible=tables.feasible & kept)


def _on(
    tables: ChainTables, ends: Sequence[tuple[int, int]], devices: Sequence[int], classes: Sequence[int]
) -> ChainResult | None:
    """Return the stages on given devices, each as the best alternative; None where one does not fit."""
    stages = []
    for (start, stop), device, c in zip(ends, devices, classes, strict=True):
        ways = [
            a for a, one in enumerate(tables.alternatives) if one.device_class == c and tables.feasible[a, start, stop]
        ]
        if not ways:
            return None
        best = min(ways, key=lambda a: (tables.cost[a, start, stop], tables.alternatives[a].degree))
        stages.append(ChainStage(device, best, start, stop))
    return ChainResult.of(tables, stages)
