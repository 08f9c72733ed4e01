"""Every bound of the registry against brute force: lower ≤ OPT ≤ upper, whatever costs, memories and k."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import oracles
import pytest
from graph_strategies import LINK, merging_graph, random_graph, with_costs

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.inference.certificate import SOLVER_TOLERANCE
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.registry import BOUNDS, bound_entry
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.cell_work import certify
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.units import Exact

LARGEST_SCALE = {"1": 9, "ps": 9, "ns": 9, "us": 8, "ms": 5, "s": 2}
"""Powers of ten at which costs of a few hundred time units stay below 2^62 ticks in all."""

LIMIT_S = 20.0
"""Of a bound on a graph of eight ops; none is close to it, but one that hangs must not hang the tests."""

SEEDS = 48
PARTS = 4
_TURNS = 4


@dataclass(frozen=True)
class Case:
    """A problem with all that brute force says about it."""

    graph: CostGraph
    system: Device
    instance: Instance
    optimum: int
    best: Partition | None

    @property
    def peaks_in_order(self) -> bool:
        """Whether stages have peaks that no linear model knows exactly."""
        return self.system.limits_memory and self.system.peak == "order"


def scaled(graph: CostGraph, power: int) -> CostGraph:
    """Return the graph with every cost times 10^power; bytes stay."""
    factor = Fraction(10) ** power

    def times(cost: Exact) -> Exact:
        value = Fraction(cost) * factor
        return value.numerator if value.denominator == 1 else value

    return with_costs(graph, times)


def drawn_case(seed: int) -> Case:
    """Draw one of the cases: up to 8 ops, k from 2 to 4, any unit, costs from 10^-9 to 10^9 of them, any memory."""
    pick = random.Random(seed)
    count = min(8, pick.randint(2, 10))
    unit = pick.choice(("1", "1", "1", *LARGEST_SCALE))
    fractional = pick.random() < 0.3
    if pick.random() < 0.3:
        graph = merging_graph(seed, count, time_unit=unit, largest_params=pick.choice((0, 60)))
    else:
        graph = random_graph(
            seed,
            count,
            time_unit=unit,
            fractional=fractional,
            largest_cost=pick.choice((3, 20, 200)),
            consumers_per_tensor=pick.choice((0.8, 1.5, 3.0)),
        )
    graph = scaled(graph, pick.randint(-9, LARGEST_SCALE[unit] - 3 * fractional))
    system = LINK
    if unit != "1" and pick.random() < 0.5:
        memory = pick.randint(0, 150)
        peak = pick.choice(("reserve", "order"))
        system = replace(LINK, fast_memory_bytes=memory, activation_reserve_bytes=pick.randint(0, memory), peak=peak)
    if pick.random() < 0.2:
        system = replace(system, memory_bytes=system.activation_reserve_bytes + pick.randint(20, 300))
    k = pick.randint(2, 4)
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum, stages = oracles.best_partition(graph, system, k)
    best = None if optimum >= oracles.NEVER else Partition.from_stages(instance, stages)
    return Case(graph, system, instance, optimum, best)


def views(case: Case, start: Partition | None) -> list[tuple[Instance, Partition | None]]:
    """Return the instance as it is and as the reduction leaves it, each with the partition."""
    found = [(case.instance, start)]
    reduced = reduce_instance(case.instance)
    if reduced.rounds:
        found.append((reduced.instance, None if start is None else reduced.carry(start)))
    return found


def hold(case: Case, instance: Instance, result: BoundResult, known: int) -> None:
    """Check what a bound gave back against the optimum and against what was known before."""
    if result.lower is not None:
        assert 0 <= result.lower.value <= case.optimum
        assert result.lower.tier in ("exact", "enumerated", "solver")
    if result.partition is not None:
        cost = bottleneck(instance, result.partition)
        assert case.optimum <= cost < known


def one_stage(case: Case) -> Partition | None:
    """Return the partition into a single stage, None if that is against the stage memory."""
    stages = [0] * case.instance.op_count
    if oracles.bottleneck(case.graph, case.system, stages, case.instance.k) >= oracles.NEVER:
        return None
    return Partition.from_stages(case.instance, stages)


def occasions(case: Case) -> list[tuple[Instance, BoundLimits]]:
    """Return ways to ask for a bound: a best or a poor partition known, with or without it, reduced or not."""
    found: list[tuple[Instance, BoundLimits]] = []
    for start in (case.best, one_stage(case)):
        if start is None:
            continue
        known = bottleneck(case.instance, start)
        for instance, carried in views(case, start):
            simple = simple_bound(instance).value
            found += [(instance, BoundLimits(known, given, lower)) for given, lower in ((carried, simple), (None, 0))]
    return found


def check(name: str, case: Case, which: slice = slice(None)) -> bool:
    """Hold a bound against the optimum on some :func:`occasions`; tell whether it ever met the optimum."""
    if case.best is None:
        return False
    met = False
    solve: Callable[[Instance, BoundLimits], BoundResult] = bound_entry(name).load()
    for instance, asked in occasions(case)[which]:
        result = solve(instance, replace(asked, deadline=Deadline(LIMIT_S)))
        hold(case, instance, result, asked.upper)
        met = met or (result.lower is not None and result.lower.value == case.optimum)
        if name == "exact-mip" and not case.peaks_in_order:
            assert_solved(case, instance, result, asked)
    return met


def assert_solved(case: Case, instance: Instance, result: BoundResult, asked: BoundLimits) -> None:
    """Check that the exact MIP came to the optimum, with its bound and its partition, but for its tolerance.

    The bound stays below a cutoff that no partition backs, the optimum or not.
    """
    known = asked.upper
    assert result.solved
    tolerance = max(1, SOLVER_TOLERANCE * max(case.optimum, known))  # the margin is a part of what is known
    best = known if result.partition is None else bottleneck(instance, result.partition)
    assert best - case.optimum <= tolerance
    # Where there is nothing for it to do, the simple bound has done it.
    lower = simple_bound(instance).value if result.lower is None else result.lower.value
    if asked.start is None and case.optimum == known:
        assert result.lower is None or lower < known
    else:
        assert case.optimum - lower <= tolerance


@pytest.mark.parametrize("name", BOUNDS)
def test_some_small_graphs(name: str) -> None:
    """A few of the cases below, always run; each bound meets the optimum somewhere."""
    met = [check(name, drawn_case(seed)) for seed in range(0, 500, 80)]
    assert any(met)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", BOUNDS)
def test_hundreds_of_small_graphs(name: str, part: int) -> None:
    """No bound is above the optimum, no partition found on the way is below it; the occasions take turns."""
    for seed in range(part, SEEDS, PARTS):
        check(name, drawn_case(seed), slice((seed // PARTS) % _TURNS, None, _TURNS))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_certified_cells(part: int) -> None:
    """The ladder's bounds, all tried, stay below the optimum, and its partition is at least that."""
    for seed in range(part, SEEDS, PARTS):
        certify_case(drawn_case(seed))


def certify_case(case: Case) -> None:
    """Certify a case with a partition that need not be the best, so that there is something left to prove."""
    limits = CellLimits(None, bounds=tuple(BOUNDS), algorithm="random")
    try:
        cell = certify(case.instance, limits)
    except Infeasible:
        assert case.best is None or case.system.memory_bytes is not None
        return
    assert case.best is not None
    assert cell.lower.value <= case.optimum <= cell.upper == bottleneck(case.instance, cell.partition)
    for figure in cell.bounds.values():
        assert figure.value is None or figure.value <= case.optimum
