"""Trees that divide families until no stage can hold more than 1 of some weights, built by all threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.solvers.bounds.configuration.kernels.division import DIVIDED, FOUND, FULL, divide_family
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_families import Fill
from mtpp.solvers.bounds.configuration.kernels.stage_network import Int8Array
from mtpp.solvers.bounds.configuration.weights import DEEPEST, SCALE, WeightSearch

Trees = dict[int, tuple[Int32Array, FloatArray, FloatArray]]
"""Of families, by their numbers: op, budget and rest of each node, the part with the op before that without it."""

_ROOM = 1 << 14
"""Nodes of one family's tree at most."""

_FOUND = 3
"""Stages that hold more than 1 after which the work stops."""


@dataclass(eq=False)
class Division:
    """The division of the families of a search that may hold more than 1, by its weights and at its limit.

    Attributes
    ----------
    search
        Its families, weights and limit have to stay as they are meanwhile.
    trees
        Of each family that has been divided: op, budget and rest of each node in preorder.
    found
        Stages that hold more than 1, if any were found.
    complete
        Whether all are divided.
    nodes
        Of all trees.
    """

    search: WeightSearch
    fill: Fill
    trees: Trees = field(default_factory=dict)
    found: list[Int8Array] = field(default_factory=list)
    complete: bool = False
    nodes: int = 0

    def run(self, room: int, ended: Callable[[], bool]) -> None:
        """Divide families, the fullest first, as long as there is time, and room for so many nodes."""
        sets, families = self.search.sets, self.search.sets.families
        assert families is not None
        stop = np.zeros(1, dtype=np.int64)
        waiting = [f for f in np.argsort(-self.fill.value, kind="stable").tolist() if self.fill.value[f] > FULL]

        def divide(f: int) -> None:
            if self.nodes > room:
                stop[0] = 1
            if stop[0] != 0:
                return
            op = np.empty(_ROOM, dtype=np.int32)
            budget, rest = np.zeros(_ROOM), np.zeros(_ROOM)
            found = np.zeros(len(self.search.weight), dtype=np.int8)
            multipliers = np.array([self.fill.budget[f], self.fill.rest[f]])
            count, how = divide_family(
                sets.network, self.search.weight, sets.most, sets.least, SCALE, families.state[f], multipliers,
                DEEPEST - sets.leaves[f].depth, op, budget, rest, found, stop,
            )  # fmt: skip
            if how == DIVIDED:
                most = float(max(1, sets.most))
                self.trees[f] = op[:count].copy(), budget[:count] / most, rest[:count] / most
                self.nodes += count
            else:
                if how == FOUND:
                    self.found.append(found)
                if how != FOUND or len(self.found) >= _FOUND:
                    stop[0] = 1

        def look() -> None:
            if ended():
                stop[0] = 1

        self.search.threads.map(divide, waiting, look)
        self.complete = len(self.trees) == len(waiting)
