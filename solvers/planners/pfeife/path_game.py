"""Game of paths against splits: the bound on all splits of a schedule, and the split points to begin a search with.

A split takes at least as long as any mixture of paths through the passes: Σ of times and hand-overs, weighted by how
often the paths have them. Against a fixed mixture the cheapest split is found exactly, and against a mixture of splits
the longest path; the value of the game, at which neither gains by another choice, is the best bound of this kind. The
two add their best replies to a small linear programme (double oracle; McMahan et al. 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mtpp.array_types import Float64Array, Int64Array
from mtpp.solvers.bounds.mip.highs import MatrixGame
from mtpp.solvers.planners.pfeife.baselines import split_of_shares
from mtpp.solvers.planners.pfeife.kernels.cheapest_split import cheapest_split
from mtpp.solvers.planners.pfeife.path_network import NetworkPath, PathNetwork
from mtpp.training.pfeife.costs import SplitTimes

_UNIT = 1000.0
"""All ops of one micro-batch together in the programme: numbers that HiGHS's tolerances go with."""

_CLOSE = 1e-4
"""Gap between the two players at which the game ends."""

_MOST_ROUNDS = 400


@dataclass(frozen=True, eq=False)
class GameResult:
    """Outcome of a game.

    Attributes
    ----------
    value
        Of the best mixture of paths against its cheapest split, in ticks, as a float.
    paths, weights
        That mixture.
    split
        Split points between ops where the mixture of splits has them on average, int64, shape (S + 1,).
    """

    value: float
    paths: Sequence[NetworkPath]
    weights: Sequence[float]
    split: Int64Array


class PathGame:
    """A game on one network; it may go on where it stopped.

    Parameters
    ----------
    splits
        To begin with, int64, shape (S + 1,) each; at least one.
    """

    def __init__(self, network: PathNetwork, times: SplitTimes, splits: Sequence[Int64Array]) -> None:
        self._network = network
        total = float(times.forward[:, -1].max() + times.backward[:, -1].max())
        self._unit = _UNIT / max(total, 1.0)
        self._forward: Float64Array = times.forward.astype(np.float64) * self._unit
        self._backward: Float64Array = times.backward.astype(np.float64) * self._unit
        self._handover: Float64Array = times.handover.astype(np.float64) * self._unit
        self._times = times
        self._game = MatrixGame()
        self._columns: dict[bytes, Float64Array] = {}
        self._splits: list[Int64Array] = []
        self._rows: dict[bytes, Float64Array] = {}
        self._paths: list[NetworkPath] = []
        self._split = np.zeros(network.stages + 1, dtype=np.int64)
        self.lower, self.upper = 0.0, np.inf
        self._prices: Float64Array | None = None
        self._mixture: list[tuple[NetworkPath, float]] = []
        self._average: Float64Array | None = None
        for split in splits:
            self._add_split(split)
        self._answer_split(np.mean(list(self._columns.values()), axis=0))

    def _add_split(self, split: Int64Array) -> bool:
        key = split.tobytes()
        if key in self._columns:
            return False
        forward, backward, handover = self._times.stage_times(split)
        costs = np.zeros(3 * self._network.stages)
        costs[0 : 2 * self._network.stages : 2] = forward * self._unit
        costs[1 : 2 * self._network.stages : 2] = backward * self._unit
        costs[2 * self._network.stages + 1 :] = handover * self._unit
        self._game.add_column(np.array([row @ costs for row in self._rows.values()]))
        self._columns[key] = costs
        self._splits.append(split.copy())
        return True

    def _answer_split(self, costs: Float64Array) -> tuple[float, bool]:
        """Add the longest path against costs of a mixture of splits; return its length, and whether it is new."""
        length, path = self._network.longest(costs)
        prices = self._network.prices(path)
        key = prices.tobytes()
        if key in self._rows:
            return length, False
        self._game.add_row(np.array([column @ prices for column in self._columns.values()]))
        self._rows[key] = prices
        self._paths.append(path)
        return length, True

    def _answer_paths(self, prices: Float64Array) -> tuple[float, bool]:
        """Add the cheapest split against prices of a mixture of paths; return its price, and whether it is new."""
        value = cheapest_split(self._forward, self._backward, self._handover, self._times.speed_of, prices, self._split)
        costs_known = self._add_split(self._split)
        _, new_path = self._answer_split(self._columns[self._split.tobytes()])
        return value, costs_known or new_path

    def play(self, ended: Callable[[], bool], *, enough: float = np.inf, rounds: int = _MOST_ROUNDS) -> GameResult:
        """Play until the players meet, nothing new comes up, or the bound reaches *enough* ticks."""
        for turn in range(rounds):
            mixtures = self._game.solve()
            if mixtures is None:
                break
            rows, columns = mixtures
            prices = np.array(list(self._rows.values())).T @ rows
            costs = np.array(list(self._columns.values())).T @ columns
            part = 0.5 if turn % 2 and self._prices is not None else 1.0
            known = list(self._paths)
            if part < 1.0 and self._average is not None and self._prices is not None:
                length, first = self._answer_split(part * costs + (1 - part) * self._average)
                if length < self.upper:
                    self.upper, self._average = length, part * costs + (1 - part) * self._average
                mixed = part * prices + (1 - part) * self._prices
                mixture = [(p, w * part) for p, w in zip(known, rows, strict=True)]
                mixture += [(p, w * (1 - part)) for p, w in self._mixture]
            else:
                length, first = self._answer_split(costs)
                if length < self.upper:
                    self.upper, self._average = length, costs
                mixed, mixture = prices, list(zip(known, rows, strict=True))
            value, second = self._answer_paths(mixed)
            if value > self.lower:
                self.lower, self._prices = value, mixed
                self._mixture = _merged(mixture)
            if self.upper - self.lower <= _CLOSE * self.lower or self.lower >= enough * self._unit or ended():
                break
            if not first and not second and part == 1.0:
                break
        return GameResult(
            self.lower / self._unit,
            [path for path, _ in self._mixture],
            [weight for _, weight in self._mixture],
            self._middle(),
        )

    def _middle(self) -> Int64Array:
        """Return the split whose stages take what those of the mixture of splits take on average."""
        costs = self._average if self._average is not None else next(iter(self._columns.values()))
        stages = self._network.stages
        shares = costs[0 : 2 * stages : 2] + costs[1 : 2 * stages : 2]
        sums = self._times.forward[0] + self._times.backward[0]
        return split_of_shares(sums, (shares / max(float(shares.sum()), 1e-9)).tolist())


def _merged(mixture: Sequence[tuple[NetworkPath, float]]) -> list[tuple[NetworkPath, float]]:
    """Add up the weights of each path, and drop those without any."""
    weights: dict[NetworkPath, float] = {}
    for path, weight in mixture:
        weights[path] = weights.get(path, 0.0) + float(weight)
    return [(path, weight) for path, weight in weights.items() if weight > 1e-12]
