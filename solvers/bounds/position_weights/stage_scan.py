"""Scan of one stage within a limit, which is priced for weights one after the other."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.solvers.bounds.frontier.kernels.fronts import Arcs, Slope, arcs_of, values_ahead
from mtpp.solvers.bounds.frontier.kernels.layers import (
    Layers,
    Steps,
    costs_ahead,
    costs_behind,
    trimmed,
    within_cost,
)
from mtpp.solvers.bounds.frontier.kernels.marginals import Swept, sweep
from mtpp.solvers.bounds.frontier.scan import (
    LARGEST_WORTH,
    Labelling,
    Room,
    best_labelling,
    best_slope,
    fits,
    scan_layers,
)


class StageScan:
    """Scan of one stage.

    The worths that its methods take are those of each label of each op, by position, int64, shape (n, 3).

    Parameters
    ----------
    most
        What the stage costs at most.

    Attributes
    ----------
    gap
        By how much the Lagrangian bound was too high last time.
    """

    def __init__(self, steps: Steps, most: int, room: Room) -> None:
        self._steps, self._most, self._room = steps, most, room
        self.gap = 0
        self._slope = Slope(0, 0)
        self._states: tuple[Layers, Arcs, Int64Array, Int64Array] | None = None

    def look(self, allowed: Int64Array) -> int:
        """Make the states of labels, by position, as a sum of 1 << label each; return how many there are.

        Raises
        ------
        TooManyStates
            If there is no room for them.
        """
        layers = scan_layers(self._steps, allowed, self._room, lazy=False)
        layers = trimmed(layers, within_cost(layers, self._most))
        self._states = layers, arcs_of(layers), costs_ahead(layers, False), costs_behind(layers)
        return len(layers.target)

    def put_off(self) -> None:
        """Give the memory of the states back."""
        self._states = None

    def best_slope(self, worth: Int64Array, most: int) -> Slope:
        """Return the best slope for labellings that cost so much at most."""
        return best_slope(self._made[0], worth, most)

    def fit(self, worth: Int64Array) -> Slope:
        """Take the best slope for some worths, and return it."""
        self._slope = self.best_slope(worth, self._most)
        return self._slope

    def likely(self, worth: Int64Array) -> int:
        """Return about the most worth, by Lagrangian relaxation and its gap last time."""
        slope = self._fitting(worth)
        value = int(values_ahead(self._made[0], worth, slope)[0]) + slope.price * self._most
        return (value >> slope.shift) - self.gap

    def labelling(self, worth: Int64Array, reach: int) -> Labelling | None:
        """Return a labelling that is worth most, None where that took too much room.

        Parameters
        ----------
        reach
            By how much the gap is likely to differ from the last one.
        """
        if int(np.abs(worth).sum()) > LARGEST_WORTH:
            return None
        layers, arcs, least_ahead, _ = self._made
        slope = best_slope(layers, worth, self._most)
        found = best_labelling(layers, arcs, worth, slope, least_ahead, self._most, self.gap, reach, self._room.entries)
        if found is not None:
            self.gap = found.gap
        return found

    def swept(self, worth: Int64Array, movable: BoolArray, forwards: bool, reach: int) -> Swept:
        """Go through the ops once, as :func:`~mtpp.solvers.bounds.frontier.kernels.marginals.sweep` says."""
        layers, arcs, least_ahead, least_behind = self._made
        return sweep(
            layers,
            arcs,
            worth,
            movable,
            forwards,
            least_ahead,
            least_behind,
            self._most,
            self._fitting(worth),
            self.likely(worth),
            reach,
            self._room.entries,
        )

    def learn(self, worth: Int64Array, found: Swept) -> None:
        """Correct the gap by the most worth that a sweep has found for some worths."""
        self.gap += self.likely(worth) - int(found.worth[-1])

    def _fitting(self, worth: Int64Array) -> Slope:
        """Return the slope at hand, a new one where values of these worths would have too many bits."""
        return self._slope if fits(self._slope, worth) else self.fit(worth)

    @property
    def _made(self) -> tuple[Layers, Arcs, Int64Array, Int64Array]:
        assert self._states is not None
        return self._states
