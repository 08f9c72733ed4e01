"""Downsets with their labels where stages may have several devices each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.costs import ClassFigures, replica_costs
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.solvers.downsets.downset_arrays import ordered_ground
from mtpp.solvers.orders.device_labels import LabelRules
from mtpp.solvers.unequal.enumeration import UnequalProblem, UnequalSearch
from mtpp.solvers.unequal.kernels.replicas import search_replicas
from mtpp.solvers.unequal.replica_arrays import (
    DeviceTicks,
    device_prices,
    device_ticks,
    measured_arrays,
    replica_rules,
    set_scratch,
)


@dataclass(frozen=True, eq=False)
class ReplicaProblem(UnequalProblem):
    """An instance whose stages may have several devices, made ready; make one with :func:`replica_problem`.

    Attributes
    ----------
    arrays
        Of the measure of work.
    devices
        Ticks by class of devices.
    """

    devices: DeviceTicks

    @property
    def rules(self) -> list[str]:
        """The rules that leave downsets out; see :func:`mtpp.solvers.unequal.kernels.replicas.search_replicas`."""
        return ["fit"]

    @property
    def terms(self) -> dict[str, object]:
        """Prices of the measure, for proofs."""
        return {"replicated": True, "prices": self.devices.prices.tolist()}

    def search(self, limit: int, memory_bytes: int) -> ReplicaSearch:
        """Return a search for a partition with every stage cost at most *limit* ticks, at its beginning."""
        return ReplicaSearch(self, limit, memory_bytes)

    def rules_within(self, limit: int) -> LabelRules | None:
        """Return the rules of labels where stages cost at most *limit* ticks; None if labels do not fit into a word."""
        return replica_rules(self.instance, self.devices, limit)

    def bottleneck(self, partition: Partition) -> int:
        """Return the largest stage cost of a partition that a search has found, in ticks."""
        assert isinstance(partition, ReplicatedPartition)
        return replica_costs(self.instance, partition).bottleneck

    @cached_property
    def capacity_cutoff(self) -> int:
        """Ticks within which the devices that may be used have room for the measure of all ops; none below do."""
        best = sorted((int(self.devices.prices[c]) for c in self.devices.class_of.tolist()), reverse=True)
        return -(-int(self.arrays.total[0]) // sum(best[: self.instance.most_used]))


def replica_problem(instance: Instance) -> ReplicaProblem:
    """Make *instance* ready; O(classes · n + pins·log pins)."""
    ticks = device_ticks(instance, device_prices(instance))
    return ReplicaProblem(instance, measured_arrays(instance, ticks), [], ordered_ground(instance), ticks)


class ReplicaSearch(UnequalSearch):
    """The search for a partition with every stage cost at most *limit* ticks, on one or more devices each."""

    _problem: ReplicaProblem

    def __init__(self, problem: ReplicaProblem, limit: int, memory_bytes: int) -> None:
        super().__init__(problem, limit, memory_bytes)
        if self._rules is not None:
            self._sets = set_scratch(problem.devices, self._rules)

    def _call_kernel(self, last_step: int) -> int:
        problem = self._problem
        assert self._rules is not None
        return search_replicas(
            self._arrays,
            problem.devices,
            problem.ground,
            self._rules,
            self._store,
            self._pool,
            self._scratch,
            self._sets,
            self._registers,
            self.limit,
            last_step,
        )

    def partition(self) -> ReplicatedPartition:
        """Return the partition that was found, with the devices of each stage."""
        instance, pool, path = self._instance, self._pool, self._path()
        stage = np.zeros(instance.op_count, dtype=np.int32)
        for number, label in reversed(list(enumerate(path))):
            stage[self._ops(self._store.bits[pool.owner[label]])] = number
        assert self._rules is not None
        labels = [0, *(int(pool.label[label]) for label in path)]
        return ReplicatedPartition.on(instance, stage, devices_between(instance, self._rules, stage, labels))

    def _holds(self) -> bool:
        try:
            costs = replica_costs(self._instance, self.partition())
        except InvalidPartition:  # no device holds one of the stages
            return False
        return costs.bottleneck <= self.limit and costs.keep_memory


def devices_between(instance: Instance, rules: LabelRules, stage: Int32Array, labels: Sequence[int]) -> list[list[int]]:
    """Return the devices of each stage, which lead from each label to the next."""
    class_of = instance.cost.class_of(instance.k).tolist()
    numbers = [rules.numbers(label) for label in labels]
    sets: list[list[int]] = []
    if instance.machine.free:
        left = {c: [j for j, other in enumerate(class_of) if other == c] for c in set(class_of)}
        for before, after in pairwise(numbers):
            counts = [b - a for a, b in zip(before, after, strict=True)]
            sets.append([left[c].pop(0) for c, count in enumerate(counts) for _ in range(count)])
        return sets
    ticks = ClassFigures.of(instance, Partition(stage, len(labels) - 1)).ticks
    for s, (before, after) in enumerate(pairwise(numbers)):
        row = [(ticks[class_of[j]][s], j) for j in range(before[0], after[0])]
        able = sorted((one, j) for one, j in row if one is not None)
        count = after[1] - before[1] if rules.counted else len(able)
        sets.append(sorted(j for _, j in able[:count]))
    return sets
