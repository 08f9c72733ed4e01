"""Cuts of topological orders into stages of one or more devices each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.contraction import Contraction
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.replicas.costs import replica_costs
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.solvers.orders.device_slicing import cut_places, runs_between
from mtpp.solvers.unequal.kernels.replica_slicing import label_shared_prefixes
from mtpp.solvers.unequal.replica_arrays import PrefixLabels, prefix_labels, set_scratch
from mtpp.solvers.unequal.replica_enumeration import ReplicaProblem, devices_between, replica_problem

_MOST_CUTS = 160
"""Places at which an order is cut at most; longer ones are cut where little crosses, then near the cuts found."""

_CLOSE = 11
"""A bottleneck within one part in 2 to this of the least of an order is close enough where devices differ."""


class SharedCut(NamedTuple):
    """A partition and its bottleneck in ticks."""

    partition: ReplicatedPartition
    bottleneck: int


@dataclass(frozen=True, eq=False)
class ReplicaSlicer:
    """Cuts orders of one instance; make one with :meth:`of`."""

    problem: ReplicaProblem

    @classmethod
    def of(cls, instance: Instance) -> ReplicaSlicer:
        """Make an instance ready."""
        return cls(replica_problem(instance))

    def best(self, order: Int32Array, low: int, upper: int | None) -> SharedCut | None:
        """Return a cut of an order whose bottleneck is below *upper* and close to the least of the order, if any.

        Parameters
        ----------
        low
            Ticks that no partition is below.
        upper
            None: any bottleneck will do.
        """
        instance = self.problem.instance
        if instance.op_count > 2 * _MOST_CUTS:
            return self._coarsely(order, low, upper)
        classes = len(instance.machine.classes)
        found = None
        high = instance.most_ticks + 1 if upper is None else upper
        if upper is None and (found := self.below(order, high)) is not None:
            high = found.bottleneck
        gap = max(1, low // 64)
        while low < high and (upper is not None or found is not None):
            if classes > 1 and found is not None and high - low <= high >> _CLOSE:
                break
            middle = min((low + high) // 2, low + gap)
            better = self.below(order, middle + 1)
            if better is None:
                low, gap = middle + 1, 2 * gap
            else:
                found, high = better, better.bottleneck
        return found

    def below(self, order: Int32Array, cutoff: int) -> SharedCut | None:
        """Cut an order with every stage below *cutoff* ticks; None if that was not found to be possible."""
        problem, instance = self.problem, self.problem.instance
        rules = problem.rules_within(cutoff - 1)
        if rules is None or cutoff < 1:
            return None
        place = np.empty(instance.op_count, dtype=np.int32)
        place[instance.order] = np.arange(instance.op_count, dtype=np.int32)
        prefixes = prefix_labels(instance.op_count)
        scratch = set_scratch(problem.devices, rules)
        found = label_shared_prefixes(
            place[order], cutoff - 1, problem.arrays.shared, problem.devices, rules, scratch, prefixes
        )
        if not found:
            return None
        stage, labels = _stages(order, prefixes)
        try:
            partition = ReplicatedPartition.on(instance, stage, devices_between(instance, rules, stage, labels))
        except InvalidPartition:  # no device holds one of the stages
            return None
        costs = replica_costs(instance, partition)
        return SharedCut(partition, costs.bottleneck) if costs.keep_memory and costs.bottleneck < cutoff else None

    def _coarsely(self, order: Int32Array, low: int, upper: int | None) -> SharedCut | None:
        """Cut an order at places where little crosses, then also near the cuts found."""
        instance = self.problem.instance
        places = cut_places(instance, order, _MOST_CUTS - 1)
        found = self._at(runs_between(instance, order, places), low, upper)
        if found is None:
            return None
        cuts = np.flatnonzero(np.diff(found.partition.assignment[order])) + 1
        reach = _MOST_CUTS // 4 // max(1, len(cuts))
        near = (cuts[:, np.newaxis] + np.arange(-reach, reach)).ravel()
        places = np.union1d(places[::2], np.union1d(near[(near > 0) & (near < len(order))], cuts))[: 2 * _MOST_CUTS - 1]
        return self._at(runs_between(instance, order, places), low, found.bottleneck) or found

    def _at(self, runs: Contraction, low: int, upper: int | None) -> SharedCut | None:
        inner = type(self).of(runs.instance).best(runs.instance.order, low, upper)
        if inner is None:
            return None
        lifted = runs.lift(inner.partition)
        assert isinstance(lifted, ReplicatedPartition)
        return SharedCut(lifted, inner.bottleneck)


def _stages(order: Int32Array, prefixes: PrefixLabels) -> tuple[Int32Array, list[int]]:
    """Return the stage of each op, and the labels from that of nothing to that of all ops."""
    end, at = len(order), 0
    ends, labels = [end], [int(prefixes.label[end, at])]
    while end > 0:
        end, at = int(prefixes.begin[end, at]), int(prefixes.parent[end, at])
        ends.append(end)
        labels.append(int(prefixes.label[end, at]))
    stage = np.empty(len(order), dtype=np.int32)
    for number, (last, first) in enumerate(zip(ends[-2::-1], ends[:0:-1], strict=True)):
        stage[order[first:last]] = number
    return stage, labels[::-1]
