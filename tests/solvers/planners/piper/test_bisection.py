"""The next threshold to ask about lies where it halves what is open, and ends in a question that settles it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mtpp.solvers.planners.piper.bisection import Question, next_question, threshold_between


@pytest.mark.parametrize(
    ("low", "high", "middle"),
    [
        (Fraction(0), None, None),
        (Fraction(10), Fraction(20), Fraction(15)),
        (Fraction(10), Fraction(21), Fraction(15)),
        (Fraction(10), Fraction(11), Fraction(21, 2)),
        (Fraction(1, 3), Fraction(1, 2), Fraction(5, 12)),
        (Fraction(10), Fraction(1000), Fraction(100)),
        (Fraction(0), Fraction(10**6), Fraction(1)),
        (Fraction(0), Fraction(1), Fraction(1, 2)),
    ],
)
def test_between(low: Fraction, high: Fraction | None, middle: Fraction | None) -> None:
    """Halfway, in whole ticks where there are any between; the geometric mean while the ends are far apart."""
    assert threshold_between(low, high) == middle


@pytest.mark.parametrize(
    ("low", "high", "gains", "near", "asked"),
    [
        (1000, None, 0, False, Question(None, False, False)),
        (1000, 1100, 0, False, Question(Fraction(1050), False, False)),
        (1000, 1001, 0, False, Question(Fraction(1001), True, True)),
        (1000, 1001, 1, False, Question(Fraction(1001), True, True)),
        (1000, 1001, 2, False, Question(Fraction(2001, 2), False, True)),
        (1000, 1100, 0, True, Question(Fraction(1100), True, True)),
    ],
)
def test_next_question(low: int, high: int | None, gains: int, near: bool, asked: Question) -> None:
    """Anything better at all, once the ends are close; after a row of slight gains, halfway for once."""
    assert next_question(Fraction(low), None if high is None else Fraction(high), gains, near=near) == asked


@pytest.mark.parametrize("least", [Fraction(1), Fraction(1000, 7), Fraction(123456789)])
def test_questions_end(least: Fraction) -> None:
    """Answered truthfully by plans that take exactly what was asked for or the least there is, few are asked."""
    low, high, gains, asked = Fraction(0), None, 0, 0
    while high is None or low < high:
        question = next_question(low, high, gains)
        asked += 1
        time = question.time
        if time is None or least < time or (least == time and not question.strictly):
            high = Fraction(10**12) if time is None else max(least, time - Fraction(1, 1000))
            gains += question.close
        elif question.strictly:
            break
        else:
            low, gains = time, 0
    assert high == least
    assert asked < 200
