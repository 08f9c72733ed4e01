"""Cost of stages that stand on several devices each.

Each device j of a set R holds the stage S whole and takes f_j(S) for a request; requests take turns. So the stage costs
⌈1 / Σ 1/f_j(S)⌉, rounded once, and nothing where some f_j(S) is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.objective import StageCosts, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.machine.machine import Machine


def shared_cost(ticks: Sequence[int]) -> int:
    """Return the cost of a stage on devices that take so many ticks each for it."""
    if 0 in ticks:
        return 0
    return ceil(1 / sum(Fraction(1, one) for one in ticks))


@dataclass(frozen=True, eq=False)
class ClassFigures:
    """Costs of the stages of a partition on devices of each class alone.

    Attributes
    ----------
    by_class
        A row for each class of devices.
    """

    instance: Instance
    by_class: Sequence[StageCosts]

    @classmethod
    def of(cls, instance: Instance, partition: Partition) -> ClassFigures:
        """Return the costs of the stages of a partition, in whatever devices; O(classes · (n + pins))."""
        plain = Partition(partition.assignment, partition.k)
        rows = [stage_costs(_any_length(instance.of_class(c)), plain) for c in range(len(instance.machine.classes))]
        return cls(instance, rows)

    @cached_property
    def ticks(self) -> list[list[int | None]]:
        """By class and stage: f_c(S), None where it needs more memory than a device of that class has."""
        rows = []
        for device, costs in zip(self.instance.machine.classes, self.by_class, strict=True):
            limit, most = device.memory_bytes, len(device.stage_times_ps) or self.instance.op_count
            held = costs.held_bytes.tolist()
            pairs = zip(costs.cost.tolist(), held, costs.ops.tolist(), strict=True)
            rows.append(
                [
                    cost if not ops or (ops <= most and (limit is None or size <= limit)) else None
                    for cost, size, ops in pairs
                ]
            )
        return rows


def _any_length(instance: Instance) -> Instance:
    """Return an instance of one class whose times of stages, if it has any, go on for ever with the last."""
    device = instance.machine.classes[0]
    missing = instance.op_count - len(device.stage_times_ps)
    if not device.stage_times_ps or missing <= 0:
        return instance
    longer = replace(device, stage_times_ps=device.stage_times_ps + device.stage_times_ps[-1:] * missing)
    return replace(instance, cost=replace(instance.cost, machine=Machine.uniform(instance.k, longer)))


@dataclass(frozen=True, eq=False)
class ReplicaCosts(StageCosts):
    """Costs of stages with replicas: parts are those of a stage's first device, *cost* is of all of them together.

    Attributes
    ----------
    each
        Cost of every stage on each of its devices; None where it exceeds a memory.
    """

    each: tuple[tuple[int | None, ...], ...] = ()

    @property
    def latency(self) -> int:
        """Time of one request on an idle pipeline that meets the slowest device of each stage, in ticks."""
        return sum(max(one or 0 for one in of_stage) for of_stage in self.each)

    @property
    def keep_memory(self) -> bool:
        """Whether no device holds more than its memory."""
        return all(one is not None for of_stage in self.each for one in of_stage)


def replica_costs(instance: Instance, partition: ReplicatedPartition) -> ReplicaCosts:
    """Evaluate every stage on its devices; O(classes · (n + pins))."""
    figures = ClassFigures.of(instance, partition)
    class_of = instance.cost.class_of(instance.k).tolist()
    first = [class_of[devices[0]] for devices in partition.replicas]
    columns: dict[str, Any] = {
        name: np.array([getattr(figures.by_class[c], name)[s] for s, c in enumerate(first)], dtype=np.int64)
        for name in StageCosts.__dataclass_fields__
    }
    each = tuple(tuple(figures.ticks[class_of[j]][s] for j in devices) for s, devices in enumerate(partition.replicas))
    over = instance.most_ticks + 1  # of a stage that exceeds a memory
    columns["cost"] = np.array([shared_cost([over if t is None else t for t in row]) for row in each], dtype=np.int64)
    return ReplicaCosts(**columns, each=each)
