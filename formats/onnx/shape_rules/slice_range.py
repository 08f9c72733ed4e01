"""Elements of an axis that ``Slice`` takes, as ONNX Runtime clamps its bounds."""

from __future__ import annotations

_TO_THE_LAST = frozenset((2**31 - 1, 2**63 - 1))
"""Ends that stand for all that is left in the direction of the step, backwards too."""


def slice_range(size: int, start: int, end: int, step: int = 1) -> range:
    """Return the places that a slice of an axis takes, in their order.

    A start before the first element is that element, backwards too, where Python takes nothing.
    """
    start += size if start < 0 else 0
    if step < 0:
        first = min(max(start, 0), size - 1)
        last = -1 if end in _TO_THE_LAST else min(max(end + (size if end < 0 else 0), -1), size - 1)
    else:
        first = min(max(start, 0), size)
        last = min(max(end + (size if end < 0 else 0), 0), size)
    return range(first, last, step)
