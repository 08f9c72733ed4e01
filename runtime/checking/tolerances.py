"""Agreement of outputs of whole and split: bit for bit, or as near as rounding brings them.

The same kernels run on either side, so what differs is rounding: ONNX Runtime computes some ops on narrow floats in
single precision and rounds between two of them only where a cut forces it to. A difference is thus as large as the
narrowest float allows that the output has itself or that goes from one stage to another before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtpp.array_types import Array

if TYPE_CHECKING:
    from mtpp.formats.results.stage_manifest import StageManifest

TOLERANCES = {"float64": 1e-10, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Largest |difference| over the largest |value| of an output that still passes; 0.1 for smaller floats."""

_SMALL_FLOAT = 0.1


def tolerance(dtype: str, between: Collection[str]) -> float:
    """Return the largest |difference| over the largest |value| of an output that still passes.

    Parameters
    ----------
    dtype
        Of the output. Whole numbers, truth values and strings have to be equal.
    between
        Element types of the tensors between stages (:func:`types_between`).
    """
    if not _is_float(dtype):
        return 0.0
    return max(TOLERANCES.get(name, _SMALL_FLOAT) for name in (dtype, *between) if _is_float(name))


def types_between(manifest: StageManifest) -> frozenset[str]:
    """Return the element types of the tensors between stages."""
    from mtpp.formats.results.stage_manifest import MODEL_INPUT

    read = (tensor for stage in manifest.stages for tensor in stage.inputs if tensor.source != MODEL_INPUT)
    return frozenset(tensor.dtype.removeprefix("sequence(").removesuffix(")") for tensor in read)


def _is_float(dtype: str) -> bool:
    return "float" in dtype


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
