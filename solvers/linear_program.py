"""A linear programme that grows by rows and is solved again and again, by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class RowProgram:
    """Maximise c·x over x between bounds, subject to rows a·x ≤ b that are added one after the other.

    What comes out is a proposal in floating point; whoever uses it has to check it.

    Parameters
    ----------
    objective
        c, shape (variables,).
    """

    def __init__(self, objective: FloatArray) -> None:
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("random_seed", 0)):
            self._highs.setOptionValue(option, value)
        count = len(objective)
        self._all = np.arange(count, dtype=np.int32)
        self._highs.addVars(count, np.zeros(count), np.zeros(count))
        self._highs.changeColsCost(count, self._all, -objective)

    def add(self, rows: Sequence[tuple[NDArray[np.int32], FloatArray]], at_most: float) -> None:
        """Add rows, each given by the variables in it and their coefficients."""
        if not rows:
            return
        lengths = [len(indices) for indices, _ in rows]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32)
        indices = np.concatenate([indices for indices, _ in rows]).astype(np.int32)
        values = np.concatenate([values for _, values in rows])
        lowest = np.full(len(rows), -highspy.kHighsInf)
        highest = np.full(len(rows), at_most)
        self._highs.addRows(len(rows), lowest, highest, len(indices), starts, indices, values)

    def solve(self, lowest: FloatArray, highest: FloatArray, time_limit_s: float) -> tuple[float, FloatArray] | None:
        """Return the maximum and x, None if there is none or the time did not suffice."""
        self._highs.changeColsBounds(len(self._all), self._all, lowest, highest)
        spent_s = self._highs.getRunTime()  # its clock adds up over all solves
        self._highs.setOptionValue("time_limit", spent_s + max(0.0, min(time_limit_s, 1e6)))
        if self._highs.run() == highspy.HighsStatus.kError:
            return None
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return -self._highs.getInfo().objective_function_value, np.array(self._highs.getSolution().col_value)

    def prices(self) -> FloatArray:
        """Return what each row costs the maximum of the last solution, at least 0."""
        duals: FloatArray = -np.array(self._highs.getSolution().row_dual)
        return np.maximum(0.0, duals)
