"""Split points at parts of the time of a line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.units import Exact, ceil_ratio


def even_split(sums: Int64Array, stages: int) -> Int64Array:
    """Return the split whose stages take equal parts of the last of *sums*, as near as whole ops allow, none empty.

    Parameters
    ----------
    sums
        Ticks of the first ops, int64, shape (n + 1,); n is at least the number of stages.

    Returns
    -------
    int64, shape (S + 1,). Of two positions that are as near the lower one is taken.
    """
    total = int(sums[-1])
    return _nearest(sums, [Fraction(s * total, stages) for s in range(1, stages + 1)])


def split_of_shares(sums: Int64Array, shares: Sequence[float]) -> Int64Array:
    """Return the split whose stages come as near to *shares* of the last of *sums* as whole ops allow, none empty."""
    total = float(sums[-1])
    return _nearest(sums, [int(end * total) for end in accumulate(shares)])


def _nearest(sums: Int64Array, ends: Sequence[Exact]) -> Int64Array:
    known = sums.tolist()
    n, stages = len(known) - 1, len(ends)
    split = np.zeros(stages + 1, dtype=np.int64)
    for s, end in enumerate(ends[:-1], 1):
        at = min(bisect_left(known, ceil_ratio(end.numerator, end.denominator)), n)
        if at > 0 and end - known[at - 1] <= known[at] - end:
            at = bisect_left(known, known[at - 1])
        split[s] = min(max(at, int(split[s - 1]) + 1), n - (stages - s))
    split[stages] = n
    return split
