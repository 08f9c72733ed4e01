"""Merges that leave the optimum as it is, for instances without limited memories.

Let v be the only reader of the only tensor t that u's results are read from. Two rules say when u and v may share a
stage in every optimal partition; each compares what one move costs at most with what it saves at least.

*Pull u down*: if work(u) + Σ transfer(inputs of u) ≤ transfer(t). Take any partition with u before v and move u to v's
stage; nothing else reads from u, so the order of stages holds. Both stages no longer pay for t. The one that u left may
begin to pay for inputs of u, at most Σ transfer(inputs) ≤ transfer(t); the one that it joined gains work(u) and may
begin to pay for those inputs, at most transfer(t) together. So neither costs more than before.

*Pull v up*: if v reads nothing but t, and work(v) + Σ transfer(outputs of v) ≤ transfer(t). The mirror image: v moves
to u's stage.

With a fast memory or a stage memory the rules do not hold: the op that moves takes its parameters along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.contraction import Contraction, merge
from mtpp.graph import Int32Array, Int64Array
from mtpp.instance import Instance
from mtpp.partition import Partition


class Reduction(NamedTuple):
    """One round of merges.

    Attributes
    ----------
    contraction
        The smaller instance and the way back.
    leader
        The op of each group that stays where it is while the other one moves to it, int32, shape (groups,).
    """

    contraction: Contraction
    leader: Int32Array

    def carry(self, partition: Partition) -> Partition:
        """Return a partition of the smaller instance that is none worse than *partition* of the larger one."""
        return Partition.from_stages(self.contraction.instance, partition.assignment[self.leader])


def reduce_instance(instance: Instance) -> list[Reduction]:
    """Apply both rules until neither fits.

    Returns
    -------
    Rounds, each on the instance of the one before, the first on *instance*; none if nothing can be merged or memory
    matters. The optimum of the last is that of *instance*, and its partitions lift to partitions of the same costs.

    Notes
    -----
    Pairs merged in one round are disjoint, so that one move after the other keeps what the rules promise. O(pins·log
    pins) per round; a chain of n ops takes O(log n) rounds.
    """
    rounds: list[Reduction] = []
    if instance.memory_matters:
        return rounds
    while True:
        leader_of = mergeable_ops(instance)
        leader, group_of = np.unique(leader_of, return_inverse=True)
        if len(leader) == instance.op_count:
            return rounds
        contraction = merge(instance, group_of.astype(np.int32), len(leader))
        rounds.append(Reduction(contraction, leader.astype(np.int32)))
        instance = contraction.instance


def mergeable_ops(instance: Instance) -> Int32Array:
    """Return the op that each op may move to, itself if none, int32, shape (n,).

    No op is in two pairs.
    """
    n = instance.op_count
    pin_counts = np.diff(instance.pin_offsets)
    read = pin_counts > 1
    _, heads = instance.edges
    tensor_of_edge = np.repeat(np.arange(instance.tensor_count), pin_counts - 1)
    incoming = _sum_by(heads, instance.transfer[tensor_of_edge], n)
    outgoing = _sum_by(instance.producer[read], instance.transfer[read], n)
    inputs = np.bincount(heads, minlength=n)
    outputs = np.bincount(instance.producer[read], minlength=n)

    single = np.flatnonzero((pin_counts == 2) & (outputs[instance.producer] == 1))
    u = instance.producer[single]
    v = instance.pins[instance.pin_offsets[single] + 1]
    paid = instance.transfer[single]
    down = instance.work[u] + incoming[u] <= paid
    up = (inputs[v] == 1) & (instance.work[v] + outgoing[v] <= paid)
    fits = down | up
    mover, leader = np.where(down, u, v)[fits], np.where(down, v, u)[fits]
    leader_of = np.arange(n, dtype=np.int32)
    taken = np.zeros(n, dtype=bool)
    for a, b in zip(mover.tolist(), leader.tolist(), strict=True):
        if not (taken[a] or taken[b]):
            taken[a] = taken[b] = True
            leader_of[a] = b
    return leader_of


def _sum_by(group: Int32Array, value: Int64Array, size: int) -> Int64Array:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, group, value)
    return total
