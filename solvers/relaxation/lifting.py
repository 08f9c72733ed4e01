"""Partitions of a relaxed instance with the left-out ops put back, and the ops that cost in them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.contraction import Contraction, contract
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation
from mtpp.solvers.downsets.downset import DownsetSearch, downset_problem
from mtpp.solvers.local_search.annealing import COOL, WARM
from mtpp.solvers.local_search.restarts import Annealer, Assignment, Start
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance

RUNS, SWEEPS = 2, 60
"""Runs of annealing that start at a lifted partition, and moves per op of each."""


PLACING_STEPS = 1 << 17
"""Of the search for the best places of left-out ops."""

_SLICE = 1 << 16
"""Steps between two looks at the clock."""


class Placement:
    """The partitions of an instance that agree with one of a relaxation of it: only left-out ops have a choice.

    What has to be in a stage is merged, and so is whatever the merging rules say then: few ops are left, whose places
    a search over downsets tries out.

    Attributes
    ----------
    steps
        Steps made.
    """

    def __init__(self, relaxation: Relaxation, partition: Partition) -> None:
        original = relaxation.original
        earliest, latest = _windows(relaxation, partition)
        settled = np.where(earliest == latest, earliest, -1)
        groups = [np.flatnonzero(settled == stage).tolist() for stage in range(original.k)]
        self._contraction: Contraction = contract(original, [group for group in groups if len(group) > 1])
        self._reduced: ReducedInstance = reduce_instance(self._contraction.instance)
        self._problem = downset_problem(self._reduced.instance)
        self.steps = len(original.pins) + len(self._reduced.instance.pins)

    def best(self, upper: int, steps: int, memory_bytes: int, ended: Callable[[], bool]) -> Partition | None:
        """Return the best partition below *upper* ticks that so many steps find, None if they find none.

        Notes
        -----
        Each search is for anything better than what the one before found; the last one may prove that there is none.
        """
        found = None
        last_step = self.steps + steps
        while upper > 0 and self.steps < last_step and not ended():
            search = DownsetSearch(self._problem, upper - 1, memory_bytes)
            search.advance(last_step - self.steps, _SLICE, ended)
            self.steps += search.steps
            if search.state != "found":
                break
            found = self._contraction.lift(self._reduced.lift(search.partition()))
            upper = bottleneck(self._contraction.original, found)
        return found


def _windows(relaxation: Relaxation, partition: Partition) -> tuple[Int32Array, Int32Array]:
    """Return the first and the last stage that each op of the original can be in, int32, given those that stay."""
    original = relaxation.original
    after = _successors(original)
    order = original.order.tolist()
    earliest = [0] * original.op_count
    latest = [original.k - 1] * original.op_count
    for v, s in zip(relaxation.kept.tolist(), partition.assignment.tolist(), strict=True):
        earliest[v] = latest[v] = s
    for v in order:
        for w in after[v]:
            earliest[w] = max(earliest[w], earliest[v])
    for v in reversed(order):
        for w in after[v]:
            latest[v] = min(latest[v], latest[w])
    return np.array(earliest, dtype=np.int32), np.array(latest, dtype=np.int32)


def _successors(instance: Instance) -> list[list[int]]:
    offsets, successors = instance.successors
    rows = successors.tolist()
    return [rows[begin:end] for begin, end in pairwise(offsets.tolist())]


def put_back(relaxation: Relaxation, partition: Partition) -> Int32Array:
    """Return a stage for each op of the original, int32, shape (n,), that agrees with a partition of the relaxed one.

    A left-out op comes as early as what it reads allows; one that reads nothing, as late as its readers allow.
    """
    original = relaxation.original
    after = _successors(original)
    latest = _windows(relaxation, partition)[1].tolist()
    stage = [-1] * original.op_count
    for v, s in zip(relaxation.kept.tolist(), partition.assignment.tolist(), strict=True):
        stage[v] = s
    earliest = [-1] * original.op_count
    for v in original.order.tolist():
        if stage[v] < 0:
            stage[v] = earliest[v] if earliest[v] >= 0 else latest[v]
        for w in after[v]:
            earliest[w] = max(earliest[w], stage[v])
    return np.array(stage, dtype=np.int32)


def improved(stage: Int32Array, annealer: Annealer) -> Assignment:
    """Return the best of short runs of annealing from an assignment, in which empty stages come last."""
    stage = np.unique(stage, return_inverse=True)[1].astype(np.int32)
    found, _ = annealer.round([Start(stage, COOL), Start(stage, WARM)], SWEEPS * len(stage))
    return min(found, key=lambda one: one.bottleneck)


def blamed(instance: Instance, left_out: NDArray[np.bool_], stage: Int32Array, enough: int) -> Int32Array:
    """Return the left-out ops that cost in the stages of more than *enough* ticks, the most expensive first, int32.

    An op costs its work there, and the tensors that its stage cuts and that it touches. Where none costs anything, all
    left-out ops are returned, the most expensive to run first.
    """
    slow = stage_costs(instance, Partition.from_stages(instance, stage)).cost > enough
    tensor = instance.tensor_of_pin
    first = stage[instance.producer]
    cut = np.zeros(instance.tensor_count, dtype=np.bool_)
    cut[tensor[stage[instance.pins] != first[tensor]]] = True
    blame = np.where(slow[stage], instance.work, 0)
    touches = cut[tensor] & slow[stage[instance.pins]]
    np.add.at(blame, instance.pins[touches], instance.transfer[tensor[touches]])
    blame = np.where(left_out, blame, -1)
    if not np.any(blame > 0):
        blame = np.where(left_out, instance.work + 1, -1)
    ranked = np.argsort(-blame, kind="stable").astype(np.int32)
    return ranked[: np.count_nonzero(blame > 0)]
