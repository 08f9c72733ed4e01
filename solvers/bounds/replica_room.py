"""The simple bound where stages may stand on several devices: the work that all devices have room for within a time.

Take a price q_c ≥ 0 for each class of devices, the measure y(v) = min q_c · work_c(v) of an op, and z(t) = min q_c ·
transfer_c(t) of a tensor. A stage S on a set R of devices costs at most T where Σ T/f_j(S) ≥ 1 over R. For each j the
measure of S and of what it cuts is at most q · f_j(S), so altogether it is at most T · Σ q over R. If a device has a
limit on its memory, S is also no more than what fits there, with ops taken in part, so that each device counts for no
more than that towards y(S).

So no plan stays within T if the devices that may be used come to less than Σ y in either way. If the graph hangs
together, a plan of two stages or more cuts a tensor, and two stages pay for it. A plan of one stage costs what the
whole graph does on all devices that hold it, the fastest ones. Where devices have times of stages, tensors cost none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.costs import ClassFigures, shared_cost
from mtpp.names import SIMPLE
from mtpp.solvers.bounds.device_room import memory_room
from mtpp.solvers.unequal.replica_arrays import device_prices

RULE = "replica-room"


def replica_room_bound(instance: Instance) -> LowerBound:
    """Return the least ticks within which the devices have room for all work; tier ``exact``.

    Notes
    -----
    O(classes · n·log n). Ops count as they were before any merge: the proof needs none.
    """
    base = instance if instance.ground is None else instance.ground.instance
    prices = device_prices(base)
    alone, value = whole_devices(base), _least_of_several(base, prices)
    if alone is not None:
        value = min(value, alone[0])
    proof = {
        "rule": RULE,
        "order": instance.machine.order,
        "cutoff": value,
        "k": instance.most_used,
        "replicated": True,
        "prices": prices,
    }
    return LowerBound(value, SIMPLE, Tier.EXACT, proof)


def whole_devices(instance: Instance) -> tuple[int, list[int]] | None:
    """Return the cost of the whole graph in one stage on the best devices, and these; None: no device holds it."""
    ticks = ClassFigures.of(
        instance, Partition.from_stages(instance, np.zeros(instance.op_count, dtype=np.int32))
    ).ticks
    class_of = instance.cost.class_of(instance.k).tolist()
    able = sorted((ticks[c][0] or 0, j) for j, c in enumerate(class_of) if ticks[c][0] is not None)
    chosen = able[: instance.most_used]
    if not chosen:
        return None
    return shared_cost([one for one, _ in chosen]), sorted(j for _, j in chosen)


def _least_of_several(instance: Instance, prices: Sequence[int]) -> int:
    """Return the least ticks within which the devices have room for a plan of two stages or more."""
    cost = instance.cost
    price = np.array(prices, dtype=np.int64)[:, np.newaxis]
    measured = (cost.work * price).min(axis=0)
    class_of = cost.class_of(instance.k).tolist()
    most, total = instance.most_used, int(measured.sum())
    best = sum(sorted((prices[c] for c in class_of), reverse=True)[:most])
    cut = 0
    if instance.tensor_count and not cost.counts_ops and _hangs_together(instance):
        cut = 2 * int((cost.transfer[cost.link_of] * price).min(axis=0)[np.diff(instance.pin_offsets) > 1].min())
    least: int = -(-(total + cut) // best)
    rooms = [memory_room(instance, measured, c) for c in range(len(cost.work))]

    def holds(ticks: int) -> bool:
        held = [min(room, ticks * q) for room, q in zip(rooms, prices, strict=True)]
        return bool(sum(sorted((held[c] for c in class_of), reverse=True)[:most]) >= total)

    low: int = least
    high: int = max(least, instance.most_ticks)
    if not holds(high):  # the memories are too small for all ops: no time would do
        return least
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _hangs_together(instance: Instance) -> bool:
    """Return whether there is a way between any two ops, in whatever direction of tensors."""
    n = instance.op_count
    sources, targets = instance.edges
    matrix = coo_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(n, n))
    return n > 1 and int(connected_components(matrix, directed=False, return_labels=False)) == 1
