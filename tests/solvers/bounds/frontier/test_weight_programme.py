"""The linear programme of weights against all convex sets of small graphs, and the pool of sets."""

from __future__ import annotations

import numpy as np
import pytest

from mtpp.array_types import BoolArray, Float64Array
from mtpp.solvers.bounds.convex_weights.master import Master, Seats
from mtpp.solvers.bounds.convex_weights.pool import Pool
from mtpp.solvers.bounds.frontier.scan import Sets
from mtpp.solvers.bounds.limits import BoundLimits

OPS, STAGES, LIMITS = 12, 3, BoundLimits(10)


def _some_sets(seed: int) -> BoolArray:
    """Return some sets of ops, of which each op is in one at least, one a row."""
    random = np.random.default_rng(seed)
    inside = random.random((40, OPS)) < 0.3
    inside[:OPS] |= np.eye(OPS, dtype=np.bool_)
    return inside[inside.any(axis=1)]


def _master(pool: Pool, best: Float64Array, units: int = 1000) -> Master:
    order = np.arange(OPS, dtype=np.int32)
    return Master([pool], Seats((STAGES,), STAGES), [10], best, [1.0], units, 10**6, 1.0, order)


def test_pools_know_each_set_once() -> None:
    """What sets hold is the sum of the weights of their ops, in the order in which they came."""
    inside = _some_sets(0)
    cost = np.arange(len(inside), dtype=np.int64)
    pool = Pool()
    pool.add(Sets(inside[:20], cost[:20]))
    pool.add(Sets(inside, cost + 100))
    first = [row for row in range(len(inside)) if not (inside[:row] == inside[row]).all(axis=1).any()]
    weights = np.random.default_rng(1).random(OPS)
    assert pool.held(weights) == pytest.approx((inside @ weights)[first])
    assert pool.cost.tolist() == [row if row < 20 else row + 100 for row in first]
    for number, row in enumerate(first):
        assert pool.ops(number).tolist() == np.flatnonzero(inside[row]).tolist()


def test_full_pools_forget_the_emptiest_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep half of the ops there may be, and take in a forgotten set again."""
    monkeypatch.setattr("mtpp.solvers.bounds.convex_weights.pool._MOST_OPS", 60)
    inside, weights = np.unique(_some_sets(2), axis=0), np.arange(1.0, OPS + 1)
    inside = inside[np.argsort(-(inside @ weights), kind="stable")]
    pool = Pool()
    pool.add(Sets(inside, np.zeros(len(inside), dtype=np.int64)))
    pool.keep(weights)
    kept = int((np.cumsum(inside.sum(axis=1)) <= 30).sum())
    assert 0 < kept < len(inside)
    assert pool.held(weights) == pytest.approx(inside[:kept] @ weights)
    pool.add(Sets(inside[[0, kept]], np.array([7, 7])))
    assert pool.cost.tolist() == [0] * kept + [7]
    assert pool.ops(kept).tolist() == np.flatnonzero(inside[kept]).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_weights_come_to_the_fewest_sets_that_cover_all(seed: int) -> None:
    """Sets that cost too much do not count; the sum is that of the programme over all others."""
    from scipy.optimize import linprog

    inside = np.unique(_some_sets(seed), axis=0)
    cost = np.where(np.arange(len(inside)) % 4 == 3, 11, 10)
    cost[inside.sum(axis=1) == 1] = 10
    pool = Pool()
    pool.add(Sets(inside, cost))
    rows = inside[cost <= 10]
    most = -linprog(-np.ones(OPS), rows, np.ones(len(rows)), bounds=(0, STAGES)).fun
    master = _master(pool, np.ones(OPS))
    for _ in range(200):
        proposal = master.propose(LIMITS)
        assert proposal is not None
        master.take(proposal, int(proposal.weights.sum()) / int((rows @ proposal.weights).max()), 1000)
        if master.exhausted or master.total > STAGES * 1.01:
            break
    assert master.total <= most * (1 + 1e-6)
    assert master.total >= min(most, STAGES) * 0.99
    assert not master.hopeless or most <= STAGES * (1 + 1e-5)


def test_tiny_weights_are_swept_together() -> None:
    """Where there was no room, the sum stays and hardly any weight is tiny."""
    best = np.array([1.0, 1e-3, 1e-3, 1e-3, 1e-3, 1.0, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1.0])
    master = _master(Pool(), best, units=2000)
    fine = master.propose(LIMITS)
    assert fine is not None
    assert np.count_nonzero(fine.weights) == OPS
    for _ in range(4):
        assert master.coarser()
    swept = master.propose(LIMITS)
    assert swept is not None
    assert np.count_nonzero(swept.weights) < 6
    assert swept.weights.sum() == pytest.approx(STAGES * 125, abs=4)
