"""Ops that must share a stage, merged into one op of a smaller instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtpp.errors import InputError
from mtpp.graph import Int32Array
from mtpp.instance import Instance
from mtpp.partition import Partition
from mtpp.topological import first_come_order


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
        return Partition.from_stages(self.original, partition.assignment[self.group_of])


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
        raise InputError(
            f"no op is called {unknown[0]!r}", source="--together", remedy="`mtpp inspect --ops` lists the names"
        )
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
    group_of = rank[component].astype(np.int32)
    return Contraction(_merged(instance, group_of, count), group_of, instance)


def _merged(instance: Instance, group_of: Int32Array, count: int) -> Instance:
    members: list[list[int]] = [[] for _ in range(count)]
    for v in instance.order.tolist():
        members[group_of[v]].append(v)
    offsets = [0]
    pins: list[int] = []
    kept: list[int] = []
    for t in range(instance.tensor_count):
        touched = group_of[instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]]].tolist()
        readers = [v for v in dict.fromkeys(touched) if v != touched[0]]
        if readers:
            kept.append(t)
            pins += [touched[0], *readers]
            offsets.append(len(pins))
    work = np.zeros(count, dtype=np.int64)
    params = np.zeros(count, dtype=np.int64)
    np.add.at(work, group_of, instance.work)
    np.add.at(params, group_of, instance.param_bytes)
    result = replace(
        instance,
        op_names=tuple(" + ".join(instance.op_names[v] for v in group) for group in members),
        work=work,
        param_bytes=params,
        transfer=instance.transfer[kept],
        tensor_bytes=instance.tensor_bytes[kept],
        pin_offsets=np.array(offsets, dtype=np.int64),
        pins=np.array(pins, dtype=np.int32),
        order=np.arange(count, dtype=np.int32),
        members=tuple(tuple(name for v in group for name in instance.members_of(v)) for group in members),
        ground=instance.ground_below(group_of),
    )
    sources, targets = result.edges
    order = first_come_order(count, zip(sources.tolist(), targets.tolist(), strict=True))
    return replace(result, order=np.array(order, dtype=np.int32))
