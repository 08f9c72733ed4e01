"""Plans of a chain made even: as many stages as there may be, none of them above the plan's bottleneck.

Engines take a number of layers for each stage; a plan that needs fewer stages than there are devices is optimal, too,
but leaves devices without any.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.solvers.last_look.partition import look_at_partition
from mtpp.solvers.layer_chains.decision import is_feasible
from mtpp.solvers.layer_chains.devices import ChainDevices, ChainStage
from mtpp.solvers.layer_chains.search import least_latency_plan
from mtpp.solvers.layer_chains.tables import Alternative, ChainTables, Choice

FOUND_BY = "intervals"

_MOST_BITS = 20
"""Of costs that are squared."""


def evened(plan: Plan, instance: Instance) -> Plan:
    """Return a plan within the same bottleneck on the most devices, whose costs have the least sum of squares.

    Parameters
    ----------
    plan
        Of a chain, for the objective of the least bottleneck alone; its proof holds for the result as well.
    instance
        The plan's, on devices in the machine's order.

    Notes
    -----
    As :meth:`ChainTables.of`, and a search of :func:`least_latency_plan`.
    """
    machine = instance.machine
    choices = [Choice(Alternative(c), instance) for c in range(len(machine.classes))]
    tables = ChainTables.of(choices, plan.together)
    found = evenest(tables, instance, plan.bottleneck)
    if found is None:
        return plan
    busy = [one.device for one in found]
    free = machine.free and len(machine.classes) > 1
    places = [*busy, *(device for device in range(instance.k) if device not in busy)] if free else None
    stages = np.empty(instance.op_count, dtype=np.int32)
    for i, one in enumerate(found):
        stages[instance.order[one.start : one.stop]] = one.device if places is None else i
    placed = instance if places is None else instance.on(places)
    partition = Partition.from_stages(placed, stages)
    even = replace(plan, instance=placed, partition=partition, devices=None if places is None else tuple(places))
    look_at_partition(
        placed, partition, even.bottleneck, FOUND_BY,
        together=plan.together, bounds=[(plan.lower.method, plan.lower.value)], costs=even.costs,
    )  # fmt: skip
    return even if even.bottleneck <= plan.bottleneck else plan


def evenest(tables: ChainTables, instance: Instance, bottleneck: int) -> tuple[ChainStage, ...] | None:
    """Return the stages on as many devices as may have one, of even costs; None where there is no such plan."""
    machine, tables = instance.machine, _squared(tables)
    for used in range(min(instance.most_used, tables.op_count), 0, -1):
        devices = ChainDevices.of(machine.class_of, free=machine.free, most_used=used, none_empty=True)
        if is_feasible(tables, devices, bottleneck):
            found = least_latency_plan(tables, devices, max_bottleneck=bottleneck)
            return None if found is None else found.stages
    return None


def _squared(tables: ChainTables) -> ChainTables:
    """Return the tables with squares of costs as latencies, of as many bits as go into sums."""
    finite = int(tables.levels[-1]) if len(tables.levels) else 0
    shift = max(0, finite.bit_length() - _MOST_BITS)
    return replace(tables, latency=np.where(tables.feasible, (tables.cost >> shift) ** 2, tables.latency))
