"""Runs on the clock, and their geometric means over graphs."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from types import ModuleType

import pytest
from graph_strategies import LINK, chain, random_graph

from mtpp.errors import Infeasible
from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.aim import Aim
from mtpp.solvers.certify.comparison import (
    Run,
    RunLimits,
    complete_sources,
    means,
    run_cell,
    unrounded_simple_bound,
)
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.registry import PARTITIONERS, Partitioner, PartitionerEntry, default_orders
from mtpp.solvers.variants import Variant, parse_variant


def _cell(source: str, algorithm: str, bottleneck: int | None, *, k: int = 2, stopped: str = "finished") -> Run:
    return Run(source, k, algorithm, "1", 1, Fraction(10), bottleneck, 1, 0.5, stopped)


def _entry(monkeypatch: pytest.MonkeyPatch, solver: Partitioner) -> Variant:
    """Return an algorithm that lasts as long as the test."""
    module = ModuleType("made_up_solver")
    module.partition = solver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(PARTITIONERS, "made-up", PartitionerEntry("made-up", module.__name__, default_orders))
    return parse_variant("made-up")


def test_the_bound_is_a_real_number() -> None:
    """Three ops of 1 in two stages: 3/2, not 2; with one op of 5 it is that op."""
    assert unrounded_simple_bound(Instance.build(chain([1, 1, 1], [0, 0]), Machine.uniform(2, LINK))) == Fraction(3, 2)
    assert unrounded_simple_bound(Instance.build(chain([1, 5, 1], [0, 0]), Machine.uniform(2, LINK))) == 5


def test_a_run_is_scored_by_its_partition() -> None:
    """The cell holds the bottleneck of the cut by hand, its ratio to the real bound, and what the search said."""
    instance = Instance.build(chain([1, 1, 1], [0, 0]), Machine.uniform(2, LINK))
    cell = run_cell(Aim(instance), "a", parse_variant("slice"), RunLimits())
    assert (cell.source, cell.k, cell.algorithm, cell.bottleneck, cell.ratio) == ("a", 2, "slice", 2, 4 / 3)
    assert (cell.evaluations, cell.stopped, cell.found_by, cell.counts) == (1, "optimal", "slice", True)


@pytest.mark.parametrize(
    ("name", "limits", "evaluations"),
    [
        ("random-30", RunLimits(), 30),
        ("random-30", RunLimits(work_limit=20), 20),
        ("random-30", RunLimits(work_limit=40), 30),
        ("random", RunLimits(work_limit=40), 40),
        ("random-30", RunLimits(time_limit_s=1e6), 30),
    ],
)
def test_names_and_limits_bound_the_evaluations(name: str, limits: RunLimits, evaluations: int) -> None:
    """The smaller of both, however much time there is."""
    instance = Instance.build(random_graph(3, 30), Machine.uniform(4, LINK))
    cell = run_cell(Aim(instance), "a", parse_variant(name), limits)
    assert (cell.evaluations, cell.stopped) == (evaluations, "budget")


def test_what_a_search_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed, threads, the bound in whole ticks, and a deadline that counts from the run's own start."""
    given: list[SearchLimits] = []

    def solver(instance: Instance, limits: SearchLimits) -> SearchResult:
        given.append(limits)
        return PARTITIONERS["slice"].load()(instance, limits)

    variant = _entry(monkeypatch, solver)
    instance = Instance.build(chain([1, 1, 1], [0, 0]), Machine.uniform(2, LINK))
    run_cell(Aim(instance), "a", variant, RunLimits(time_limit_s=1000.0, seed=5, jobs=3))
    run_cell(Aim(instance), "a", variant, RunLimits())
    timed, plain = given
    assert (timed.evaluations, timed.lower_bound, timed.seed, timed.jobs) == (UNLIMITED, 2, 5, 3)
    assert 900 < timed.deadline.remaining_s() <= 1000
    assert plain.evaluations < UNLIMITED
    assert math.isinf(plain.deadline.remaining_s())


