"""Partitions: which stage runs each op, with stages numbered in the order of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtpp.errors import InvalidPartition
from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.topological import cycle_text, find_cycle, first_come_order


@dataclass(frozen=True, eq=False)
class Partition:
    """An assignment of every op to one of k ordered stages. Make one with a class method: both check it.

    Attributes
    ----------
    assignment
        Stage of each op, int32, shape (n,), values 0 … k − 1; every edge goes to the same or a later stage.
    k
        Number of stages, empty ones included.
    """

    assignment: Int32Array
    k: int

    @classmethod
    def from_stages(cls, instance: Instance, stages: Sequence[int] | Int32Array) -> Partition:
        """Take stages numbered in pipeline order.

        Raises
        ------
        InvalidPartition
            If an op has no stage in 0 … k − 1, or an edge goes back to an earlier stage; names the offender.

        Notes
        -----
        O(n + pins).
        """
        assignment = np.array(stages, dtype=np.int32)
        if assignment.shape != (instance.op_count,):
            raise InvalidPartition(f"{len(assignment)} stages were given for {instance.op_count} ops")
        outside = np.flatnonzero((assignment < 0) | (assignment >= instance.k))
        if len(outside):
            op = int(outside[0])
            raise InvalidPartition(
                f"op {instance.op_names[op]!r} is in stage {assignment[op]}, but stages are 0 … {instance.k - 1}"
            )
        sources, targets = instance.edges
        backward = np.flatnonzero(assignment[sources] > assignment[targets])
        if len(backward):
            u, v = int(sources[backward[0]]), int(targets[backward[0]])
            raise InvalidPartition(
                f"op {instance.op_names[v]!r} (stage {assignment[v]}) needs {instance.op_names[u]!r}, "
                f"which runs later (stage {assignment[u]})"
            )
        assignment.setflags(write=False)
        return cls(assignment, instance.k)

    @classmethod
    def from_labels(cls, instance: Instance, labels: Sequence[int]) -> Partition:
        """Take blocks with arbitrary labels and number them in an order that the data flow allows.

        Of all blocks that may come next, the one with the least label does, so labels that are already in
        pipeline order stay as they are.

        Raises
        ------
        InvalidPartition
            If there are more than k labels, or the quotient graph has a cycle; names the blocks on one.

        Notes
        -----
        O(n + pins·log k), section 2.2 of Archer et al. (2024).
        """
        given = np.asarray(labels, dtype=np.int64)
        if given.shape == (instance.op_count,) and bool(np.all((given >= 0) & (given < instance.k))):
            sources, targets = instance.edges
            if bool(np.all(given[sources] <= given[targets])):
                return cls.from_stages(instance, given.astype(np.int32))
        blocks, dense = np.unique(given, return_inverse=True)
        if len(blocks) > instance.k:
            raise InvalidPartition(f"{len(blocks)} blocks were given, but k is {instance.k}")
        position = _order_blocks(instance, dense.astype(np.int64), blocks.tolist())
        return cls.from_stages(instance, position[dense])

    def over(self, instance: Instance, stages: Int32Array) -> Partition:
        """Return the same stages over the ops of another instance, given the stage of each of them, int32."""
        return Partition.from_stages(instance, stages)

    @property
    def empty_stages(self) -> list[int]:
        """Stages that run no op."""
        return np.flatnonzero(np.bincount(self.assignment, minlength=self.k) == 0).tolist()


def _order_blocks(instance: Instance, dense: Int64Array, labels: list[int]) -> Int32Array:
    count = len(labels)
    sources, targets = instance.edges
    tails, heads = dense[sources], dense[targets]
    across = tails != heads
    edges = list(zip(tails[across].tolist(), heads[across].tolist(), strict=True))
    order = first_come_order(count, edges)
    if len(order) < count:
        cycle = cycle_text([str(labels[b]) for b in find_cycle(count, edges, order)])
        raise InvalidPartition(f"blocks wait for each other: {cycle}; their quotient graph is cyclic")
    position = np.empty(count, dtype=np.int32)
    position[order] = np.arange(count, dtype=np.int32)
    return position
