"""Partitions of a relaxed instance with the left-out ops put back, and the ops that cost in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation
from mtpp.solvers.local_search.annealing import COOL, WARM
from mtpp.solvers.local_search.restarts import Annealer, Assignment, Start
from mtpp.solvers.relaxation.placement import windows

RUNS, SWEEPS = 2, 60
"""Runs of annealing that start at a lifted partition, and moves per op of each."""


def put_back(relaxation: Relaxation, partition: Partition) -> Int32Array:
    """Return a stage for each op of the original, int32, shape (n,), that agrees with a partition of the relaxed one.

    A left-out op comes as early as what it reads allows; one that reads nothing, as late as its readers allow.
    """
    original = relaxation.original
    after = original.successor_lists()
    latest = windows(relaxation, partition)[1].tolist()
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
