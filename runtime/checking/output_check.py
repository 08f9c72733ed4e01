"""Findings of a comparison of outputs, whole against split."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from mtpp.array_types import Array
from mtpp.formats.results.split import OutputCheck
from mtpp.formats.results.stage_manifest import Described
from mtpp.runtime.checking.tolerances import tolerance


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