def test_an_algorithm_may_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell says why, and counts nowhere."""

    def solver(instance: Instance, limits: SearchLimits) -> SearchResult:
        raise Infeasible("none found: it does not fit")

    cell = run_cell(
        Aim(Instance.build(chain([1, 2], [1]), Machine.uniform(2, LINK))), "a", _entry(monkeypatch, solver), RunLimits()
    )
    assert (cell.bottleneck, cell.ratio, cell.stopped, cell.counts) == (None, None, StopReason.INFEASIBLE, False)
    assert cell.problem == "none found: it does not fit"


def test_an_interrupted_search_that_found_nothing_is_not_called_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    """There was more to try: the cell says who ended it."""

    def solver(instance: Instance, limits: SearchLimits) -> SearchResult:
        raise Infeasible("none found: it does not fit")

    instance = Instance.build(chain([1, 2], [1]), Machine.uniform(2, LINK))
    cell = run_cell(Aim(instance), "a", _entry(monkeypatch, solver), RunLimits(), lambda: True)
    assert (cell.bottleneck, cell.stopped, cell.counts) == (None, "interrupted", False)
    assert cell.problem == "interrupted before a partition was found"


def test_means_are_geometric() -> None:
    """Of the ratios 11/10, 13/10 and 17/10: the cube root of their product."""
    cells = [_cell(source, "x", bottleneck) for source, bottleneck in (("a", 11), ("b", 13), ("c", 17))]
    (mean,) = means(cells, ["x"], [2])
    assert mean.ratio == pytest.approx(float(Fraction(11 * 13 * 17, 1000)) ** (1 / 3), rel=1e-14)
    assert (mean.models, mean.seconds) == (3, 1.5)


def test_rules_that_do_not_fit_leave_the_means_of_others() -> None:
    """A graph on which the one answer of a rule exceeds a memory counts for all others; without any plan for none."""
    cells = [
        *(_cell(source, "slice", bottleneck) for source, bottleneck in (("a", 20), ("b", 80))),
        _cell("a", "fill", 30),
        _cell("b", "fill", None, stopped=StopReason.INFEASIBLE),
        *(_cell("c", name, None, stopped=StopReason.INFEASIBLE) for name in ("slice", "fill")),
    ]
    rows = [(mean.algorithm, mean.models, mean.ratio) for mean in means(cells, ["slice", "fill"], [2])]
    assert rows == [("slice", 2, pytest.approx(4.0)), ("fill", 1, pytest.approx(3.0))]
    assert complete_sources(cells, ["slice", "fill"], 2) == ["a", "b"]
    alone = [cell for cell in cells if cell.algorithm == "fill"]
    assert [(mean.models, mean.ratio) for mean in means(alone, ["fill"], [2])] == [(1, pytest.approx(3.0))]


def test_means_compare_like_with_like() -> None:
    """A graph that one algorithm did not finish, or found nothing on, counts for none; other columns keep it."""
    cells = [
        *(_cell("a", name, bottleneck) for name, bottleneck in (("x", 20), ("y", 30))),
        _cell("b", "x", 40),
        _cell("b", "y", None, stopped=StopReason.INFEASIBLE),
        _cell("c", "x", 50),
        _cell("c", "y", 60, stopped="interrupted"),
        _cell("d", "x", 70),
        *(_cell("b", name, 80, k=4) for name in ("x", "y")),
    ]
    rows = [
        (mean.algorithm, mean.k, mean.models, mean.ratio, mean.seconds) for mean in means(cells, ["x", "y"], [2, 4, 8])
    ]
    assert [row[:3] for row in rows] == [(name, k, count) for name in "xy" for k, count in ((2, 1), (4, 1), (8, 0))]
    assert [row[3] for row in rows] == pytest.approx([2.0, 8.0, None, 3.0, 8.0, None])
    assert [row[4] for row in rows] == [0.5, 0.5, 0, 0.5, 0.5, 0]
    assert complete_sources(cells, ["x", "y"], 2) == ["a"]
