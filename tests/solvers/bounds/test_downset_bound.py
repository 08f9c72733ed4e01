"""The bound of a search over downsets: its proof passes, searched again, and it says what it came to."""

from __future__ import annotations

from fractions import Fraction

import oracles
import pytest
from graph_strategies import LINK, random_graph

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.downset import bound
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.certify.cell_limits import CellLimits
from mtpp.solvers.certify.cell_work import certify


@pytest.mark.parametrize("seed", range(8))
def test_meets_the_optimum(seed: int) -> None:
    """From a bottleneck that is too large it comes to the best partition and the proof of it."""
    graph = random_graph(seed, 8)
    instance = Instance.build(graph, LINK, 3)
    optimum = oracles.brute_force_optimum(graph, LINK, 3)
    result = bound(instance, BoundLimits(optimum + 5))
    assert result.solved
    assert result.partition is not None
    if result.lower is not None:  # else the simple bound is as good
        assert (result.lower.value, result.lower.tier) == (optimum, "enumerated")


def test_ends_at_what_is_enough() -> None:
    """A bound that is known already is not proven again."""
    instance = Instance.build(random_graph(3, 8), LINK, 3)
    result = bound(instance, BoundLimits(10**6, enough=1, lower=1))
    assert (result.lower, result.partition) == (None, None)


def test_alone_in_a_cell_it_says_what_was_merged() -> None:
    """The search runs on the reduced graph, and the proof speaks of the one that is given."""
    seeds = [seed for seed in range(12) if _merged(seed)]
    assert len(seeds) > 2


def _merged(seed: int) -> bool:
    graph = random_graph(seed, 12)
    limits = CellLimits(20.0, Fraction(1), ("simple", "downset"), "slice", each=True)
    cell = certify(Instance.build(graph, LINK, 3), limits)
    return cell.lower.method == "downset" and bool(cell.lower.proof["merges"])
