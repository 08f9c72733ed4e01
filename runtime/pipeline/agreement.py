"""Agreement of outputs with those expected: bit for bit, or as near as rounding brings them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mtpp.array_types import Array
from mtpp.runtime.checking.tolerances import tolerance


@dataclass
class Agreement:
    """What comparisons came to.

    Attributes
    ----------
    compared, exact, near
        Sets of outputs: all; those equal bit for bit; those equal within tolerance, the exact ones included.
    largest
        Difference that there was, as a part of the largest value of its tensor.
    between
        Element types of the tensors between stages.
    """

    compared: int = 0
    exact: int = 0
    near: int = 0
    largest: float = 0.0
    between: frozenset[str] = frozenset()

    @property
    def holds(self) -> bool:
        """Whether nothing was found to be wrong."""
        return self.near == self.compared

    def add(self, found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
        """Compare a set of outputs with those expected, which may be more."""
        self.compared += 1
        differences = [_difference(array, expected[name], self.between) for name, array in found.items()]
        self.exact += all(difference == 0 for difference, _ in differences)
        self.near += all(difference <= allowed for difference, allowed in differences)
        self.largest = max([self.largest, *(difference for difference, _ in differences)])


def _difference(found: Array, expected: Array, between: frozenset[str]) -> tuple[float, float]:
    """Return the largest difference, as a part of the largest value expected, and how large it may be."""
    if found.shape == expected.shape and found.tobytes() == expected.tobytes():
        return 0.0, 0.0
    if found.shape != expected.shape or found.dtype.kind != "f":
        return float("inf"), 0.0
    allowed = tolerance(found.dtype.name, between)
    own, other = found.astype(np.float64), expected.astype(np.float64)
    same = (own == other) | (np.isnan(own) & np.isnan(other))
    if not np.isfinite(own[~same]).all() or not np.isfinite(other[~same]).all():
        return float("inf"), allowed
    scale = float(np.abs(other[np.isfinite(other)]).max(initial=0.0)) or 1.0
    return float(np.abs(own[~same] - other[~same]).max(initial=0.0)) / scale, allowed
