"""A bound on how often a chain is served where the ranges of layers that devices hold may overlap (Mei et al. 2025).

Each device holds one range of consecutive layers. With n layers it serves a request in t(n), all of its requests
together. A request may enter a range in its middle and leaves at its end. So the devices that hold a layer serve every
request there: with one request each T ticks, Σ T / t(n) over them is at least 1.

Prices q_c ≥ 0 of a device of each class refute a T: if q_c / n, added up over any devices with n layers each whose
T / t(n) come to at least 1, is at least a price of the layer, all layers together cost no more than the devices that
hold them, Σ q_c · count_c. Where that is less than the price of so many layers, requests are further apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mtpp.solvers.unequal.chains.covers import Item, cheapest_cover
from mtpp.solvers.unequal.chains.matrix_game import MatrixGame

_SCALE = 2**32
_MOST_WAYS = 500
_CLOSE = 1e-9


@dataclass(frozen=True)
class HeldRanges:
    """Devices, and the layers of which each holds a range.

    Attributes
    ----------
    layers
        Of the chain.
    counts
        Devices of each class.
    times
        By class: ticks of a request on a device with 1, 2, … layers.
    """

    layers: int
    counts: Sequence[int]
    times: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Refuted:
    """Requests that come each *ticks* are more than any placement serves.

    Attributes
    ----------
    prices
        Of a device of each class.
    price_of_layer
        No devices that hold a layer and serve all requests there have less of a price for it.
    """

    ticks: int
    prices: tuple[int, ...]
    price_of_layer: int


class OverlappingBound:
    """The search for the largest number of ticks that prices refute."""

    def __init__(self, ranges: HeldRanges) -> None:
        self._ranges = ranges
        self._places = [
            (c, n, time) for c, times in enumerate(ranges.times) for n, time in enumerate(times[: ranges.layers], 1)
        ]
        self._ways: list[tuple[Fraction, list[float]]] = []
        self._prices: list[int] = [1] * len(ranges.counts)

    def run(self) -> Refuted | None:
        """Return the refutation of the most ticks; None if not even one tick is refuted."""
        low, high = 0, max(time for _, _, time in self._places) + 1
        best: Refuted | None = None
        ending = self.refute(high)
        if ending is not None:  # the devices together hold too few layers
            return ending
        while low + 1 < high:
            middle = (low + high) // 2
            found = self.refute(middle)
            if found is None:
                high = middle
            else:
                low, best = middle, found
        return best

    def refute(self, ticks: int) -> Refuted | None:
        """Return prices that refute so many ticks; None if none were found."""
        ranges = self._ranges
        found = self._priced(ticks, self._prices)
        if found is not None:
            return found
        game = MatrixGame(ranges.counts)
        for longest, used in self._ways:
            if longest <= ticks:
                game.add(used)
        for _ in range(_MOST_WAYS):
            if game.value * ranges.layers <= 1 + _CLOSE:
                return None
            prices = [round(_SCALE * price) for price in game.prices]
            found = self._priced(ticks, prices)
            if found is not None:
                self._prices = prices
                return found
            game.add(self._ways[-1][1])
        return None

    def _priced(self, ticks: int, prices: Sequence[int]) -> Refuted | None:
        """Return the refutation at some prices; if they refute nothing, keep the cheapest way to serve a layer."""
        ranges = self._ranges
        items = [
            Item(Fraction(ticks, time) if time else Fraction(1), Fraction(prices[c], n)) for c, n, time in self._places
        ]
        chosen = cheapest_cover(items)
        price = sum(item.cost * count for item, count in zip(items, chosen, strict=True)) // 1
        if sum(q * count for q, count in zip(prices, ranges.counts, strict=True)) < price * ranges.layers:
            return Refuted(ticks, tuple(prices), int(price))
        used = [0.0] * len(prices)
        served = Fraction(0)
        for (c, n, time), count in zip(self._places, chosen, strict=True):
            used[c] += count / n
            served += Fraction(count, time) if time and count else 0
        self._ways.append((1 / served if served else Fraction(0), used))
        return None
