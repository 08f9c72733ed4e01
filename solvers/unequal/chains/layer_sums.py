"""Chains whose ranges cost the same wherever they begin: numbers of layers on devices that add up to all of them.

In free order, with a device for each stage, it does not matter then which layers a device has. Devices are looked at
one after the other, each with none or any number of layers that it runs within the limit: the totals that the first
devices can reach, by the number of devices used, are all that the others need to know.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.array_types import Int64Array


def lengths_anywhere(ticks: Int64Array) -> Int64Array | None:
    """Return the cost of so many ops by class, int64, shape (classes, longest); None where it depends on the place.

    Parameters
    ----------
    ticks
        As :attr:`~mtpp.solvers.unequal.chains.range_costs.RangeCosts.ticks`.
    """
    _, n, longest = ticks.shape
    sizes = np.arange(longest)
    inside = np.arange(n)[:, None] + sizes < n
    anywhere: Int64Array = ticks[:, 0, :]
    return anywhere if np.all(~inside | (ticks == anywhere[:, None, :])) else None


def layers_of_devices(lengths: Sequence[Sequence[int]], class_of: Sequence[int], layers: int, most: int) -> list[int]:
    """Return how many layers each device has that come to all of them, at most *most* having any; nothing if none do.

    Parameters
    ----------
    lengths
        For each class of devices the numbers of layers that a device may have.
    class_of
        Class of each device.

    Notes
    -----
    O(devices · most · lengths) operations on sets of totals, which are the bits of integers.
    """
    every, limited = (1 << layers + 1) - 1, most < len(class_of)
    reached = [1] + [0] * (most if limited else 0)
    before: list[list[int]] = []
    for c in class_of:
        before.append(list(reached))
        for used in range(len(reached)):
            source = before[-1][used - 1] if limited else before[-1][used]
            if limited and used == 0:
                continue
            for size in lengths[c]:
                reached[used] |= source << size & every
    ending = [used for used, totals in enumerate(reached) if totals >> layers & 1]
    if not ending:
        return []
    total, used = layers, ending[0]
    chosen = [0] * len(class_of)
    for j in range(len(class_of) - 1, -1, -1):
        if before[j][used] >> total & 1:
            continue
        source = used - 1 if limited else used
        size = next(size for size in lengths[class_of[j]] if total >= size and before[j][source] >> total - size & 1)
        chosen[j], total, used = size, total - size, source
    return chosen
