"""Certificates: the ratio, and what happens when a bound contradicts a partition."""

from __future__ import annotations

import pytest

from mtpp.errors import InconsistentBound
from mtpp.inference.certificate import Certificate, LowerBound, approximation_ratio


@pytest.mark.parametrize(
    ("upper", "lower", "ratio"), [(6, 4, 1.5), (5, 5, 1.0), (0, 0, 1.0), (3, 0, None), (2**60 + 1, 2**60, 1.0)]
)
def test_ratio(upper: int, lower: int, ratio: float | None) -> None:
    """The ratio is the quotient, 1 where both are 0, and unknown where only the bound is."""
    assert approximation_ratio(upper, lower) == ratio


def test_optimal_only_where_the_integers_meet() -> None:
    """A float ratio of 1.0 does not make a plan optimal; equal integers do."""
    assert not Certificate(2**60 + 1, LowerBound(2**60, "m", "exact")).optimal
    assert Certificate(7, LowerBound(7, "m", "exact")).optimal


def test_a_bound_above_the_bottleneck_is_a_bug() -> None:
    """It raises, and the message holds both numbers."""
    with pytest.raises(InconsistentBound, match=r"lower bound 8 \(m\) is above the bottleneck 7"):
        Certificate(7, LowerBound(8, "m", "exact"))
