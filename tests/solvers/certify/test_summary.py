"""Means of tables of certificates, against numbers worked out by hand."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import pytest
from certificate_documents import row
from hypothesis import given
from hypothesis import strategies as st

from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.certify.summary import OverSimple, ladder, summarise


def test_means_of_two_graphs() -> None:
    """The cell that ``node`` closed counts as closed below it, and says nothing of the bound that was not run."""
    rows = [
        row("a", upper=20, simple=10, node=16, exact_mip=20, method="exact-mip"),
        row("b", upper=30, simple=15, node=30, method="node"),
    ]
    (summary,) = summarise(rows)
    assert (summary.k, summary.cells, summary.models, summary.closed) == (2, 2, 2, 2)
    assert summary.ratio == 1
    assert summary.best_so_far == pytest.approx({"simple": 2, "node": sqrt(20 / 16), "exact-mip": 1})
    assert list(summary.over_simple) == ["node", "exact-mip"]
    assert summary.over_simple["node"] == OverSimple(pytest.approx(sqrt(1.6 * 2)), 2, 2)
    assert summary.over_simple["exact-mip"] == OverSimple(pytest.approx(2), 1, 1)
    assert summary.best == {"node": 1, "exact-mip": 1}


def test_each_k_on_its_own() -> None:
    """Summaries come by k; a bound that was tried for one k alone is in that one's means alone."""
    rows = [row(k=8, upper=9, simple=3), row(k=2, upper=8, simple=4, node=5, method="node")]
    first, second = summarise(rows)
    assert (first.k, second.k) == (2, 8)
    assert first.best_so_far == pytest.approx({"simple": 2, "node": 1.6})
    assert second.best_so_far == pytest.approx({"simple": 3, "node": 3})
    assert set(second.over_simple) == set()


def test_a_bound_that_gave_nothing_counts_as_the_simple_one() -> None:
    """So its mean is not one over the easy graphs; neither it nor one that ran out of time counts as solved."""
    rows = [
        row("a", upper=40, simple=10, node=None),
        row("b", upper=40, simple=10, node=-40, method="node"),
        row("c", upper=40, simple=10, node=8),
    ]
    (summary,) = summarise(rows)
    assert summary.over_simple == {"node": OverSimple(pytest.approx((1 * 4 * 0.8) ** (1 / 3)), 3, 1)}
    assert summary.best_so_far == pytest.approx({"simple": 4, "node": (4 * 1 * 4) ** (1 / 3)})
    assert summary.closed == 1


def test_what_was_not_run_for_want_of_time_adds_nothing() -> None:
    """Hard graphs stay in the means of the bounds that their time did not reach."""
    rows = [
        row("easy", upper=10, simple=8, node=9, exact_mip=10, method="exact-mip"),
        row("hard", upper=10, simple=2, node=-4, method="node", stopped_="time-limit"),
    ]
    (summary,) = summarise(rows)
    assert summary.best_so_far["exact-mip"] == pytest.approx(sqrt(1 * 10 / 4))
    assert summary.best_so_far["exact-mip"] == summary.ratio


def test_graphs_without_work_are_left_out() -> None:
    """A simple bound of 0 gives no ratio, neither below a bottleneck nor below another bound."""
    rows = [
        row("a", upper=6, simple=3),
        row("idle", upper=0, simple=0),
        row("streams", upper=5, simple=0, node=4, method="node"),
    ]
    (summary,) = summarise(rows)
    assert (summary.cells, summary.models, summary.closed) == (3, 1, 1)
    assert (summary.ratio, summary.best_so_far) == (2, {"simple": 2, "node": 2})
    assert summary.over_simple == {}
    (empty,) = summarise(rows[1:])
    assert (empty.models, empty.ratio, empty.best_so_far, empty.over_simple) == (0, None, {}, {})


def test_bounds_without_partitions() -> None:
    """There is no ratio to a bottleneck, but there is one to the simple bound."""
    (summary,) = summarise([row(simple=10, node=15, method="node")])
    assert (summary.ratio, summary.best_so_far, summary.closed) == (None, {}, 0)
    assert summary.over_simple == {"node": OverSimple(pytest.approx(1.5), 1, 1)}


def test_ladder_is_the_order_of_the_runs() -> None:
    """What one row does not say another does; a bound that came early in the run stands early."""
    rows = [
        row(simple=1, last=1),
        row(simple=1, early=1, node_x=1, method="simple"),
        row(simple=1, early=1, last=1),
        row(simple=1, node_x=1, last=1),
    ]
    assert ladder(rows) == ["simple", "early", "node-x", "last"]
    assert ladder([]) == []


def test_ladder_of_orders_that_disagree_is_that_of_the_registry() -> None:
    """Rows of two runs with other orders do not hang the summary, nor lose a bound."""
    names = [*list(BOUNDS)[:3], "x", "y"]
    figures = dict.fromkeys(names, 1)
    rows = [row(**figures), row(**dict(reversed(figures.items())))]
    assert ladder(rows) == names


@given(
    st.lists(st.tuples(st.integers(1, 9), *[st.none() | st.integers(1, 10**12)] * 3), min_size=1, max_size=6),
)
def test_means_never_fall_below_one_and_never_rise(cells: list[tuple[int, int | None, int | None, int | None]]) -> None:
    """Down the ladder the ratio to the best bound so far falls, to the ratio that was proven, at least 1."""
    rows = []
    for simple, *others in cells:
        values = {"simple": simple} | {f"b{i}": value for i, value in enumerate(others) if value is not None}
        best = max(values, key=lambda name: values[name])
        rows.append(row(upper=values[best] + 3, method=best, **values))
    (summary,) = summarise(rows)
    means = list(summary.best_so_far.values())
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(means))
    assert summary.ratio == pytest.approx(means[-1], rel=1e-12)
    assert means[-1] >= 1


def test_document() -> None:
    """The keys of a summary in JSON; ``geomean_bounds`` ends with ``geomean_ratio``."""
    (summary,) = summarise([row(upper=20, simple=10, node=-16, method="node")])
    assert summary.to_document() == {
        "k": 2,
        "cells": 1,
        "models": 1,
        "closed": 0,
        "geomean_ratio": 1.25,
        "geomean_bounds": {"simple": 2.0, "node": 1.25},
        "over_simple": {"node": {"geomean": 1.6, "cells": 1, "solved": 0}},
        "best": {"node": 1},
    }
