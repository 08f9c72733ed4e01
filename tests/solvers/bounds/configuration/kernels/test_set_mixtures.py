"""Mixtures and multipliers of a few sets against linear programmes solved by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from mtpp.solvers.bounds.configuration.kernels.set_mixtures import best_mixture, best_multipliers

STEEPEST = 64.0


def drawn(seed: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return a number of sets, and what each holds, is over and is under; with a place more for the kernel."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 8))
    held = np.append(random.uniform(0, 2, count), 0.0)
    over = np.append(random.uniform(-1, 1.5, count), 0.0)
    under = np.append(-0.7 * over[:-1] + random.uniform(-0.4, 0.6, count), 0.0)
    return count, held, over, under


@pytest.mark.parametrize("seed", range(40))
def test_the_best_mixture_keeps_to_both_limits_on_average(seed: int) -> None:
    """It holds as much as the linear programme over all shares, or there is none in either."""
    count, held, over, under = drawn(seed)
    chosen = np.zeros(6)
    found = best_mixture(held, over, under, count, chosen)
    limits = np.array([over[:count], under[:count]])
    due = linprog(-held[:count], A_ub=limits, b_ub=[0, 0], A_eq=np.ones((1, count)), b_eq=[1])
    assert found == due.success
    if found:
        numbers, shares = chosen[:3].astype(int), chosen[3:]
        assert np.all(shares >= 0)
        assert shares.sum() == pytest.approx(1)
        assert shares @ over[numbers] <= 1e-9
        assert shares @ under[numbers] <= 1e-9
        assert shares @ held[numbers] == pytest.approx(-due.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_multipliers_leave_the_least(seed: int) -> None:
    """As little as the linear programme over both multipliers, and never less than nothing at all."""
    count, held, over, under = drawn(seed)
    chosen = np.zeros(6)
    least = best_multipliers(held, over, under, count, STEEPEST, chosen)
    rows = np.column_stack([-over[:count], -under[:count], -np.ones(count)])
    due = linprog([0, 0, 1], A_ub=rows, b_ub=-held[:count], bounds=[(0, STEEPEST), (0, STEEPEST), (0, None)])
    assert least == pytest.approx(due.fun, abs=1e-6)
    budget, rest = chosen[:2]
    assert 0 <= budget <= STEEPEST
    assert 0 <= rest <= STEEPEST
    assert max(0.0, *(held - budget * over - rest * under)) == pytest.approx(least, abs=1e-9)
