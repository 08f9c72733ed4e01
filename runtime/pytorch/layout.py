"""Layout of a tensor in memory: strides and repeated axes, where elements are not one after the other in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Layout(NamedTuple):
    """A place in memory for a tensor whose elements are not one after the other in order.

    Attributes
    ----------
    shape, strides
        Of what is stored: an axis along which elements are repeated has length 1.
    repeated
        Those axes.
    """

    shape: list[int]
    strides: list[int]
    repeated: list[int]

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int]) -> Layout | None:
        """Return the layout of a tensor; None where elements are in order, or overlap in another way."""
        repeated = [axis for axis, size in enumerate(shape) if size > 1 and strides[axis] == 0]
        stored = [1 if axis in repeated else size for axis, size in enumerate(shape)]
        if 0 in shape:
            return None
        end = 1  # elements that lie before the next one along an axis, at least
        for stride, size in sorted((strides[axis], size) for axis, size in enumerate(stored) if size > 1):
            if stride < end:
                return None
            end = stride * (size - 1) + end
        if not repeated and list(strides) == _in_order(shape):  # kernels look at axes of length 1 too
            return None
        return cls(stored, [max(1, stride) for stride in strides], repeated)


def _in_order(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]
