"""Blocks in the order of their definition on the devices of a machine, with the least bottleneck."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.array_types import Array
from mtpp.inference.instance import Instance
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.interval_sums import Pins, streamed, summed
from mtpp.solvers.layer_chains.search import fastest_plan
from mtpp.solvers.layer_chains.tables import NEVER, Alternative, ChainTables


def fastest_in_order(
    instance: Instance, block_of_op: Sequence[int], weights: Sequence[int], held: Sequence[int], limits: Sequence[int]
) -> list[int] | None:
    """Search for the map of least bottleneck among maps with consecutive blocks on each device.

    Parameters
    ----------
    instance
        Ops with their times, and tensors between them, on the machine.
    block_of_op
        Block of each op. A block may have ops that lie far apart, such as an embedding and a tied head.
    weights, held
        Bytes of each block: without caches, and all of them.
    limits
        Bytes of each device.

    Returns
    -------
    Device of each block; the bottleneck is proven least, and of such maps the latency is. None if no such map keeps the
    limits.

    Notes
    -----
    A device costs the work of its blocks, transfers of tensors that enter or leave them, and what it streams beyond its
    fast memory, as :mod:`mtpp.inference.stage_cost` has it.
    """
    machine = instance.machine
    kinds = sorted(set(zip(machine.class_of, limits, strict=True)))
    costs, fits = zip(
        *(_intervals(instance, block_of_op, weights, held, device_class, limit) for device_class, limit in kinds),
        strict=True,
    )
    ticks = np.array(costs)
    tables = ChainTables(tuple(Alternative(c) for c in range(len(kinds))), ticks, ticks, np.array(fits))
    class_of = [kinds.index(kind) for kind in zip(machine.class_of, limits, strict=True)]
    plan = fastest_plan(tables, ChainDevices.of(class_of, free=machine.free))
    if plan is None:
        return None
    return [stage.device for stage in plan.stages for _ in range(stage.start, stage.stop)]


def _intervals(
    instance: Instance,
    block_of_op: Sequence[int],
    weights: Sequence[int],
    held: Sequence[int],
    device_class: int,
    limit: int,
) -> tuple[Array, Array]:
    """Ticks of all intervals of blocks on a device, and which of them it holds; (blocks + 1)² each."""
    n, cost, block = len(held), instance.cost, np.array(block_of_op, dtype=np.int64)
    device = instance.machine.classes[device_class]
    work = np.zeros(n, dtype=np.int64)
    np.add.at(work, block, cost.work[device_class])
    pins, moved = Pins(instance.pin_offsets, block[instance.pins], n), cost.transfer[int(cost.link_of[device_class])]
    ticks = summed(work) + pins.touched(moved) - pins.inside(moved)
    ends = np.arange(n + 1)
    fits = (ends[np.newaxis, :] > ends[:, np.newaxis]) & (summed(np.array(held, dtype=np.int64)) <= limit)
    if device.fast_memory_bytes is not None:
        kept = np.where(fits, summed(np.array(weights, dtype=np.int64)), 0)
        ticks = ticks + streamed(device, kept + device.activation_reserve_bytes)
    return np.where(fits, ticks, NEVER), fits
