"""Agreement of outputs of whole and split: bit for bit, or as near as rounding brings them.

The same kernels run on either side, so what differs is rounding: ONNX Runtime computes some ops on narrow floats in
single precision and rounds between two of them only where a cut forces it to. A difference is thus as large as the
narrowest float allows that the output has itself or that goes from one stage to another before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtpp.array_types import Array
from mtpp.formats.results.split import OutputCheck
from mtpp.formats.results.stage_manifest import MODEL_INPUT, Described, StageManifest
from mtpp.runtime.element_types import Contents, is_float, unpacked

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
    if not is_float(dtype):
        return 0.0
    return max(TOLERANCES.get(name, _SMALL_FLOAT) for name in (dtype, *between) if is_float(name))


def types_between(manifest: StageManifest) -> frozenset[str]:
    """Return the element types of the tensors between stages."""
    read = (tensor for stage in manifest.stages for tensor in stage.inputs if tensor.source != MODEL_INPUT)
    return frozenset(tensor.dtype.removeprefix("sequence(").removesuffix(")") for tensor in read)


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

    def add(self, found: Mapping[str, Contents], expected: Mapping[str, Contents]) -> None:
        """Compare a set of outputs with those expected, which may be more."""
        self.compared += 1
        differences = [_difference(array, expected[name], self.between) for name, array in found.items()]
        self.exact += all(difference == 0 for difference, _ in differences)
        self.near += all(difference <= allowed for difference, allowed in differences)
        self.largest = max([self.largest, *(difference for difference, _ in differences)])


def _difference(found: Contents, expected: Contents, between: frozenset[str]) -> tuple[float, float]:
    """Return the largest difference, as a part of the largest value expected, and how large it may be."""
    if found.shape == expected.shape and found.tobytes() == expected.tobytes():
        return 0.0, 0.0
    if found.shape != expected.shape or not is_float(found.dtype.name):
        return float("inf"), 0.0
    allowed, whole = tolerance(found.dtype.name, between), unpacked(expected)
    return _largest_difference(whole, unpacked(found)) / (_largest(whole) or 1.0), allowed


def worst_of(checks: Sequence[OutputCheck]) -> OutputCheck:
    """Return what is found of one output in all sets of inputs."""
    worst = max(checks, key=lambda check: (not check.passed, check.relative_difference, not check.identical))
    finite, empty = any(check.finite for check in checks), all(check.empty for check in checks)
    return replace(worst, finite=finite, empty=empty)


def compared_output(
    output: Described, expected: list[Array], found: list[Array], between: Collection[str], *, random: bool
) -> OutputCheck:
    """Compare an output of the whole model with what the stages make of it.

    Parameters
    ----------
    expected, found
        The tensor, or those of a sequence.
    between
        Element types of the tensors between stages.
    random
        Whether random numbers are drawn, so that only types and shapes can be compared.
    """
    alike = len(expected) == len(found) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in zip(expected, found, strict=True)
    )
    if not alike:
        return OutputCheck(output.name, output.dtype, False, False, np.inf, np.inf, True)
    pairs = list(zip(expected, found, strict=True))
    identical = all(a.tolist() == b.tolist() if a.dtype.kind == "O" else a.tobytes() == b.tobytes() for a, b in pairs)
    finite = all(a.dtype.kind in "OSUb" or not a.size or bool(np.isfinite(_widened(a)).any()) for a in expected)
    empty = not any(one.size for one in expected)
    if identical or random:
        return OutputCheck(output.name, output.dtype, identical, True, 0.0, 0.0, finite, empty)
    absolute = max(_largest_difference(a, b) for a, b in pairs)
    largest = max((_largest(a) for a in expected), default=0.0)
    relative = absolute / largest if largest else np.inf if absolute else 0.0
    passed = relative <= max((tolerance(a.dtype.name, between) for a in expected), default=0.0)
    return OutputCheck(output.name, output.dtype, False, bool(passed), absolute, relative, finite)


def _widened(array: Array) -> Array:
    if array.dtype.name == "void32":  # complex numbers of two halves
        array = array.reshape(-1).view(np.float16)
    return array if array.dtype.kind in "c" else array.astype(np.float64)


def _largest(array: Array) -> float:
    if array.dtype.kind in "OSU" or not array.size:
        return 0.0
    magnitudes = np.abs(_widened(array))
    return float(np.max(magnitudes, where=np.isfinite(magnitudes), initial=0.0))


def _largest_difference(expected: Array, found: Array) -> float:
    """Return the largest absolute difference; values that are not finite have to be the same."""
    if expected.dtype.kind in "OSU":
        return 0.0 if expected.tolist() == found.tolist() else np.inf
    a, b = _widened(expected), _widened(found)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b))
    return float(np.max(np.where(np.isnan(difference), np.inf, difference), initial=0.0))
