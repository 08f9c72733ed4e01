"""FLOPs of what is not dense linear algebra, per element: one rule for the operators of every format."""

from __future__ import annotations

import math
from collections.abc import Sequence

FUNCTIONS = {
    "celu": 5,  # max(0, x) + min(0, α·(exp(x/α) − 1)), the maximum of one of the two being free
    "clip": 2,
    "complexmul": 3,  # four multiplications, two additions for two numbers
    "dequantize": 2,  # shift, scale
    "elu": 4,  # compare, exp, subtract, scale
    "fastgelu": 9,  # x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))
    "gelu": 5,  # x/2 · (1 + erf(x/√2)): two scalings, erf, addition, multiplication
    "hardsigmoid": 4,  # scale, shift, two bounds
    "hardswish": 5,
    "leakyrelu": 2,
    "mish": 5,  # x · tanh(log(1 + exp(x)))
    "prelu": 2,
    "quantize": 3,  # scale, round, shift
    "selu": 5,
    "shrink": 2,
    "sigmoid": 4,  # negate, exp, add, reciprocal
    "softplus": 3,
    "softsign": 3,
    "swiglu": 6,
    "swish": 5,  # a sigmoid and a product
}
"""Per element, by the name of the function; functions that stand here in no form take one operation, as a sum does."""

QUANTISED_FLOPS = FUNCTIONS["dequantize"] + FUNCTIONS["quantize"]
"""Beside a function of one operand that is dequantised before and quantised after."""

SOFTMAX_FLOPS = 5
"""Per element: maximum, subtraction, exp, sum, division."""
CROSS_ENTROPY_FLOPS = SOFTMAX_FLOPS + 1
"""Per element in ATen, with the product; ONNX's operator reads one element a row after its softmax: SOFTMAX_FLOPS."""
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
SAMPLE_FLOPS = 9
"""Of a sample that is interpolated from four neighbours and added to the others of its region."""
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


def fourier_flops(length: int) -> int:
    """Return the real operations of a complex transform, the count of the radix-2 FFT: 5 · n · ⌈log₂ n⌉."""
    return 5 * n_log_n(length)


def heap_flops(k: int) -> int:
    """Return the comparisons for each element while a heap of the k best is kept: ⌈log₂ k⌉."""
    return max(1, (max(k, 1) - 1).bit_length())
