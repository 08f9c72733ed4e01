"""Orders that are searched: topological along the line, whatever order the file has, and held to brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from looped_oracles import every_split, family_rows, needed_bytes, random_line, replayed, warm_ups

from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.order_search import _orders
from mtpp.solvers.planners.pfeife.planner import plan
from mtpp.training.pfeife.line import ModelLine
from mtpp.training.pfeife.looped import least_warm_up
from mtpp.training.pfeife.plan import SplitPlan
from mtpp.training.pfeife.problem import SplitProblem, SplitRules
from mtpp.training.positions import LinePlace


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
        random_line(pick, ops), devices=devices, micro_batches=pick.choice([1, 2]), bandwidth_bytes_per_s=1, rules=rules
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
