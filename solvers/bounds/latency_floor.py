"""The simple bound on latency: each op on the device that takes least for it, at prices of time and memory.

Every op stands on one device, whose class c takes w_c(v) for it. The latency is at least the sum of these times. No
device of c holds more than its memory has room for, and none computes for longer than the bottleneck may be. So with
any prices p_c ≥ 0 of a byte and r_c ≥ 0 of a tick,

    latency ≥ Σ_v min_c ((1 + r_c) · w_c(v) + p_c · bytes(v)) − Σ_c count_c · (r_c · limit + p_c · room_c).

Prices are whole multiples of 2^−20, so that the right-hand side is one of integers.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.goal import Goal
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.names import SIMPLE

RULE = "latency-prices"
SCALE = 2**20

_ROUNDS = 200
_LARGEST_PRICE = 2**40


def latency_floor(instance: Instance, goal: Goal) -> LowerBound:
    """Return the bound at good prices, which a few steps along subgradients find; tier ``exact``.

    Notes
    -----
    O(classes · n) for each step. Ops count as they were before any merge: the proof needs none.
    """
    base = instance if instance.ground is None else instance.ground.instance
    value, per_byte, per_tick = _best(base, goal)
    proof = {
        "rule": RULE,
        "order": base.machine.order,
        "objective": goal.objective,
        "limit": goal.limit,
        "cutoff": value,
        "k": base.most_used,
        "per_byte": per_byte,
        "per_tick": per_tick,
    }
    return LowerBound(value, SIMPLE, Tier.EXACT, proof)


def good_prices(instance: Instance, goal: Goal) -> tuple[list[int], list[int]]:
    """Return prices of bytes and ticks by class at which the bound is high, in units of 1 / :data:`SCALE`."""
    return _best(instance, goal)[1:]


def _best(instance: Instance, goal: Goal) -> tuple[int, list[int], list[int]]:
    """Return the best bound found, and its prices."""
    cost, classes = instance.cost, len(instance.cost.work)
    rooms = [memory_room(instance, c) for c in range(classes)]
    counts = np.bincount(cost.class_of(instance.k), minlength=classes).tolist()
    prices: list[tuple[list[int], list[int]]] = [([0] * classes, [0] * classes)]
    if goal.limit is not None or any(room is not None for room in rooms):
        prices += _prices(cost.work, instance.param_bytes, np.array(counts), rooms, goal.limit)
    values = [_value(cost.work, instance.param_bytes, counts, rooms, goal.limit, *one) for one in prices]
    at = max(range(len(values)), key=values.__getitem__)
    return values[at], *prices[at]


def memory_room(instance: Instance, c: int) -> int | None:
    """Return the bytes of parameters that a device of a class holds at most; None: any."""
    device = instance.machine.classes[c]
    if device.memory_bytes is None:
        return None
    return device.memory_bytes - (device.activation_reserve_bytes if device.peak == "reserve" else 0)


def _value(
    work: Int64Array,
    held: Int64Array,
    counts: list[int],
    rooms: list[int | None],
    limit: int | None,
    per_byte: list[int],
    per_tick: list[int],
) -> int:
    """Return the bound at some prices, in exact arithmetic; 0 where it would be less."""
    rows = [
        [(SCALE + r) * ticks + p * size for ticks, size in zip(row, held.tolist(), strict=True)]
        for row, p, r in zip(work.tolist(), per_byte, per_tick, strict=True)
    ]
    paid: int = sum(map(min, zip(*rows, strict=True)))
    for count, room, p, r in zip(counts, rooms, per_byte, per_tick, strict=True):
        paid -= count * (r * (limit or 0) + p * (room or 0))
    return max(0, -(-paid // SCALE))


def _prices(
    work: Int64Array, held: Int64Array, counts: Int64Array, rooms: list[int | None], limit: int | None
) -> list[tuple[list[int], list[int]]]:
    """Return prices of bytes and ticks that come close to the best, the best ones met last."""
    classes, n = work.shape
    times, sizes = work.astype(np.float64), held.astype(np.float64)
    priced = np.array([room is not None for room in rooms])
    held_most = counts * np.array([float(room or 0) for room in rooms])
    busy_most = counts * float(limit or 0)
    p, r = np.zeros(classes), np.zeros(classes)
    met: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
    scale = float(times.min(axis=0).sum()) or 1.0
    step = 0.5
    stale, top = 0, -np.inf
    for _ in range(_ROUNDS):
        costs = (1 + r)[:, np.newaxis] * times + p[:, np.newaxis] * sizes
        at = costs.argmin(axis=0)
        value = float(costs[at, np.arange(n)].sum() - (r * busy_most).sum() - (p * held_most).sum())
        met.append((value, p.copy(), r.copy()))
        if value > top:
            top, stale = value, 0
        else:
            stale += 1
            if stale >= 8:
                step, stale = step / 2, 0
                _, p, r = met[int(np.argmax([one[0] for one in met]))]
                p, r = p.copy(), r.copy()
                continue
        over_bytes = np.bincount(at, weights=sizes, minlength=classes) - held_most
        over_ticks = np.bincount(at, weights=times[at, np.arange(n)], minlength=classes) - busy_most
        over_bytes[~priced] = 0
        if limit is None:
            over_ticks[:] = 0
        size = float(sizes.sum()) or 1.0
        length = (np.square(over_bytes / size).sum() + np.square(over_ticks / scale).sum()) ** 0.5
        if length == 0:
            break
        p = np.maximum(0, p + step * scale / size * (over_bytes / size) / length)
        r = np.maximum(0, r + step * (over_ticks / scale) / length)
    best = sorted(met, key=lambda one: one[0])[-2:]
    return [([_whole(x) for x in bytes_], [_whole(x) for x in ticks]) for _, bytes_, ticks in best]


def _whole(price: float) -> int:
    return min(_LARGEST_PRICE, ceil(price * SCALE - 0.5))
