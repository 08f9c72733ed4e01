"""Prices of devices at which no chain of stages within a limit can be paid for by all devices together.

Integers q_c ≥ 0 for a device of class c, and q for any device. A stage on a set of devices costs what they do. If the
cheapest chain of stages that holds all ops costs more than Σ q_c · count_c + q · k, k being the devices that may be
used, no plan stays within the limit: the devices of a plan are at most so many of each class and k in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtpp.solvers.unequal.chains.matrix_game import MatrixGame
from mtpp.solvers.unequal.chains.stage_choices import NONE, StageChoices

_SCALE = 2**32
_MOST_WAYS = 300
_CLOSE = 1e-9


@dataclass(frozen=True)
class Prices:
    """Prices, and the cheapest chain at them from each position on.

    Attributes
    ----------
    by_class
        q_c of a device of each class.
    of_any
        q of every device, whatever its class.
    rest
        Price of the cheapest chain of stages from each position to the end; :data:`NONE` where there is none.
    budget
        Σ q_c · count_c + q · k.
    """

    by_class: tuple[int, ...]
    of_any: int
    rest: tuple[int, ...]
    budget: int

    @property
    def refute(self) -> bool:
        """Whether the cheapest chain costs more than all devices."""
        return self.rest[0] >= NONE or self.rest[0] > self.budget

    @property
    def each(self) -> tuple[int, ...]:
        """What a device of each class costs in all."""
        return tuple(price + self.of_any for price in self.by_class)


class Pricing:
    """Searches for prices, one limit after another; they begin with the prices that came last.

    Parameters
    ----------
    counts
        Devices of each class.
    most
        Devices that may be used.
    """

    def __init__(self, counts: Sequence[int], most: int) -> None:
        self._counts, self._most = tuple(counts), most
        self._last = (tuple(1 for _ in counts), 0)

    def price(self, choices: StageChoices) -> Prices:
        """Return prices that refute the choices, or the best found: those that leave least to choose from."""
        best = self._of(*self._last, choices)[0]
        if best.refute:
            return best
        game = MatrixGame((*self._counts, self._most))
        for _ in range(_MOST_WAYS):
            prices = [round(_SCALE * price) for price in game.prices]
            found, used = self._of(tuple(prices[:-1]), prices[-1], choices)
            if _share(found) > _share(best):
                best = found
            if best.refute:
                break
            game.add((*used, sum(used)))
            if game.value <= max(1.0, _share(best) * (1 + _CLOSE)):
                break
        self._last = (best.by_class, best.of_any)
        return best

    def _of(self, by_class: tuple[int, ...], of_any: int, choices: StageChoices) -> tuple[Prices, list[int]]:
        rest, used = choices.cheapest([price + of_any for price in by_class])
        budget = of_any * self._most + sum(q * count for q, count in zip(by_class, self._counts, strict=True))
        return Prices(by_class, of_any, tuple(rest), budget), used


def _share(prices: Prices) -> float:
    return prices.rest[0] / max(1, prices.budget)
