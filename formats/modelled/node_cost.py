"""Cost of one run of an op: what it computes and, where that is not all of its operands, what it moves.

Conventions
-----------
* A multiply-accumulate is two FLOPs. A bias adds nothing: a dot product of length n with a bias is n
  multiplications and n additions.
* One addition, comparison, conversion or elementary function (exp, sqrt, tanh, erf …) is one FLOP; fused ops count
  as the sum of what they fuse (a sigmoid is 1 / (1 + exp(−x)): four).
* Interpolation is a multiplication and an addition for each neighbour where interpolated elements are the result
  (resizing, sampling by a grid, aligned regions). Where they are factors of multiply-accumulates, as in a deformable
  convolution, it is part of reading them.
* Integer arithmetic counts like floating-point arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What one run of an op takes.

    Attributes
    ----------
    flops
        Arithmetic operations, those of *macs* included.
    macs
        Multiply-accumulates of dense linear algebra.
    reads, writes
        Bytes moved; None: all inputs once, all outputs once.
    """

    flops: int
    macs: int = 0
    reads: int | None = None
    writes: int | None = None


def dense(macs: int, extra_flops: int = 0) -> NodeCost:
    """Return the cost of *macs* multiply-accumulates and a few operations around them."""
    return NodeCost(flops=2 * macs + extra_flops, macs=macs)
