"""Strides of tensors: whether a tensor has a view of another shape, or has to be copied for it."""

from __future__ import annotations

from collections.abc import Sequence


def has_view(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> bool:
    """Say whether elements at *strides* can be seen in another shape where they lie, as ``torch.reshape`` decides it.

    Axes that follow each other in memory without a gap are one run of elements. A new shape is a view if it splits
    these runs, and joins none. (``computeStride`` in ATen's ``TensorUtils.cpp``.)

    Parameters
    ----------
    new
        Of as many elements.
    """
    runs: list[int] = []
    inner = 0
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size == 1:
            continue
        if runs and stride == inner:
            runs[-1] *= size
        else:
            runs.append(size)
        inner = stride * size
    axes = [size for size in reversed(new) if size != 1]
    place = 0
    for run in runs:
        joined = 1
        while joined < run and place < len(axes):
            joined *= axes[place]
            place += 1
        if joined != run:
            return False
    return True
