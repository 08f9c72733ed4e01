"""First blocks on devices, the last ones offloaded: their weights are streamed to the first device."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from mtpp.solvers.device_maps.least_fullest import least_fullest


def least_offloaded(weights: Sequence[int], caches: Sequence[int], limits: Sequence[int]) -> list[int] | None:
    """Search for the map that offloads the fewest blocks, the last in the order of their definition.

    Parameters
    ----------
    weights, caches
        Bytes of each block. Of an offloaded block the caches stay on the first device used, which also needs room for
        the weights of the largest one.
    limits
        Bytes of each device.

    Returns
    -------
    Device of each block that is not offloaded; its fullest device is as empty as can be. None if no block can be on a
    device. Devices stand in the given order, but for the first, which may be any.
    """
    held = [weight + cache for weight, cache in zip(weights, caches, strict=True)]
    prefix = [0, *accumulate(held)]
    for stop in range(len(held) - 1, 0, -1):
        reserve = max(weights[stop:]) + sum(caches[stop:])
        for first, limit in enumerate(limits):
            if limit - reserve < held[0] or limit <= reserve:
                continue
            order = [first, *(device for device in range(len(limits)) if device != first)]
            rooms = [limits[device] - (reserve if device == first else 0) for device in order]
            if _filled(prefix, stop, rooms) is not None:
                return _best(held, prefix, stop, order, rooms)
    return None


def _filled(prefix: Sequence[int], stop: int, rooms: Sequence[int]) -> list[int] | None:
    """Fill devices in order with the first blocks."""
    placed: list[int] = []
    for device, room in enumerate(rooms):
        end = min(stop, bisect_right(prefix, prefix[len(placed)] + room) - 1)
        placed += [device] * (end - len(placed))
    return placed if len(placed) == stop else None


def _best(
    held: Sequence[int], prefix: Sequence[int], stop: int, order: Sequence[int], rooms: Sequence[int]
) -> list[int]:
    used = [i for i, room in enumerate(rooms) if room > 0]
    found = least_fullest(lambda caps: _filled(prefix, stop, caps), held[:stop], [rooms[i] for i in used])
    assert found is not None, "the rooms themselves hold all"
    return [order[used[i]] for i in found[0]]
