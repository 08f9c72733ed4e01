"""Prices of resources that make the cheapest of many ways as expensive as can be: a matrix game, way by way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MOST_PIVOTS = 1000
_TINY = 1e-11


class MatrixGame:
    """Ways that use resources, of which there are so many units; the game's value is the least share of all of them.

    The mixture of ways that uses the least share of the scarcest resource, and prices at which no way known is cheaper
    than that share of everything. Revised with each new way by the primal simplex method (Dantzig 1951), in floating
    point: prices are proposals, whatever rests on them has to be checked in integers.

    Parameters
    ----------
    units
        Of each resource, above zero.
    """

    def __init__(self, units: Sequence[int]) -> None:
        self._units = np.array(units, dtype=np.float64)
        count = len(units)
        self._inverse = np.eye(count)
        self._right = np.ones(count)
        self._columns: list[NDArray[np.float64]] = list(np.eye(count))
        self._gains = [0.0] * count
        self._basis = list(range(count))

    @property
    def value(self) -> float:
        """The least share of the scarcest resource that a mixture of the ways known uses; infinite without ways."""
        total = float(self._basic_gains @ self._right)
        return 1 / total if total > _TINY else np.inf

    @property
    def prices(self) -> list[float]:
        """Price of a unit of each resource, all units together at 1."""
        duals = np.maximum(self._basic_gains @ self._inverse, 0)
        total = float(duals.sum())
        shares = duals / total if total > _TINY else np.full(len(duals), 1 / len(duals))
        prices: list[float] = (shares / self._units).tolist()
        return prices

    def add(self, used: Sequence[float]) -> None:
        """Take a way by the units of each resource that it uses, and solve the game again."""
        self._columns.append(np.array(used, dtype=np.float64) / self._units)
        self._gains.append(1.0)
        for pivot in range(_MOST_PIVOTS):
            duals = self._basic_gains @ self._inverse
            gains = np.array(self._gains) - np.array(self._columns) @ duals
            entering = int(gains.argmax()) if pivot < _MOST_PIVOTS // 2 else int((gains > _TINY).argmax())
            if gains[entering] <= _TINY:
                return
            rates = self._inverse @ self._columns[entering]
            if rates.max() <= _TINY:
                return
            ratios = np.where(rates > _TINY, self._right / np.maximum(rates, _TINY), np.inf)
            self._exchange(int(ratios.argmin()), entering, rates)

    @property
    def _basic_gains(self) -> NDArray[np.float64]:
        return np.array([self._gains[i] for i in self._basis])

    def _exchange(self, row: int, entering: int, rates: NDArray[np.float64]) -> None:
        self._inverse[row] /= rates[row]
        self._right[row] /= rates[row]
        for other in range(len(rates)):
            if other != row:
                self._inverse[other] -= rates[other] * self._inverse[row]
                self._right[other] = max(0.0, self._right[other] - rates[other] * self._right[row])
        self._basis[row] = entering
