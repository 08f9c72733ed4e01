"""Comparison of what a pipeline computed with what the unsplit model did: losses, gradients and buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mtpp.runtime.training.results import BUFFER, GRADIENT, FirstStep, Key

CLOSE = 1e-6
"""Largest difference of float32 numbers that are added up in another order, over the largest value."""

_COARSE = 2
"""Bytes of floating-point numbers that are rounded more than float32 ones, at most."""


@dataclass(frozen=True)
class Compared:
    """Tensors of one kind, pipeline against unsplit model.

    Attributes
    ----------
    count, exact
        All, and those that are equal bit for bit.
    largest
        Difference of the others, over the largest value of its tensor.
    worst
        Name of the tensor that differs most, None where all are equal.
    holds
        Whether none differs by more than the order of additions explains.
    """

    count: int
    exact: int
    largest: float
    worst: str | None
    holds: bool = True


class Asking(Protocol):
    """Contents of tensors, for those that differ."""

    def pairs(self, keys: Sequence[Key]) -> list[tuple[Key, Any, Any]]:
        """Return what the unsplit model and each process have for these keys."""


def first_compared(expected: FirstStep, found: Sequence[FirstStep], asking: Asking) -> dict[str, Compared]:
    """Compare gradients and buffers after the first step, before which all weights are the same.

    What the step gave the unsplit model and no process has differs without bound.
    """
    different: list[Key] = []
    counts = {GRADIENT: [0, 0], BUFFER: [0, 0]}
    for one in found:
        for key, digest in one.digests.items():
            counts[key[0]][0] += 1
            if expected.digests.get(key) == digest:
                counts[key[0]][1] += 1
            else:
                different.append(key)
    known = {key for one in found for key in one.digests}
    missing = [keys[0] for keys in expected.changed if known.isdisjoint(keys)]
    copied = {name for one in found for name in one.copied}
    gaps = [
        (key, _difference(own, other), _tolerance(own, copied=key[0] == GRADIENT and key[1] in copied))
        for key, own, other in (asking.pairs(sorted(set(different))) if different else ())
    ]
    gaps += [(key, float("inf"), CLOSE) for key in missing]
    for kind, _ in missing:
        counts[kind][0] += 1
    return {
        kind: _summary(count, exact, [(name, gap, most) for (of, name), gap, most in gaps if of == kind])
        for kind, (count, exact) in counts.items()
    }


def losses_compared(
    expected: Sequence[Sequence[float]], found: Sequence[Sequence[float]], gradients: Compared
) -> Compared:
    """Compare the losses of all micro-batches.

    Those of the first step have the same weights. Where gradients are added up in another order, weights drift apart:
    losses may differ by as much as the gradients do, times the square root of the steps.
    """
    pairs = [
        (a, b, step) for step, rows in enumerate(zip(expected, found, strict=True)) for a, b in zip(*rows, strict=True)
    ]
    places = [f"step {step}, micro-batch {m}" for step, row in enumerate(expected) for m in range(len(row))]
    drifts = gradients.holds and gradients.exact < gradients.count
    later = max(CLOSE, gradients.largest)
    gaps = [
        (place, _difference(np.array(a), np.array(b)), later * math.sqrt(step + 1) if drifts and step else CLOSE)
        for place, (a, b, step) in zip(places, pairs, strict=True)
    ]
    return _summary(len(gaps), sum(gap == 0 for _, gap, _ in gaps), [one for one in gaps if one[1]])


def _summary(count: int, exact: int, gaps: Sequence[tuple[str, float, float]]) -> Compared:
    """Return a comparison; *gaps* are those that differ: name, difference and how much of it is explained."""
    if not gaps:
        return Compared(count, exact, 0.0, None)
    name, gap, tolerance = max(gaps, key=lambda one: (one[1] > one[2], one[1]))
    return Compared(count, exact, gap, name, gap <= tolerance)


def _tolerance(own: Any, *, copied: bool) -> float:
    """Return the difference that the order of additions explains.

    Only gradients of a parameter that several stages hold are added up in another order in a way that shows in types
    of few digits.
    """
    if own is None or not copied or own.dtype.itemsize > _COARSE:
        return CLOSE
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo  # it has no types
    return CLOSE * float(finfo(own.dtype).eps) / float(np.finfo(np.float32).eps)


def _difference(own: Any, other: Any) -> float:
    """Return the largest difference over the largest value; infinite where only one is there or is finite."""
    if own is None or other is None:
        return 0.0 if own is other else float("inf")
    a, b = np.asarray(own, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.shape != b.shape:
        return float("inf")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    gap = float(np.abs(a[~same] - b[~same]).max())
    finite = np.concatenate([np.abs(one[np.isfinite(one)]) for one in (a, b)])
    scale = float(finite.max(initial=0.0)) or 1.0
    return gap / scale if np.isfinite(gap) else float("inf")
