"""Prices of bytes and ticks in searches for the least latency: what is left then takes more than its least work.

Every op after a downset stands on a device that is left, of some class c. No device holds more than its memory has room
for, and none takes longer than the limit on the bottleneck. So what is left takes at least the sum over its ops of
min_c ((1 + r_c) · w_c(v) + p_c · bytes(v)), less r_c · limit + p_c · room_c for each device left:
:mod:`mtpp.solvers.bounds.latency_floor`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.goal import Goal
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.latency_floor import good_prices, memory_room
from mtpp.solvers.unequal.unequal_arrays import ClassArrays

_LARGEST = 2**60
_SCALE = 2**20
_LEAST_SCALE = 2**8
"""Prices in coarser steps are left out."""


@dataclass(frozen=True)
class Prices:
    """Prices by class, as whole multiples of 1 / scale; *saved* is what a device of each class has room for at them."""

    scale: int
    per_byte: tuple[int, ...]
    per_tick: tuple[int, ...]
    saved: tuple[int, ...]

    def of_ops(self, arrays: ClassArrays) -> Int64Array:
        """Return the least work of each op at the prices, int64, shape (n,)."""
        rows = [
            (self.scale + r) * work + p * arrays.shared.param_bytes
            for work, p, r in zip(arrays.work, self.per_byte, self.per_tick, strict=True)
        ]
        least: Int64Array = np.min(rows, axis=0)
        return least

    def record(self) -> dict[str, Any]:
        """Return what a proof says of the prices; nothing where there are none."""
        if self.scale == 1:
            return {}
        prices = {"scale": self.scale, "per_byte": list(self.per_byte), "per_tick": list(self.per_tick)}
        return {"latency_prices": prices}


def prices_for(instance: Instance, goal: Goal, arrays: ClassArrays) -> Prices:
    """Return prices that tell much of the latency of all, none where that is not the objective or nothing is scarce."""
    classes = len(arrays.work)
    none = Prices(1, (0,) * classes, (0,) * classes, (0,) * classes)
    if not goal.of_latency or instance.cost.states_count:
        return none
    per_byte, per_tick = good_prices(instance, goal)
    if not any(per_byte) and not any(per_tick):
        return none
    rooms = [memory_room(instance, c) for c in range(classes)]
    scale = _SCALE
    while scale >= _LEAST_SCALE:
        shift = _SCALE // scale
        p, r = [one // shift for one in per_byte], [one // shift for one in per_tick]
        saved = [x * (goal.limit or 0) + y * max(0, room or 0) for x, y, room in zip(r, p, rooms, strict=True)]
        held = int(arrays.shared.param_bytes.sum())
        most = max((scale + x) * int(work.sum()) + y * held for x, y, work in zip(r, p, arrays.work, strict=True))
        crossing = scale * int(arrays.least_transfer.sum())
        if most + crossing + scale * instance.most_ticks * instance.k < _LARGEST and sum(saved) * instance.k < _LARGEST:
            return Prices(scale, tuple(p), tuple(r), tuple(saved))
        scale //= 2
    return none
