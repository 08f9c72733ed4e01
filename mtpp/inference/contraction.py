"""Ops that must share a stage, merged into one op of a smaller instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtpp.errors import InputError
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.live_tensors import NO_INTERFACE
from mtpp.inference.merged_names import JoinedNames, MemberNames
from mtpp.inference.partition import Partition
from mtpp.inference.stage_cost import StageCost
from mtpp.inference.topological import first_come_order
from mtpp.wording import did_you_mean


@dataclass(frozen=True, eq=False)
class Contraction:
    """A smaller instance and the way back.

    Attributes
    ----------
    instance
        One op per group; tensors inside a group are gone.
    group_of
        Op of :attr:`instance` that each op of :attr:`original` went into, int32, shape (n,).
    original
        The instance before.
    """

    instance: Instance
    group_of: Int32Array
    original: Instance

    def lift(self, partition: Partition) -> Partition:
        """Return the same partition over the ops of the original instance; its stage costs are the same."""
        return partition.over(self.original, partition.assignment[self.group_of])

    def of(self, instance: Instance) -> Contraction:
        """Merge the same groups of *instance*, which has the ops and tensors of :attr:`original` at other costs or k.

        Notes
        -----
        O(n + pins·log pins) time: spares the search for what has to be merged.
        """
        return self if instance is self.original else merge(instance, self.group_of, self.instance.op_count)


def lift_through(levels: Sequence[Contraction], partition: Partition) -> Partition:
    """Return a partition of the last level as one of the first level's original; its stage costs are the same.

    Parameters
    ----------
    levels
        Each the contraction of the one before; may be empty.
    """
    for level in reversed(levels):
        partition = level.lift(partition)
    return partition


def contract_named(instance: Instance, groups: Sequence[Sequence[str]]) -> Contraction:
    """Merge each group of op names; see :func:`contract`.

    Raises
    ------
    InputError
        If a name is no op of the instance.
    """
    index = {name: v for v, name in enumerate(instance.op_names)}
    unknown = [name for group in groups for name in group if name not in index]
    if unknown:
        remedy = did_you_mean(unknown[0], index, "`mtpp inspect --ops` lists the names")
        raise InputError(f"no op is called {unknown[0]!r}", parameter="together", remedy=remedy)
    return contract(instance, [[index[name] for name in group] for group in groups])


def contract(instance: Instance, groups: Sequence[Sequence[int]]) -> Contraction:
    """Merge each group of ops into one op.

    Groups that overlap merge, and so do ops on a path between members of a group: they cannot be anywhere else
    (the strongly connected components after merging). The partitions of the result are exactly those of the
    original that keep every group in one stage, at the same cost.

    Notes
    -----
    O(n + pins) time, apart from sorting. The working memory of a merged op depends on the ops that it stands for and
    on their tensors, those inside the group included: the result keeps the original at hand (:attr:`Instance.ground`).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = instance.op_count
    sources, targets = instance.edges
    rings = [(group[i - 1], group[i]) for group in groups for i in range(len(group))]
    tails = np.concatenate([sources, np.array([u for u, _ in rings], dtype=np.int32)])
    heads = np.concatenate([targets, np.array([v for _, v in rings], dtype=np.int32)])
    matrix = coo_array((np.ones(len(tails), dtype=np.int8), (tails, heads)), shape=(n, n)).tocsr()
    count, component = connected_components(matrix, directed=True, connection="strong")

    position = np.empty(n, dtype=np.int64)
    position[instance.order] = np.arange(n)
    first = np.full(count, n, dtype=np.int64)
    np.minimum.at(first, component, position)
    rank = np.empty(count, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(count, dtype=np.int32)
    return merge(instance, rank[component].astype(np.int32), count)


def merge(instance: Instance, group_of: Int32Array, count: int) -> Contraction:
    """Merge the ops of each group, given as the group 0 … *count* − 1 of every op.

    Raises
    ------
    ValueError
        If the groups wait for each other; :func:`contract` merges those too.

    Notes
    -----
    O(n + pins·log pins) time. Groups that are numbered in a topological order spare the search for one.
    """
    merged = _merged(instance, group_of, count)
    sources, targets = merged.edges
    if not bool(np.all(sources < targets)):
        order = first_come_order(count, zip(sources.tolist(), targets.tolist(), strict=True))
        if len(order) < count:
            raise ValueError("the groups wait for each other")
        merged = replace(merged, order=np.array(order, dtype=np.int32))
    return Contraction(merged, group_of, instance)


def _merged(instance: Instance, group_of: Int32Array, count: int) -> Instance:
    ground = instance.ground_below(group_of)
    members = MemberNames(ground.instance.op_names, ground.instance.order, ground.op_of, count)
    work = np.zeros((len(instance.cost.work), count), dtype=np.int64)
    params = np.zeros(count, dtype=np.int64)
    for of_class, own in zip(work, instance.cost.work, strict=True):
        np.add.at(of_class, group_of, own)
    np.add.at(params, group_of, instance.param_bytes)

    # A tensor keeps the first pin in each group: the producer's, then the readers' as they come.
    tensor = instance.tensor_of_pin.astype(np.int64)
    touched = group_of[instance.pins]
    _, first = np.unique(tensor * count + touched, return_index=True)
    kept_pins = np.zeros(len(touched), dtype=bool)
    kept_pins[first] = True
    pin_counts = np.bincount(tensor[kept_pins], minlength=instance.tensor_count)
    kept = pin_counts > 1
    kept_pins &= kept[tensor]
    boundary = instance.cost.boundary
    offsets = np.zeros(np.count_nonzero(kept) + 1, dtype=np.int64)
    np.cumsum(pin_counts[kept], out=offsets[1:])
    return replace(
        instance,
        op_names=JoinedNames(members),
        cost=StageCost(
            instance.machine,
            work,
            instance.cost.transfer[:, kept],
            params,
            instance.cost.weights.merged(group_of, count),
            instance.cost.states.merged(group_of, count, all_kept=True),
            boundary and boundary.of_tensors(boundary.ticks[:, kept]),
            instance.cost.by_class,
        ),
        tensor_bytes=instance.tensor_bytes[kept],
        pin_offsets=offsets,
        pins=touched[kept_pins],
        order=np.arange(count, dtype=np.int32),
        interface=NO_INTERFACE,
        members=members,
        ground=ground,
    )
