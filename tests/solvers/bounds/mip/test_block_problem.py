"""Ticks as units of an objective, and back."""

from __future__ import annotations

import math
import random

import pytest

from mtpp.inference.certificate import SOLVER_TOLERANCE
from mtpp.solvers.bounds.mip.block_problem import MARGIN, Scale, beyond_precision


@pytest.mark.parametrize("asked", [1, 2, 999, 1024, 12_345_678_901, 2**61 - 1])
@pytest.mark.parametrize("unit", [1, 7])
def test_the_cutoff_is_between_a_hundred_and_a_thousand(asked: int, unit: int) -> None:
    """Whatever the size of the costs; no cost of up to 53 bits is rounded."""
    scale = Scale.of(asked, unit)
    assert 512 <= scale.objective(scale.limit) < 1024
    assert scale.objective(3 * unit) == 3 * scale.objective(unit)
    assert scale.limit % unit == 0
    assert scale.limit == scale.cutoff - 1


@pytest.mark.parametrize("unit", [1, 7, 10**6])
def test_what_is_asked_for_is_well_inside(unit: int) -> None:
    """A partition of that cost, and a little above, is below the cutoff of the model; none above may be claimed."""
    for asked in (1, 5, 10**4, 10**9 + 1, 10**15):
        scale = Scale.of(asked, unit)
        assert asked <= scale.most < asked + unit
        assert scale.limit >= asked + max(unit, asked // 10**4)
        assert scale.limit < 2 * asked + 3 * unit
        assert scale.lower(scale.objective(10 * scale.limit)) == scale.most


def test_what_a_dual_bound_is_worth_is_never_above_the_optimum() -> None:
    """A dual bound that is too high by less than the margin gives a true bound; one that is exact is within it."""
    stream = random.Random(0)
    for _ in range(500):
        unit = stream.choice((1, 1, 5, 1000))
        asked = stream.randint(1, 10 ** stream.randint(1, 15))
        scale = Scale.of(asked, unit)
        optimum = stream.randint(0, asked // unit) * unit
        exact = scale.objective(optimum)
        high, low = scale.lower(exact + 0.99 * MARGIN), scale.lower(exact)
        assert high is not None
        assert low is not None
        assert high <= optimum
        assert optimum - low <= 2 * MARGIN / scale.objective(unit) * unit
        if scale.objective(unit) > MARGIN:
            assert low == optimum
        if 2 * optimum > scale.limit:
            assert optimum <= (1 + SOLVER_TOLERANCE) * low or optimum - low < unit


def test_a_cutoff_that_no_partition_backs_is_never_claimed() -> None:
    """Nor is anything that no dual bound says."""
    assert Scale.of(12_345, 1, most=12_344).lower(1e9) == 12_344
    assert Scale.of(12_345, 10, most=12_344).lower(1e9) == 12_340
    assert Scale.of(12_345, 10).lower(math.inf) is None
    assert Scale.of(12_345, 10).lower(-math.inf) is None
    assert Scale.of(12_345, 10).lower(-5.0) == 0


def test_a_bound_within_the_tolerance_is_enough() -> None:
    """The margin itself must not keep a cell open."""
    scale = Scale.of(10**9, 1)
    assert scale.most * (1 - 1e-6) < scale.enough < scale.most
    assert (scale.lower(scale.objective(10**9)) or 0) >= scale.enough
    assert Scale.of(100, 1).enough == 100


def test_costs_beyond_double_precision() -> None:
    """Whole numbers of units up to 2^53 are exact."""
    assert not beyond_precision(2**53, 1)
    assert beyond_precision(2**53 + 1, 1)
    assert not beyond_precision(10 * 2**53, 10)
