"""Texts of the verifier on settings and factors."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from mtpp.checker.facts import factor


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0719234, "1.07193"),
        (Fraction(3, 2), "1.5"),
        (Fraction(10**6 + 1, 10**6), "1.00001"),
        (Fraction(21, 20), "1.05"),
        (10**300, "1e+300"),
    ],
)
def test_factors_are_rounded_up(ratio: Fraction | float, text: str) -> None:
    """A factor that something is within has six digits, the last one rounded up."""
    assert factor(ratio) == text


def test_what_is_said_is_proven() -> None:
    """No factor that is printed is below the ratio that it stands for."""
    drawn = random.Random(5)
    for _ in range(2_000):
        ratio = 1 + Fraction(drawn.randint(1, 10**9), 10 ** drawn.randint(1, 12))
        assert Fraction(factor(ratio)) >= ratio
