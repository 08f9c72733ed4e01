"""Statistics of measured times, against numpy's and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtpp.host.statistics import in_thousandths, middle_mean, quartiles

TIMES = st.lists(st.integers(0, 10**6), min_size=1, max_size=30)


@given(TIMES)
def test_quartiles_are_numpys(times: list[int]) -> None:
    """Between neighbours in proportion, as numpy's default."""
    assert [float(figure) for figure in quartiles(times)] == pytest.approx(np.quantile(times, [0.25, 0.5, 0.75]))


@given(TIMES)
def test_the_middle_mean_is_within_the_middle(times: list[int]) -> None:
    """And is exact."""
    mean = middle_mean(times)
    assert min(times) <= mean <= max(times)
    assert isinstance(mean, Fraction)


def test_a_quarter_at_either_end_is_left_out() -> None:
    """Outliers do not count; whole microseconds become fractions of one."""
    assert middle_mean([0, 3, 4, 4, 4, 4, 900, 5]) == Fraction(16, 4)
    assert middle_mean([1, 2, 2]) == Fraction(5, 3)
    assert middle_mean([7]) == 7


@pytest.mark.parametrize(
    ("time", "due"), [(Fraction(5, 3), Fraction(1667, 1000)), (Fraction(2), 2), (Fraction(1, 9999), 0)]
)
def test_rounded_to_a_thousandth(time: Fraction, due: Fraction | int) -> None:
    """A decimal that JSON can hold."""
    assert in_thousandths(time) == due
