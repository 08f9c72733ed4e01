"""Mixed-integer programs as arrays, put together block by block without what is fixed, and ends of their solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import BoolArray
from mtpp.inference.graph import Int64Array

FloatArray = NDArray[np.float64]

NEGLIGIBLE = 1e-8
"""Smaller coefficients are left out: HiGHS takes those up to 1e-9 for 0. Rows are loosened by what they may come to."""


class SolveStatus(StrEnum):
    """End of a solve; equal to its name in proofs."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    TIME_LIMIT = "time-limit"

    TARGET = "target"
    """A solution of the objective asked for was found."""

    ENOUGH = "enough"
    """The dual bound reached what was asked for."""

    KILLED = "killed"
    """The solver overran its limit."""

    INTERRUPTED = "interrupted"
    FAILED = "failed"

    EMPTY = "empty"
    """There was nothing to solve."""

    __repr__ = str.__repr__  # records that hold one show the string


@dataclass(frozen=True, eq=False)
class MipModel:
    """Minimise cost · x subject to row_lower ≤ A·x ≤ row_upper, lower ≤ x ≤ upper, some of x integers.

    Attributes
    ----------
    cost, lower, upper, integral
        Of each column; all columns are bounded.
    row_lower, row_upper, row_starts, indices, values
        Rows, CSR.
    """

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    integral: BoolArray
    row_lower: FloatArray
    row_upper: FloatArray
    row_starts: Int64Array
    indices: Int64Array
    values: FloatArray

    @property
    def column_count(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.row_lower)


