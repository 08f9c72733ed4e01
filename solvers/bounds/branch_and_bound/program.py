"""The linear programme of one node: the exact model without integrality, below the cutoff, as far as it is open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mtpp.array_types import BoolArray
from mtpp.inference.graph import Int64Array
from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.known_prefixes import KnownPrefixes
from mtpp.solvers.bounds.mip.highs import BoxProgram
from mtpp.solvers.bounds.mip.model import NEGLIGIBLE, FloatArray, MipModel

SCALE = 1000.0
"""Objective of a partition whose stages cost the most that they may."""

_MISSING = 1000.0
"""Objective per unit of weight that a heavy block lacks; else some cases had no solution, hence no multipliers."""

_OVERFULL = 100.0
"""Objective per unit by which a block holds more of the weights than its stages can, for the same reason."""

_MOST_TIMES = 8
"""Times as much counts of an op or tensor at most: more rules out no more, and HiGHS refuses large coefficients."""


@dataclass(frozen=True, eq=False)
class Relaxed:
    """An optimum of the linear programme.

    Attributes
    ----------
    value
        Its objective, in units of :data:`SCALE`.
    prefixes
        y of each boundary and op, shape (B − 1, n).
    of_block
        Multiplier of each block's row; with the blocks' stages they add up to 1.
    of_heavy
        Multiplier of the row of the heavy block, none if there is none.
    of_share
        Multiplier of each block's row of weights, in ticks for a unit of weight; none if there are none.
    of_cut, of_order, of_prefix
        Multipliers of the other rows, in ticks; what they are of is in the programme's ``cuts``, ``orders`` and
        ``prefixes``.
    """

    value: float
    prefixes: FloatArray
    of_block: FloatArray
    of_heavy: FloatArray
    of_share: FloatArray
    of_cut: FloatArray
    of_order: FloatArray
    of_prefix: FloatArray


class StageProgram:
    """Minimise z so that each block of s stages costs s·z at most, with what is known fixed.

    Columns are y(u, b) as far as it is unknown, c(t, b) where it can matter, z, what a heavy block lacks, and how much
    too much blocks hold of the weights that stages have capacities for. Rows are those of
    :mod:`mtpp.checker.bounds.branch_and_bound`, but those that always hold.

    Parameters
    ----------
    known
        What holds at every node that is to be solved.
    most
        Ticks that correspond to :data:`SCALE`.

    Attributes
    ----------
    most
        As above, at least 1.
    cuts
        Tensor, block (from 0 on), op and other op of each cut row, shape (rows, 4).
    orders
        Op, op that it leads to, and boundary (from 0 on), shape (rows, 3).
    prefixes
        Op and the first of two boundaries, shape (rows, 2).
    """

    def __init__(self, blocks: Blocks, known: KnownPrefixes, most: int) -> None:
        self._blocks = blocks
        self.most = max(1, most)
        self._inside, self._outside = known.arrays(blocks.op_count)
        self._open = ~self._inside & ~self._outside
        self._column = np.full(self._open.shape, -1, dtype=np.int64)
        self._column[self._open] = np.arange(int(self._open.sum()))
        self._columns = int(self._open.sum())
        rows = _Rows()
        self.orders = self._add_orders(rows)
        self.prefixes = self._add_prefixes(rows)
        self.cuts, crossing = self._add_cuts(rows)
        self._add_blocks(rows, crossing)
        self._add_heavy(rows)
        self._add_shares(rows)
        self._program = BoxProgram(self._model(rows), int(self._open.sum()))

    @property
    def failed(self) -> bool:
        """Whether the last programme was not solved though there was time."""
        return self._program.failed

    def solve(self, known: KnownPrefixes, time_limit_s: float) -> Relaxed | None:
        """Return an optimum with more known, None if there was no time or HiGHS failed."""
        inside, outside = known.arrays(self._blocks.op_count)
        lower, upper = inside[self._open].astype(float), (~outside[self._open]).astype(float)
        found = self._program.solve(lower, upper, time_limit_s)
        if found is None:
            return None
        prefixes = self._inside.astype(float)
        prefixes[self._open] = found.columns[: len(lower)]
        prices = np.maximum(0.0, found.prices)
        blocks = self._blocks
        counts = [
            len(self.orders),
            len(self.prefixes),
            len(self.cuts),
            len(blocks.stages),
            int(blocks.heavy is not None),
        ]
        of_order, of_prefix, of_cut, of_block, of_heavy, of_share = np.split(prices, np.cumsum(counts))
        ticks = self.most / SCALE
        of_share = of_share * (self.most / max(1, blocks.capacity))
        scaled = of_share, of_cut * ticks, of_order * ticks, of_prefix * ticks
        return Relaxed(found.value, prefixes, of_block, of_heavy, *scaled)

    def _add_orders(self, rows: _Rows) -> Int64Array:
        tails, heads = self._blocks.edges
        b, edge = np.nonzero(self._open[:, tails] & self._open[:, heads])
        here = rows.add(np.zeros(len(edge)))
        rows.entries(here, self._column[b, tails[edge]], 1.0)
        rows.entries(here, self._column[b, heads[edge]], -1.0)
        return np.stack([tails[edge], heads[edge], b], axis=1).astype(np.int64)

    def _add_prefixes(self, rows: _Rows) -> Int64Array:
        b, op = np.nonzero(self._open[:-1] & self._open[1:])
        here = rows.add(np.zeros(len(op)))
        rows.entries(here, self._column[b + 1, op], 1.0)
        rows.entries(here, self._column[b, op], -1.0)
        return np.stack([op, b], axis=1).astype(np.int64)

    def _add_cuts(self, rows: _Rows) -> tuple[Int64Array, list[tuple[Int64Array, Int64Array]]]:
        """Add the rows of c, and return what they are of and, for each block, the tensors and columns that it has."""
        blocks, last = self._blocks, len(self._blocks.stages) - 1
        made: list[Int64Array] = []
        crossing = []
        u, v, t = blocks.producer, blocks.reader, blocks.tensor
        for b in range(last + 1):
            may, must = self._may(b), self._must(b)
            comes = np.flatnonzero(may[v] & ~must[u]) if b > 0 else np.empty(0, dtype=np.int64)
            goes = np.flatnonzero(may[u] & ~must[v]) if b < last else np.empty(0, dtype=np.int64)
            tensors = np.unique(np.concatenate([t[comes], t[goes]]))
            columns = np.arange(self._columns, self._columns + len(tensors))
            self._columns += len(tensors)
            crossing.append((tensors, columns))
            for pairs, op, other in ((comes, v, u), (goes, u, v)):
                here = rows.add(np.zeros(len(pairs)))
                rows.entries(here, columns[np.searchsorted(tensors, t[pairs])], 1.0)
                self._in_block(rows, here, op[pairs], b, -1.0)
                self._in_block(rows, here, other[pairs], b, 1.0)
                made.append(np.stack([t[pairs], np.full(len(pairs), b), op[pairs], other[pairs]], axis=1))
        return np.concatenate(made).astype(np.int64), crossing

    def _add_blocks(self, rows: _Rows, crossing: list[tuple[Int64Array, Int64Array]]) -> None:
        blocks, scale = self._blocks, SCALE / self.most
        weight = self._weight()
        transfer = np.minimum(blocks.transfer * scale, _MOST_TIMES * SCALE)
        everything = np.arange(blocks.op_count)
        for b, stages in enumerate(blocks.stages):
            here = rows.add(np.zeros(1))
            rows.entries(here, np.array([self._columns]), float(stages))
            self._in_block(rows, np.full(len(everything), here[0]), everything, b, -weight)
            tensors, columns = crossing[b]
            rows.entries(np.full(len(tensors), here[0]), columns, -transfer[tensors])

    def _add_heavy(self, rows: _Rows) -> None:
        blocks = self._blocks
        if blocks.heavy is None:
            return
        here = rows.add(np.array([-blocks.least_weight * SCALE / self.most]))
        everything = np.arange(blocks.op_count)
        self._in_block(rows, np.full(len(everything), here[0]), everything, blocks.heavy - 1, self._weight())
        rows.entries(here, np.array([self._columns + 1]), 1.0)

    def _add_shares(self, rows: _Rows) -> None:
        blocks = self._blocks
        if blocks.shares is None:
            return
        scale = SCALE / max(1, blocks.capacity)
        everything = np.flatnonzero(blocks.share)
        share = np.minimum(blocks.share[everything] * scale, _MOST_TIMES * SCALE * sum(blocks.stages))
        for b, stages in enumerate(blocks.stages):
            here = rows.add(np.array([stages * blocks.capacity * scale]))
            self._in_block(rows, np.full(len(everything), here[0]), everything, b, -share)
            rows.entries(here, np.array([self._columns + 1 + (blocks.heavy is not None)]), 1.0)

    def _weight(self) -> FloatArray:
        scaled = self._blocks.weights.weight * (SCALE / self.most)
        weight: FloatArray = np.minimum(scaled, _MOST_TIMES * SCALE * sum(self._blocks.stages))
        return weight

    def _may(self, b: int) -> BoolArray:
        """Tell of each op whether block b (from 0 on) may hold it."""
        none = np.zeros(self._blocks.op_count, dtype=bool)
        outside = self._outside[b] if b < len(self._outside) else none
        before = self._inside[b - 1] if b > 0 else none
        return ~outside & ~before

    def _must(self, b: int) -> BoolArray:
        all_ops = np.ones(self._blocks.op_count, dtype=bool)
        inside = self._inside[b] if b < len(self._inside) else all_ops
        not_before = self._outside[b - 1] if b > 0 else all_ops
        return inside & not_before

    def _in_block(
        self, rows: _Rows, here: Int64Array, op: NDArray[np.int32] | Int64Array, b: int, factor: float | FloatArray
    ) -> None:
        """Add *factor* times x(op, b) to rows."""
        factors = np.broadcast_to(np.asarray(factor, dtype=float), here.shape)
        for boundary, sign in ((b, 1.0), (b - 1, -1.0)):
            if boundary < 0:
                continue
            if boundary == len(self._open):
                rows.constants(here, sign * factors)
                continue
            column, inside = self._column[boundary, op], self._inside[boundary, op]
            rows.entries(here[column >= 0], column[column >= 0], sign * factors[column >= 0])
            rows.constants(here[inside], sign * factors[inside])

    def _model(self, rows: _Rows) -> MipModel:
        penalties = [_MISSING] * (self._blocks.heavy is not None) + [_OVERFULL] * (self._blocks.shares is not None)
        cost = np.append(np.zeros(self._columns), [1.0, *penalties])
        upper = np.where(cost > 0, np.inf, 1.0)
        count = len(cost)
        matrix = rows.matrix(count)
        return MipModel(
            cost,
            np.zeros(count),
            upper,
            np.zeros(count, dtype=bool),
            rows.lower(),
            np.full(rows.count, np.inf),
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data,
        )


class _Rows:
    """Rows Σ entries + constant ≥ 0, as they are put together."""

    def __init__(self) -> None:
        self.count = 0
        self._constant: list[FloatArray] = []
        self._row: list[Int64Array] = []
        self._entry: list[tuple[Int64Array, Int64Array, FloatArray]] = []

    def add(self, constant: FloatArray) -> Int64Array:
        """Add rows and return their numbers."""
        here = np.arange(self.count, self.count + len(constant))
        self.count += len(constant)
        self._constant.append(constant)
        return here

    def entries(self, row: Int64Array, column: Int64Array, value: float | FloatArray) -> None:
        self._entry.append((row, column, np.broadcast_to(np.asarray(value, dtype=float), row.shape)))

    def constants(self, row: Int64Array, value: FloatArray) -> None:
        np.add.at(self._all_constants(), row, value)

    def _all_constants(self) -> FloatArray:
        if len(self._constant) != 1:
            self._constant = [np.concatenate(self._constant)]
        return self._constant[0]

    def lower(self) -> FloatArray:
        """Return what the entries of each row add up to at least."""
        return -self._all_constants()

    def matrix(self, columns: int) -> csr_array:
        """Return the entries, CSR."""
        row, column, value = (np.concatenate(parts) for parts in zip(*self._entry, strict=True))
        kept = np.abs(value) > NEGLIGIBLE
        row, column, value = row[kept], column[kept], value[kept]
        return csr_array((value, (row, column)), shape=(self.count, columns))
