"""Orders of ops by ``pfeife``: topological, none slower than the file's, and bounds against all orders there are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from looped_oracles import every_split, family_rows, needed_bytes, random_line, replayed, warm_ups
from split_problems import planned, problem_of

from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife import planner
from mtpp.solvers.planners.pfeife.planner import _orders, plan
from mtpp.training.model import LinePlace
from mtpp.training.pfeife.costs import LineCosts
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.looped import least_warm_up
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem, SplitRules


def test_order_search_is_no_slower() -> None:
    """A better order than the file's is found where branches are written one op of each in turn."""
    pick = random.Random(5)
    line = random_line(pick, 14)
    along = planned(problem_of(line, 2, 4))
    searched = planned(problem_of(line, 2, 4, rules=SplitRules(order="search")))
    assert searched.iteration <= along.iteration
    assert sorted(searched.problem.line.names) == sorted(line.names)
    for one in searched.problem.line.costs.tensors:
        assert all(one.producer < reader for reader in one.consumers)


def test_the_files_order_is_planned_for_where_a_quick_look_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that a short search prefers may turn out slower, or not to fit: the file's own is kept then."""
    work, nothing = np.array([6, 5, 8, 1]), np.zeros(4, dtype=np.int64)
    costs = LineCosts(work, 2 * work, work, nothing, [])
    line = ModelLine("four", "graph", list("abcd"), "ps", 1, costs, True)
    monkeypatch.setattr(planner, "best_order", lambda *_: (0, 2, 1, 3))
    for memory in (None, [11, 11]):
        along, searched = (
            planned(problem_of(line, 2, 4, memory_bytes=memory, rules=SplitRules(loops=(1,), order=order)))
            for order in ("file", "search")
        )
        assert searched.split == along.split == [0, 2, 4]
        assert searched.iteration == along.iteration
        assert list(searched.problem.line.names) == list("abcd")
    none = plan(problem_of(line, 2, 4, memory_bytes=[9, 9], rules=SplitRules(loops=(1,), order="search")), Limits())
    assert isinstance(none, NoSplitPlan)
    assert none.least_memory_bytes == 11


def every_order(line: ModelLine) -> Iterator[list[LinePlace]]:
    """Go through all topological orders of a line's ops."""

    def onward(done: list[LinePlace]) -> Iterator[list[LinePlace]]:
        if len(done) == line.costs.ops:
            yield list(done)
        for v in line.order:
            if v not in done and all(u in done for u, w in line.ends if w == v):
                yield from onward([*done, v])

    yield from onward([])


def best_of_every_order(problem: SplitProblem) -> int:
    """Return the least iteration over all orders, splits, loops, loop batches and warm-ups."""
    best = None
    devices, total, n = problem.devices, problem.micro_batches, problem.line.costs.ops
    schedules = [
        (loops, family_rows(devices, total, loops, batch, warm_up))
        for loops, batch in problem.cells
        for warm_up in warm_ups(least_warm_up(devices, total, loops, batch), loops * total)
    ]
    for order in every_order(problem.line):
        times = problem.reordered(order).times
        for loops, rows in schedules:
            for split in every_split(n, loops * devices):
                taken = replayed(rows, *(column.tolist() for column in times.stage_times(split)))
                if taken is not None and (best is None or taken < best):
                    best = taken
    assert best is not None
    return best


def rows_of(found: SplitPlan) -> list[list[tuple[int, str, int]]]:
    """Return the passes of a plan as the oracle takes them."""
    return [[(one.stage, "FB"[one.kind], one.micro_batch) for one in row] for row in found.schedule.rows]


def is_topological(line: ModelLine, order: Sequence[int]) -> bool:
    """Tell whether an order has all ops, each behind those that it reads from."""
    place = {v: p for p, v in enumerate(order)}
    return sorted(order) == list(range(line.costs.ops)) and all(place[u] < place[v] for u, v in line.ends)


@pytest.mark.parametrize("seed", range(20))
def test_every_order_is_topological(seed: int) -> None:
    """All orders that are tried go along the tensors."""
    line = random_line(random.Random(seed), 3 + seed)
    assert is_topological(line, line.order)
    assert all(is_topological(line, order) for order in _orders(line))


@pytest.mark.parametrize("seed", range(30))
def test_searched_orders_against_every_order(seed: int) -> None:
    """A plan takes and needs what a second program says; bounds on any order are not above the best of all."""
    pick = random.Random(seed)
    devices = pick.choice([1, 2, 2, 3])
    ops = pick.randint(devices, 5)
    rules = SplitRules(loops=[1, 2] if 2 * devices <= ops else [1], order="search")
    problem = SplitProblem.build(
        random_line(pick, ops),
        machine=Machine.of_devices(devices, bandwidth_bytes_per_s=1),
        micro_batches=pick.choice([1, 2]),
        rules=rules,
    )
    due = best_of_every_order(problem)
    found = plan(problem, Limits())
    assert isinstance(found, SplitPlan)
    along = found.problem
    assert sorted(along.line.names) == sorted(problem.line.names)
    assert is_topological(along.line, along.line.order)
    taken = replayed(rows_of(found), *(column.tolist() for column in along.times.stage_times(found.split)))
    assert due <= found.iteration == taken
    assert found.peak_bytes == needed_bytes(along, rows_of(found), found.split)
    assert max(found.lower.value, found.family.value) <= found.iteration
    if found.holds_for_any_order:
        assert found.family.value <= due
    if found.optimal:
        assert found.iteration == due
