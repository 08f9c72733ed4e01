"""Outputs are compared bit for bit, then within what rounding explains."""

from __future__ import annotations

import numpy as np
import pytest

from mtpp.runtime.checking.agreement import Agreement

ONE = np.array([1.0, 2.0, np.nan], dtype=np.float32)


@pytest.mark.parametrize(
    ("found", "expected", "exact", "near"),
    [
        (ONE, ONE.copy(), True, True),
        (ONE, ONE * np.float32(1 + 1e-6), False, True),
        (ONE, ONE * np.float32(1.01), False, False),
        (ONE, np.array([1.0, np.nan, 2.0], dtype=np.float32), False, False),
        (np.array([np.inf, 1], dtype=np.float32), np.array([np.inf, 1], dtype=np.float32), True, True),
        (np.array([np.inf, 1], dtype=np.float32), np.array([1, 1], dtype=np.float32), False, False),
        (np.array([1, 2], dtype=np.float16), np.array([1, 2.002], dtype=np.float16), False, True),
        (np.array([1, 2]), np.array([1, 3]), False, False),
        (np.array([True]), np.array([True]), True, True),
        (np.zeros((0, 3), dtype=np.float32), np.zeros((0, 3), dtype=np.float32), True, True),
    ],
)
def test_comparison(found: np.ndarray, expected: np.ndarray, exact: bool, near: bool) -> None:
    """NaN in the same places is the same; whole numbers are equal or wrong."""
    agreement = Agreement()
    agreement.add({"y": found}, {"y": expected, "other": ONE})
    assert (agreement.compared, agreement.exact, agreement.near) == (1, int(exact), int(near))
    assert agreement.holds == near
    assert (agreement.largest == 0) == exact


def test_sizes_are_compared() -> None:
    """The same bytes in another shape are another result; so are none in place of none of another size."""
    agreement = Agreement()
    agreement.add({"y": np.zeros((2, 3), np.float32)}, {"y": np.zeros((3, 2), np.float32)})
    agreement.add({"y": np.zeros((0, 3), np.float32)}, {"y": np.zeros((0, 2), np.float32)})
    agreement.add({"y": np.zeros((0, 3), np.float32)}, {"y": np.zeros((0, 3), np.float32)})
    assert (agreement.compared, agreement.near) == (3, 1)
