"""Sets of ops that have been met, each once, and what they hold of weights."""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.scan import Sets

_MOST_OPS = 5_000_000
"""Ops of all sets together; beyond, the emptier sets go, until half of that is left."""


class Pool:
    """Sets of ops that have been met, each once.

    Attributes
    ----------
    cost
        Of each, in ticks, int64, shape (sets,).
    """

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}  # in the order of the sets
        self._ops: Int32Array = np.empty(0, dtype=np.int32)
        self._starts: Int64Array = np.zeros(1, dtype=np.int64)
        self.cost: Int64Array = np.empty(0, dtype=np.int64)

    def add(self, sets: Sets) -> None:
        """Take in sets, none of them empty."""
        new = []
        for row, packed in enumerate(np.packbits(sets.inside, axis=1)):
            key = packed.tobytes()
            if key not in self._known:
                self._known[key] = None
                new.append(row)
        of_row, ops = np.nonzero(sets.inside[new])
        ends = self._starts[-1] + np.cumsum(np.bincount(of_row, minlength=len(new)))
        self._ops = np.concatenate([self._ops, ops.astype(np.int32)])
        self._starts = np.concatenate([self._starts, ends])
        self.cost = np.concatenate([self.cost, sets.cost[new]])

    def held(self, weights: Float64Array) -> Float64Array:
        """Return what each set holds of some weights, float64, shape (sets,)."""
        if len(self.cost) == 0:
            return np.empty(0)
        return np.add.reduceat(weights[self._ops], self._starts[:-1])

    def ops(self, number: int) -> Int32Array:
        """Return the ops of a set, int32."""
        return self._ops[self._starts[number] : self._starts[number + 1]]

    def keep(self, weights: Float64Array) -> None:
        """Forget the sets that hold least of some weights, if they are too many."""
        if len(self._ops) <= _MOST_OPS:
            return
        sizes = np.diff(self._starts)
        fullest = np.argsort(-self.held(weights), kind="stable")
        stays = np.zeros(len(sizes), dtype=np.bool_)
        stays[fullest[np.cumsum(sizes[fullest]) <= _MOST_OPS // 2]] = True
        self._known = {key: None for key, stay in zip(self._known, stays.tolist(), strict=True) if stay}
        self._ops = self._ops[np.repeat(stays, sizes)]
        self._starts = np.append(0, np.cumsum(sizes[stays]))
        self.cost = self.cost[stays]
