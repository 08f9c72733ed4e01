"""FLOPs of what is not dense linear algebra, per element: one rule for the operators of every format."""

from __future__ import annotations

import math
from collections.abc import Sequence

SIGMOID_FLOPS = 4
"""Negate, exp, add, reciprocal."""
SILU_FLOPS = 5
"""A sigmoid and a product."""
GELU_ERF_FLOPS = 5
"""x/2 · (1 + erf(x/√2)): two scalings, erf, addition, multiplication."""
GELU_TANH_FLOPS = 9
"""x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
SOFTMAX_FLOPS = 5
"""Per element: maximum, subtraction, exp, sum, division."""
STANDARDISE_FLOPS = 5
"""Per element: sum for the mean, centre, square, sum, divide by the deviation."""
LAYER_NORM_FLOPS = STANDARDISE_FLOPS + 2
"""… and scale and shift."""
BATCH_NORM_FLOPS = 2
"""At inference one multiplication and one addition: mean and variance fold into scale and shift per channel."""
RMS_NORM_FLOPS = 4
"""Per element: square, sum, divide by the root, scale."""
RNN_FLOPS, GRU_FLOPS, LSTM_FLOPS = 2, 17, 22
"""Per hidden unit and step. RNN: add, tanh. GRU: 3 adds, 2 sigmoids, tanh, r∘h, (1−z)∘n + z∘h. LSTM: 4 adds,
3 sigmoids, 2 tanh, f∘c + i∘g, o∘tanh(c)."""
DROPOUT_FLOPS = 3
"""In training: a random number, a comparison and a scaling per element."""

ADAPTIVE_SAMPLES = 2
"""Samples along an axis of an element of an aligned region where the size of each region, which is data, chooses."""
IOU_FLOPS = 16
"""Intersection over union of two boxes: four comparisons, two subtractions and two bounds and a product for the
intersection, three operations for each area but one, sum, difference, division, comparison."""


def antialiased_flops(before: Sequence[int], after: Sequence[int], taps: int) -> int:
    """Return the FLOPs of resizing with a filter that widens as the picture shrinks, one axis after another.

    Parameters
    ----------
    taps
        Neighbours along an axis that keeps its size or grows; a multiplication and an addition for each.
    """
    flops, shape = 0, list(before)
    for axis in reversed(range(len(shape))):
        if before[axis] != after[axis]:
            shape[axis] = after[axis]
            flops += 2 * math.prod(shape) * -(-taps * max(before[axis], after[axis]) // after[axis])
    return flops


def n_log_n(length: int) -> int:
    """Return the comparisons of sorting, or the butterflies of a transform, of some length: n · ⌈log₂ n⌉."""
    return length * max(1, (max(length, 1) - 1).bit_length())
