"""Sets of devices, by class, that take turns at the requests of a stage so that it keeps to a limit.

Devices R with f_j ticks each keep to T where Σ T / f_j ≥ 1: shares, in integers of which so many are a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TypeAlias

_MOST_SETS = 5_000


class TooManySets(Exception):
    """More sets suffice for a stage than can be listed."""


DeviceSet: TypeAlias = tuple[int, ...]
"""Number of devices of each class."""


@dataclass(frozen=True)
class Shares:
    """What a device of each class does of a stage's requests.

    Attributes
    ----------
    of_device
        By class, at most the whole.
    whole
        What a set has to come to.
    counts
        Devices of each class.
    """

    of_device: tuple[int, ...]
    whole: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, ticks: Sequence[int | None], limit: int, counts: Sequence[int]) -> Shares:
        """Return the shares of devices that take so many ticks; None: they may not hold the stage."""
        whole = lcm(*(one for one in ticks if one))
        shares = tuple(0 if one is None else whole if one <= limit else limit * (whole // one) for one in ticks)
        return cls(shares, whole, tuple(counts))

    @property
    def reach(self) -> bool:
        """Whether all devices together suffice."""
        return sum(share * count for share, count in zip(self.of_device, self.counts, strict=True)) >= self.whole


def cheapest_set(shares: Shares, prices: Sequence[int]) -> tuple[int, DeviceSet]:
    """Return the price of a cheapest set that suffices, and that set; there has to be one."""
    order = _by_price(shares, prices)
    best_price, best = 2**62, [0] * len(prices)
    counts = [0] * len(prices)

    def go_on(at: int, missing: int, paid: int) -> None:
        nonlocal best_price, best
        if missing <= 0:
            if paid < best_price:
                best_price, best = paid, counts.copy()
            return
        if at == len(order):
            return
        c = order[at]
        share = shares.of_device[c]
        if (best_price - paid) * share <= missing * prices[c]:  # no class from here on is cheaper by its share
            return
        for count in range(min(shares.counts[c], -(-missing // share)), -1, -1):
            counts[c] = count
            go_on(at + 1, missing - count * share, paid + count * prices[c])
        counts[c] = 0

    go_on(0, shares.whole, 0)
    return best_price, tuple(best)


def sets_within(shares: Shares, prices: Sequence[int], most: int) -> list[DeviceSet]:
    """Return the sets that suffice, without a device too many, and cost at most so much.

    Raises
    ------
    TooManySets
        If there are more than 5,000.
    """
    order = _by_price(shares, prices)
    counts = [0] * len(prices)
    found: list[DeviceSet] = []

    def go_on(at: int, missing: int, paid: int, least: int) -> None:
        if missing <= 0:
            if missing + least > 0:  # without its smallest device the set does not suffice
                found.append(tuple(counts))
                if len(found) > _MOST_SETS:
                    raise TooManySets
            return
        if at == len(order):
            return
        c = order[at]
        share = shares.of_device[c]
        if (most - paid) * share < missing * prices[c]:
            return
        for count in range(min(shares.counts[c], -(-missing // share)), -1, -1):
            counts[c] = count
            go_on(at + 1, missing - count * share, paid + count * prices[c], min(least, share) if count else least)
        counts[c] = 0

    go_on(0, shares.whole, 0, shares.whole)
    return found


def _by_price(shares: Shares, prices: Sequence[int]) -> list[int]:
    """Return the classes that do something, the cheapest by share first."""
    able = [c for c, share in enumerate(shares.of_device) if share and shares.counts[c]]
    return sorted(able, key=lambda c: (Fraction(prices[c], shares.of_device[c]), c))