@dataclass(frozen=True, eq=False)
class Job:
    """A model, and how to solve it.

    Attributes
    ----------
    time_limit_s
        For HiGHS.
    start
        A feasible solution, values of all columns; None: there is none.
    target
        A solution of so little ends the work: minus infinity for none.
    enough
        A dual bound of so much ends the work: infinity for none.
    """

    model: MipModel
    time_limit_s: float
    seed: int = 0
    start: FloatArray | None = None
    target: float = -np.inf
    enough: float = np.inf


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A model without the columns that are fixed, and the way between the two.

    Attributes
    ----------
    model
        What to solve; None if a row cannot hold whatever the columns are, or a column has no value.
    kept
        Columns of the builder that are columns of the model, int64.
    fixed
        Values of the builder's columns, of which those of kept ones mean nothing.
    """

    model: MipModel | None
    kept: Int64Array
    fixed: FloatArray

    def whole(self, solution: FloatArray) -> FloatArray:
        """Return a value for every column of the builder."""
        values = self.fixed.copy()
        values[self.kept] = solution
        return values


class ModelBuilder:
    """Collects columns and rows; what is fixed, and rows that always hold, are left out at the end."""

    def __init__(self) -> None:
        self._cost: list[FloatArray] = []
        self._lower: list[FloatArray] = []
        self._upper: list[FloatArray] = []
        self._integral: list[BoolArray] = []
        self._names: list[Callable[[], Sequence[str]]] = []
        self._columns = 0
        self._rows = 0
        self._row_lower: list[FloatArray] = []
        self._row_upper: list[FloatArray] = []
        self._defines: list[Int64Array] = []
        self._terms: list[tuple[Int64Array, Int64Array, FloatArray]] = []

    def add_columns(
        self, lower: Any, upper: Any, names: Callable[[], Sequence[str]], *, cost: float = 0.0, integral: bool = False
    ) -> Int64Array:
        """Add columns with these bounds, arrays of any one shape; return their numbers in the same shape.

        Parameters
        ----------
        names
            What to call them in a file, in the order of the flattened arrays.
        """
        low = np.asarray(lower, dtype=np.float64)
        high = np.broadcast_to(np.asarray(upper, dtype=np.float64), low.shape)
        self._lower.append(low.ravel())
        self._upper.append(high.ravel())
        self._cost.append(np.full(low.size, cost))
        self._names.append(names)
        self._integral.append(np.full(low.size, integral))
        first, self._columns = self._columns, self._columns + low.size
        return np.arange(first, self._columns, dtype=np.int64).reshape(low.shape)

    def add_rows(
        self,
        count: int,
        terms: list[tuple[Any, Any, Any]],
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        defines: Int64Array | None = None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        terms
            Triples of arrays that broadcast against each other: number of the row among these, column, coefficient.
        defines
            Per row the column that is as low as its rows let it be, where its value follows from the others'.
        """
        for row, column, coefficient in terms:
            parts = np.broadcast_arrays(row, column, np.asarray(coefficient, dtype=np.float64))
            rows, columns, coefficients = (part.ravel() for part in parts)
            self._terms.append((rows.astype(np.int64) + self._rows, columns.astype(np.int64), coefficients))
        self._row_lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), (count,)))
        self._row_upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (count,)))
        self._defines.append(np.full(count, -1, dtype=np.int64) if defines is None else defines)
        self._rows += count

    def names(self) -> list[str]:
        """Return the name of every column."""
        return [name for names in self._names for name in names()]

    def completed(self, values: FloatArray) -> FloatArray:
        """Set each dependent column to the smallest value that its defining rows allow, in the order of the columns."""
        row, column, coefficient = _above_negligible(*self._matrix())
        lower, defines = np.concatenate(self._row_lower), np.concatenate(self._defines)
        values = values.copy()
        by_group: list[Int64Array] = []
        for part in self._defines:
            columns = np.unique(part[part >= 0])
            if len(columns):
                by_group.append(columns)
        for group in sorted(by_group, key=lambda group: int(group[0])):
            chosen = np.zeros(self._columns, dtype=bool)
            chosen[group] = True
            rows = (defines >= 0) & chosen[defines]
            own = chosen[column] & (column == defines[row]) & rows[row]
            others = rows[row] & ~own
            activity = np.zeros(self._rows)
            np.add.at(activity, row[others], coefficient[others] * values[column[others]])
            factor = np.ones(self._rows)
            factor[row[own]] = coefficient[own]
            needed = (lower - activity) / factor
            np.maximum.at(values, defines[rows], needed[rows])
        return values

    def compile(self) -> CompiledModel:
        """Return the model; O(entries·log entries)."""
        lower, upper = np.concatenate(self._lower), np.concatenate(self._upper)
        integral = np.concatenate(self._integral)
        row, column, coefficient = self._matrix()
        row_lower, row_upper = np.concatenate(self._row_lower), np.concatenate(self._row_upper)
        fixed = lower == upper
        if bool(np.any(lower > upper)):
            return CompiledModel(None, np.flatnonzero(~fixed), lower)
        small = np.abs(coefficient) <= NEGLIGIBLE
        ends = coefficient[small] * lower[column[small]], coefficient[small] * upper[column[small]]
        np.subtract.at(row_lower, row[small], np.maximum(*ends))
        np.subtract.at(row_upper, row[small], np.minimum(*ends))
        row, column, coefficient = row[~small], column[~small], coefficient[~small]
        settled = fixed[column]
        shift = np.zeros(self._rows)
        np.add.at(shift, row[settled], coefficient[settled] * lower[column[settled]])
        row, column, coefficient = row[~settled], column[~settled], coefficient[~settled]
        row_lower, row_upper = row_lower - shift, row_upper - shift
        least, most = np.zeros(self._rows), np.zeros(self._rows)
        ends = coefficient * lower[column], coefficient * upper[column]
        np.add.at(least, row, np.minimum(*ends))
        np.add.at(most, row, np.maximum(*ends))
        slack = 1e-7 * np.maximum(1.0, np.abs(least) + np.abs(most))
        if bool(np.any((least > row_upper + slack) | (most < row_lower - slack))):
            return CompiledModel(None, np.flatnonzero(~fixed), lower)
        needed = (least < row_lower) | (most > row_upper)
        entries = needed[row]
        row, column, coefficient = row[entries], column[entries], coefficient[entries]
        used = np.zeros(self._columns, dtype=bool)
        used[column] = True
        kept = np.flatnonzero(~fixed & (used | (np.concatenate(self._cost) != 0)))
        number = np.full(self._columns, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        new_row = np.cumsum(needed) - 1
        starts = np.zeros(int(needed.sum()) + 1, dtype=np.int64)
        np.cumsum(np.bincount(new_row[row], minlength=len(starts) - 1), out=starts[1:])
        order = np.argsort(row, kind="stable")
        model = MipModel(
            np.concatenate(self._cost)[kept],
            lower[kept],
            upper[kept],
            integral[kept],
            row_lower[needed],
            row_upper[needed],
            starts,
            number[column[order]],
            coefficient[order],
        )
        return CompiledModel(model, kept, lower)

    def _matrix(self) -> tuple[Int64Array, Int64Array, FloatArray]:
        """Return all terms, one per row and column."""
        row = np.concatenate([part for part, _, _ in self._terms])
        column = np.concatenate([part for _, part, _ in self._terms])
        coefficient = np.concatenate([part for _, _, part in self._terms])
        keys, where = np.unique(row * self._columns + column, return_inverse=True)
        total = np.zeros(len(keys))
        np.add.at(total, where, coefficient)
        return keys // self._columns, keys % self._columns, total


def _above_negligible(
    row: Int64Array, column: Int64Array, coefficient: FloatArray
) -> tuple[Int64Array, Int64Array, FloatArray]:
    kept = np.abs(coefficient) > NEGLIGIBLE
    return row[kept], column[kept], coefficient[kept]
