"""Costs of ops and tensors on devices and links in integer ticks, each rounded up once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from mtpp.array_types import Int64Array
from mtpp.machine.link import Link
from mtpp.machine.pair_link import PairLink
from mtpp.units import PICOSECONDS, Exact, ceil_ratio


def work_ticks(costs: Iterable[Exact], ticks_per_unit: int, speed: Exact = 1) -> list[int]:
    """Return the ticks of costs of which so many make a unit, at a speed."""
    return [_tick(cost, ticks_per_unit, speed) for cost in costs]


def message_ticks(
    given: Sequence[Exact | None], sizes: Int64Array, link: Link | PairLink, ticks_per_unit: int
) -> list[int]:
    """Return what a message with each tensor takes on a link: the given time at its speed, else that of its bytes."""
    moved = zip(given, _streamed(sizes, link), strict=True)
    return [
        link.latency_ps + (streamed if cost is None else _tick(cost, ticks_per_unit, link.speed))
        for cost, streamed in moved
    ]


def _tick(cost: Exact, ticks_per_unit: int, speed: Exact = 1) -> int:
    if type(cost) is int and speed == 1:  # what nearly every cost is, in a graph of millions
        return cost * ticks_per_unit
    return ceil_ratio(cost.numerator * ticks_per_unit * speed.denominator, cost.denominator * speed.numerator)


def _streamed(sizes: Int64Array, link: Link | PairLink) -> list[int]:
    """Return the time of each tensor on the link without latency; meaningless where the size is not known."""
    second = PICOSECONDS["s"] * link.rate.denominator
    divisor = gcd(second, link.rate.numerator)
    numerator, denominator = second // divisor, link.rate.numerator // divisor
    if int(sizes.max(initial=0)) * numerator + denominator < 2**63:
        ticks: list[int] = (-(-(sizes * numerator) // denominator)).tolist()
        return ticks
    return [link.streaming_ps(size) for size in sizes.tolist()]
