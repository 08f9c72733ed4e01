"""Optima of small random graphs where stages may stand on several devices, by brute force from the definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import ceil

import numpy as np
from random_devices import NEVER, RandomCase

from mtpp.inference.partition import Partition


def shared_cost(each: Iterable[int]) -> int:
    """Return the cost of a stage on devices that take so many ticks each for it."""
    ticks = list(each)
    if NEVER in ticks:
        return NEVER
    if 0 in ticks:
        return 0
    return ceil(1 / sum(Fraction(1, one) for one in ticks))


def replicated_bottleneck(case: RandomCase, partition: Partition, replicas: Sequence[Sequence[int]]) -> int:
    """Return the largest stage cost of a partition whose stage i stands on the devices ``replicas[i]``."""
    used = [device for devices in replicas for device in devices]
    assert sorted(used) == list(range(len(case.devices)))
    stages = [np.flatnonzero(partition.assignment == i).tolist() for i in range(len(replicas))]
    return max(
        shared_cost(case.cost(stage, j) for j in devices) if stage else 0
        for stage, devices in zip(stages, replicas, strict=True)
    )


def replicated_optimum(case: RandomCase, most: int, *, free: bool) -> int:
    """Return the least bottleneck on at most *most* devices; :data:`NEVER` if there is no plan."""
    count, whole, prefixes = len(case.devices), (1 << case.ops) - 1, case.downsets()
    each = cache(lambda bits, j: case.cost([v for v in range(case.ops) if bits >> v & 1], j))
    cost = cache(lambda bits, chosen: shared_cost(each(bits, j) for j in range(count) if chosen >> j & 1))

    def sets_after(used: int) -> Iterator[int]:
        for chosen in range(1, 1 << count):
            apart = not chosen & used and (used | chosen).bit_count() <= most
            if apart and (free or chosen & -chosen > used):
                yield chosen

    @cache
    def least(done: int, used: int) -> int:
        if done == whole:
            return 0
        best = NEVER
        for chosen in sets_after(used):
            for end in prefixes:
                if end != done and end & done == done and cost(end & ~done, chosen) < best:
                    best = min(best, max(cost(end & ~done, chosen), least(end, used | chosen)))
        return best

    return least(0, 0)
