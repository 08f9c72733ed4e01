"""An irreducible component as the dynamic programme cuts it: its downsets, or the beginnings of one order of ops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.solvers.series_parallel.components import Component, Components
from mtpp.solvers.series_parallel.device_groups import DeviceGroups
from mtpp.solvers.series_parallel.kernels.core_front import CoreItems, CoreStates, core_stages
from mtpp.solvers.series_parallel.kernels.pareto_fronts import HEAD_USED, LEAST, TAIL_USED, Terms

MOST_DOWNSETS = 2_000
"""A core with more is cut along one topological order."""

MOST_GROUPS = 1_000
"""An order of more ops is cut only between groups of them, of about equal work."""


class Core(NamedTuple):
    """A core, ready to be cut.

    Attributes
    ----------
    states
        Its downsets and the stages between them.
    groups
        Ops of each item, as places in :meth:`~mtpp.solvers.series_parallel.components.Components.ops_of` of a node.
    masks
        Items of each downset, as bits.
    exhaustive
        Whether these are all downsets of all its ops.
    """

    states: CoreStates
    groups: list[list[int]]
    masks: list[int]
    exhaustive: bool


class _Tensor(NamedTuple):
    """A tensor of a core.

    Attributes
    ----------
    producer
        The item that makes it, −1 if it is the tail.
    readers
        Items that read it.
    leaves
        Whether the head reads it.
    transfer
        Ticks by group of devices.
    flag
        Flag of the tail's stage, 0 if it has none.
    """

    producer: int
    readers: list[int]
    leaves: bool
    transfer: list[int]
    flag: int


class _Steps(NamedTuple):
    """Downsets of items, each a bit mask, and what may come next: pairs of an item and the number of a downset."""

    masks: list[int]
    steps: list[list[tuple[int, int]]]


def make_core(components: Components, component: Component, most_states: int, terms: Terms) -> Core:
    """Return the core that *component* is.

    Parameters
    ----------
    most_states
        Downsets, or beginnings of the order, to keep at most: stages between two of them take memory.
    terms
        Stages that cost its cutoff or more are left out: no smaller cutoff permits them.

    Notes
    -----
    O(d²·m) time at most for d downsets and m tensors.
    """
    place = {v: i for i, v in enumerate(components.ops_of(component.node))}
    ops = sorted(place, key=components.rank.__getitem__)
    groups = [[v] for v in ops]
    tensors = _tensors(components, component, groups)
    found = _all_downsets(len(groups), tensors, min(MOST_DOWNSETS, most_states))
    exhaustive = found is not None
    if found is None:
        groups = _grouped(components.groups, ops, min(MOST_GROUPS, most_states))
        tensors = _tensors(components, component, groups)
        masks = [(1 << size) - 1 for size in range(len(groups) + 1)]
        found = _Steps(masks, [*([(i, i + 1)] for i in range(len(groups))), []])
    items = _items(components.groups, groups, tensors, found)
    by_group = [core_stages(items, g, terms.cutoff, terms) for g in range(len(components.groups.classes))]
    stages = np.concatenate(by_group)
    places = [[place[v] for v in group] for group in groups]
    return Core(_states(items, tensors, found, stages, component), places, found.masks, exhaustive)


def _tensors(components: Components, component: Component, groups: Sequence[Sequence[int]]) -> list[_Tensor]:
    instance = components.instance
    item_of = {v: i for i, group in enumerate(groups) for v in group}
    offsets, touched = instance.op_tensors
    shared = components.shared[component.node]
    found = []
    numbers = sorted({int(t) for v in item_of for t in touched[offsets[v] : offsets[v + 1]]})
    for t in numbers:
        pins = instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]].tolist()
        producer = item_of.get(pins[0], -1)
        readers = sorted({item_of[v] for v in pins[1:] if v in item_of} - {producer})
        leaves = producer >= 0 and any(v not in item_of for v in pins[1:])
        if readers or leaves:
            flag = 1 << (2 * components.slot[t]) if t in shared else 0
            found.append(_Tensor(producer, readers, leaves, components.groups.transfer[:, t].tolist(), flag))
    return found


def _all_downsets(count: int, tensors: Sequence[_Tensor], most: int) -> _Steps | None:
    """Return all downsets of the items, the smaller ones first, or None if there are more than *most*."""
    needs, feeds = [0] * count, [0] * count
    for tensor in tensors:
        for reader in tensor.readers:
            if tensor.producer >= 0:
                needs[reader] |= 1 << tensor.producer
                feeds[tensor.producer] |= 1 << reader
    first = sum(1 << i for i in range(count) if not needs[i])
    number = {0: 0}
    masks, ready = [0], [first]
    steps: list[list[tuple[int, int]]] = []
    for mask in masks:
        taken = []
        for item in _bits(ready[len(steps)]):
            larger = mask | 1 << item
            if larger not in number:
                if len(masks) >= most:
                    return None
                number[larger] = len(masks)
                masks.append(larger)
                opened = sum(1 << i for i in _bits(feeds[item]) if needs[i] & ~larger == 0)
                ready.append(ready[len(steps)] & ~(1 << item) | opened)
            taken.append((item, number[larger]))
        steps.append(taken)
    return _Steps(masks, steps)


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _grouped(devices: DeviceGroups, ops: list[int], most: int) -> list[list[int]]:
    """Return consecutive ops as at most so many groups, each op on its own if there are no more."""
    if len(ops) <= most:
        return [[v] for v in ops]
    weights = (devices.costs[ops, LEAST] + 1).tolist()
    total = sum(weights)
    groups: dict[int, list[int]] = {}
    for v, before in zip(ops, accumulate(weights, initial=0), strict=False):
        groups.setdefault(before * most // total, []).append(v)
    return list(groups.values())


def _items(
    devices: DeviceGroups, groups: Sequence[Sequence[int]], tensors: Sequence[_Tensor], found: _Steps
) -> CoreItems:
    touched: list[list[int]] = [[] for _ in groups]
    for t, tensor in enumerate(tensors):
        for item in ([tensor.producer] if tensor.producer >= 0 else []) + tensor.readers:
            touched[item].append(t)
    moved = np.array([tensor.transfer for tensor in tensors], dtype=np.int64)
    return CoreItems(
        costs=np.array([devices.costs[group].sum(axis=0) for group in groups], dtype=np.int64),
        item_offsets=_offsets(touched),
        item_tensors=_flat([t for ts in touched for t in ts]),
        producer=_flat([tensor.producer for tensor in tensors]),
        readers=_flat([len(tensor.readers) + tensor.leaves for tensor in tensors]),
        transfer=moved.reshape(len(tensors), len(devices.classes)).T.copy(),
        step_offsets=_offsets(found.steps),
        step_items=_flat([item for steps in found.steps for item, _ in steps]),
        step_states=_flat([state for steps in found.steps for _, state in steps]),
    )


def _states(
    items: CoreItems, tensors: Sequence[_Tensor], found: _Steps, stages: Int64Array, component: Component
) -> CoreStates:
    count, width = len(found.masks), len(items.costs)
    size = (width + 7) // 8
    packed = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in found.masks), dtype=np.uint8)
    inside = np.unpackbits(packed.reshape(count, size), axis=1, count=width, bitorder="little").astype(bool)
    crossing = np.zeros((len(items.transfer), count), dtype=np.int64)
    flags = np.zeros(count, dtype=np.int64)
    for tensor, transfer in zip(tensors, items.transfer.T, strict=True):
        crosses = ~inside[:, tensor.readers].all(axis=1) | tensor.leaves
        if tensor.producer >= 0:
            crosses &= inside[:, tensor.producer]
        if tensor.flag:
            flags[crosses] |= tensor.flag
        else:
            crossing[:, crosses] += transfer[:, np.newaxis]
    by_end = np.argsort(stages[:, 1], kind="stable")
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(stages[:, 1], minlength=count), out=offsets[1:])
    return CoreStates(
        inside @ items.costs,
        crossing,
        flags,
        offsets,
        stages[by_end][:, [0, 2, 3]].copy(),
        from_start=bool(component.settled & TAIL_USED),
        to_end=bool(component.settled & HEAD_USED),
        tail_flag=component.tail_flag,
        head_flag=component.head_flag,
    )


def _offsets(rows: Sequence[Sequence[object]]) -> Int64Array:
    return np.array([0, *accumulate(len(row) for row in rows)], dtype=np.int64)


def _flat(values: list[int]) -> Int32Array:
    return np.array(values, dtype=np.int32)
