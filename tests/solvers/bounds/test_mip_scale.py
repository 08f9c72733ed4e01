"""Ticks as units of an objective, and back."""

from __future__ import annotations

import math
import random

import pytest

from mtpp.solvers.bounds.mip_scale import Scale, margin


@pytest.mark.parametrize("cutoff", [1, 2, 999, 1024, 12_345_678_901, 2**61 - 1])
@pytest.mark.parametrize("unit", [1, 7])
def test_the_cutoff_is_between_a_hundred_and_a_thousand(cutoff: int, unit: int) -> None:
    """Whatever the size of the costs; no cost of up to 53 bits is rounded."""
    scale = Scale.of(cutoff, unit)
    assert 100 <= scale.objective(max(cutoff, unit)) <= 1024
    assert scale.objective(3 * unit) == 3 * scale.objective(unit)
    assert scale.limit % unit == 0
    assert scale.limit < cutoff <= scale.limit + unit


def test_what_a_dual_bound_proves_is_never_above_the_optimum() -> None:
    """A dual bound that is too high by less than the margin still gives a true bound; one that is exact gives OPT."""
    stream = random.Random(0)
    for _ in range(500):
        unit = stream.choice((1, 1, 5, 1000))
        cutoff = stream.randint(1, 10 ** stream.randint(1, 17))
        scale = Scale.of(cutoff, unit)
        columns = stream.randint(1, 20_000)
        optimum = stream.randint(0, cutoff // unit) * unit
        exact = scale.objective(optimum)
        assert scale.lower(exact + 0.99 * margin(columns), columns) <= min(cutoff, optimum)
        assert min(cutoff, optimum) - scale.lower(exact, columns) <= 2 * margin(columns) / scale.objective(unit) * unit
        if margin(columns) < scale.objective(unit):
            assert scale.lower(exact, columns) == min(cutoff, optimum)
        assert scale.ceiling(columns) - margin(columns) > scale.objective(scale.limit)


def test_nothing_below_the_cutoff_proves_the_cutoff() -> None:
    """An infinite dual bound is that of an infeasible model."""
    assert Scale.of(12_345, 10).lower(math.inf, 100) == 12_345
    assert Scale.of(12_345, 10).lower(-5.0, 100) == 0
