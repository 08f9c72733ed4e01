"""Stages that each op can be in, and labels that it can have there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np

from mtpp.array_types import BoolArray, Float32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE, LABELS
from mtpp.solvers.bounds.frontier.scan_order import neighbour_lists
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import work_around

_ANY = 2**62
"""More than all work."""

_ROWS = 256
"""Rows of pairs that are floats at a time."""


@dataclass(frozen=True, eq=False)
class Precedence:
    """Ops that each op reads from and is read by, in a topological order, and the work of what leads to and from it.

    Attributes
    ----------
    ahead, behind
        By each measure of work, that of each op with all that lead to it, and with all that it leads to, int64,
        shape (measures, n).
    """

    order: Sequence[int]
    before: Sequence[Sequence[int]]
    after: Sequence[Sequence[int]]
    ahead: Int64Array
    behind: Int64Array

    @cached_property
    def leads_to(self) -> BoolArray:
        """Whether each op (row) is another one (column), or leads to it, bool, shape (n, n); O(n² + n · edges / 64)."""
        n = len(self.order)
        bits = [0] * n
        for v in reversed(self.order):
            bits[v] = 1 << v
            for w in self.after[v]:
                bits[v] |= bits[w]
        size = (n + 7) // 8
        packed = np.frombuffer(b"".join(row.to_bytes(size, "little") for row in bits), dtype=np.uint8)
        return np.unpackbits(packed.reshape(n, size), axis=1, count=n, bitorder="little").astype(np.bool_)

    def sums_along_paths(self, ahead: Float32Array, behind: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Return for each op the sums over it and all that lead to it, and over it and all that it leads to.

        Parameters
        ----------
        ahead, behind
            Terms of the sums, by op, float32, shape (n, sums).

        Notes
        -----
        O(n² · sums), and memory of a part of the n² pairs at a time.
        """
        to_here, from_here = np.zeros_like(ahead), np.empty_like(behind)
        for begin in range(0, len(ahead), _ROWS):
            rows = slice(begin, begin + _ROWS)
            leads_to = self.leads_to[rows].astype(np.float32)
            to_here += leads_to.T @ ahead[rows]
            from_here[rows] = leads_to @ behind
        return to_here, from_here

    @classmethod
    def of(cls, instance: Instance, measures: Sequence[Int64Array]) -> Precedence:
        """Look at all paths once for each measure; O(n · edges / 64)."""
        order, arrays = instance.order, downset_arrays(instance)
        ahead, behind = np.empty_like(measures), np.empty_like(measures)
        for row, work in enumerate(measures):
            ahead[row, order], behind[row, order] = work_around(arrays._replace(work=work[order]))
        return cls(order.tolist(), *neighbour_lists(instance), ahead, behind)


@dataclass(eq=False)
class Windows:
    """First and last stage that each op can be in, and stages between that it cannot.

    Attributes
    ----------
    first, last
        From 1 on, int64, shape (n,).
    without
        Whether an op cannot be in a stage, bool, shape (k + 1, n); row 0 is of no meaning.
    """

    precedence: Precedence
    first: Int64Array
    last: Int64Array
    without: BoolArray = field(repr=False)

    @classmethod
    def within(cls, precedence: Precedence, rooms: Sequence[Sequence[int]]) -> Windows:
        """Return the windows that the work before and behind each op leaves.

        Parameters
        ----------
        rooms
            By each measure of work, the most of it that each stage can hold.
        """
        k = len(rooms[0])
        first, last = np.ones_like(precedence.ahead[0]), np.full_like(precedence.ahead[0], k)
        for ahead, behind, within in zip(precedence.ahead, precedence.behind, rooms, strict=True):
            first = np.maximum(first, 1 + np.searchsorted(_sums(within), ahead))
            last = np.minimum(last, k - np.searchsorted(_sums(within[::-1]), behind))
        made = cls(precedence, first, last, np.zeros((k + 1, len(first)), dtype=np.bool_))
        made.close()
        return made

    @property
    def empty(self) -> bool:
        """Whether some op can be in no stage: there is no partition."""
        return bool((self.first > self.last).any())

    def copy(self) -> Windows:
        """Return windows that can be narrowed without these."""
        return Windows(self.precedence, self.first.copy(), self.last.copy(), self.without.copy())

    def allowed(self, j: int) -> Int64Array:
        """Return the labels that ops can have at a stage, each as a sum of 1 << label, int64, shape (n,)."""
        inside = (self.first <= j) & (j <= self.last) & ~self.without[j]
        before, after = self.first < j, self.last > j
        labels: Int64Array = (
            before << BEFORE | inside.astype(np.int64) << INSIDE | after.astype(np.int64) << AFTER
        ).astype(np.int64)
        return labels

    def remove(self, j: int, labels: BoolArray) -> None:
        """Take labels away at a stage, bool, shape (n, 3); :meth:`close` follows when all stages are through."""
        assert labels.shape[1] == LABELS
        self.first[labels[:, BEFORE]] = np.maximum(self.first[labels[:, BEFORE]], j)
        self.last[labels[:, AFTER]] = np.minimum(self.last[labels[:, AFTER]], j)
        self.without[j] |= labels[:, INSIDE]

    def close(self) -> None:
        """Draw what follows along edges, and at the ends of windows; O(k · edges) a round."""
        changed = True
        while changed and not self.empty:
            changed = self._shrink()
            changed |= _spread(self.precedence.order, self.precedence.before, self.first, np.greater)
            changed |= _spread(self.precedence.order[::-1], self.precedence.after, self.last, np.less)

    def _shrink(self) -> bool:
        """Let windows begin and end with stages that their ops can be in."""
        changed, ops = False, np.arange(len(self.first))
        for ends, step in ((self.first, 1), (self.last, -1)):
            out = (self.first <= self.last) & self.without[np.clip(ends, 0, len(self.without) - 1), ops]
            while out.any():
                changed = True
                ends[out] += step
                out = (self.first <= self.last) & self.without[np.clip(ends, 0, len(self.without) - 1), ops]
        return changed


def _sums(rooms: Sequence[int]) -> Int64Array:
    """Return the room of the first 1, 2, … stages, at most more than all work."""
    return np.array([min(room, _ANY) for room in accumulate(rooms)], dtype=np.int64)


def _spread(
    order: Sequence[int], neighbours: Sequence[Sequence[int]], ends: Int64Array, beyond: Callable[[int, int], object]
) -> bool:
    """Carry the ends of windows along edges; tell whether any moved."""
    values, changed = ends.tolist(), False
    for v in order:
        for u in neighbours[v]:
            if beyond(values[u], values[v]):
                values[v] = values[u]
                changed = True
    if changed:
        ends[:] = values
    return changed
