"""Annealing and the default: never worse than slicing, the same for any threads, and ended by the right thing."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import oracles
import pytest
from graph_strategies import chain, problems, random_graph
from hypothesis import given, settings

from mtpp.errors import Infeasible
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Int32Array, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, check_stage_memory, stage_costs
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.local_search import annealing, initial_partition, multilevel
from mtpp.solvers.local_search.annealing import HOT, Annealer, Assignment, Start
from mtpp.solvers.local_search.assignment import AssignmentState, MoveArrays, assignment_state
from mtpp.solvers.local_search.initial_partition import has_one_order
from mtpp.solvers.partitioners import anneal, auto, slice
from mtpp.solvers.registry import Partitioner
from mtpp.solvers.threads import Threads

SYSTEM = load_device()
BOTH = pytest.mark.parametrize("solver", [anneal.partition, auto.partition], ids=["anneal", "auto"])


@pytest.fixture
def by_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have graphs of ten ops and more searched by levels, down to eight ops."""
    for module in (anneal, auto):
        monkeypatch.setattr(module, "LARGE", 10)
    monkeypatch.setattr("mtpp.solvers.local_search.multilevel._TARGET", 8)
    monkeypatch.setattr("mtpp.solvers.local_search.multilevel._TARGET_PER_STAGE", 2)


@BOTH
@pytest.mark.parametrize("k", [2, 3, 9])
@pytest.mark.parametrize("size", [2, 11, 60])
def test_never_worse_than_slicing_and_within_the_budget(solver: Partitioner, size: int, k: int) -> None:
    """It begins with the cut of the file's order, and makes no more evaluations than allowed."""
    instance = Instance.build(random_graph(size, size), Machine.uniform(k, SYSTEM))
    sliced = slice.partition(instance, SearchLimits(1))
    for budget in (1, 2, 7, 500):
        found = solver(instance, SearchLimits(budget, lower_bound=simple_bound(instance).value))
        assert found.bottleneck <= sliced.bottleneck
        assert found.bottleneck == bottleneck(instance, found.partition)
        assert 1 <= found.evaluations <= budget


@BOTH
@pytest.mark.usefixtures("by_levels")
@pytest.mark.parametrize("peak", ["reserve", "order"])
@pytest.mark.parametrize("memory", [None, 200])
def test_levels(solver: Partitioner, memory: int | None, peak: str) -> None:
    """Large graphs are contracted, solved and refined; the result is what it says, for any number of threads."""
    system = Device("s", 1, 1, Link(10**9), peak=peak).overriding(fast_memory_bytes=memory)
    instance = Instance.build(random_graph(9, 80, time_unit="ns", shuffled=False), Machine.uniform(4, system))
    results = [solver(instance, SearchLimits(400, jobs=jobs, seed=2)) for jobs in (1, 2)]
    assert results[0].partition.assignment.tolist() == results[1].partition.assignment.tolist()
    assert results[0].evaluations == results[1].evaluations
    assert results[0].bottleneck == bottleneck(instance, results[0].partition)
    assert len(set(results[0].partition.assignment.tolist())) > 1


@BOTH
@pytest.mark.usefixtures("by_levels")
def test_levels_keep_to_the_budget(solver: Partitioner) -> None:
    """However few evaluations there are, refining makes no more of them."""
    instance = Instance.build(random_graph(9, 150, shuffled=False), Machine.uniform(3, SYSTEM))
    for budget in (1, 2, 3, 5, 8, 30):
        assert 1 <= solver(instance, SearchLimits(budget)).evaluations <= budget


@BOTH
@pytest.mark.usefixtures("by_levels")
@pytest.mark.parametrize("large", [10, 50])
def test_a_memory_too_tight_for_contracted_ops(
    solver: Partitioner, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stages have to be full to the last byte, which merged ops straddle: the search begins on a larger instance."""
    monkeypatch.setattr("mtpp.solvers.local_search.multilevel.LARGE", large)
    stream = random.Random(3)
    ops = [Op(f"op{v}", stream.randint(1, 9), None, 1) for v in range(80)]
    tensors = [
        Tensor(f"t{v}", f"op{v}", tuple({f"op{v + 1}", f"op{min(79, v + 2)}"}), 1, stream.randint(0, 9))
        for v in range(79)
    ]
    graph = CostGraph.build(name="tight", time_unit="ns", ops=ops, tensors=tensors)
    system = Device("s", 1, 1, Link(10**9), memory_bytes=10)
    instance = Instance.build(graph, Machine.uniform(8, system))
    sliced = slice.partition(instance, SearchLimits(1))
    for budget in (1, 40, 2000):
        results = [solver(instance, SearchLimits(budget, jobs=jobs)) for jobs in (1, 2)]
        assert results[0].partition.assignment.tolist() == results[1].partition.assignment.tolist()
        costs = stage_costs(instance, results[0].partition)
        check_stage_memory(instance, costs)
        assert results[0].bottleneck == costs.bottleneck <= sliced.bottleneck
        assert 1 <= results[0].evaluations <= budget


def test_a_clock_does_not_lift_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A last round that is made longer to end with the time makes no more moves than evaluations are left for."""
    now, moves = [0.0], [0]
    anneal_round = Annealer.round

    def counted(self: Annealer, starts: Sequence[Start], proposals: int) -> tuple[list[Assignment], int]:
        moves[0] += proposals * len(starts)
        now[0] += 1e-6 * proposals  # any that is known: rounds then are as long as they are meant to be
        return anneal_round(self, starts, proposals)

    monkeypatch.setattr(Annealer, "round", counted)
    monkeypatch.setattr("mtpp.solvers.local_search.portfolio.monotonic", lambda: now[0])
    instance = Instance.build(random_graph(4, 40), Machine.uniform(3, SYSTEM))
    for limit_s in (0.05 * 1.3**i for i in range(20)):
        now[0], moves[0] = 0.0, 0
        deadline = Deadline(1e9)
        monkeypatch.setattr(Deadline, "remaining_s", lambda self, limit_s=limit_s: limit_s - now[0])
        anneal.partition(instance, SearchLimits(20_000, deadline=deadline))
        assert moves[0] <= 20_000 * 40


@BOTH
@pytest.mark.usefixtures("by_levels")
@pytest.mark.parametrize("target", [8, 1000])
def test_levels_use_all_of_the_time(solver: Partitioner, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With levels or, where a graph is not to be contracted, without: what ends the search is the clock."""
    monkeypatch.setattr("mtpp.solvers.local_search.multilevel._TARGET", target)
    instance = Instance.build(random_graph(9, 80), Machine.uniform(4, SYSTEM))
    found = solver(instance, SearchLimits(UNLIMITED, deadline=Deadline(0.3)))
    assert found.stopped == "time-limit"
    assert found.bottleneck == bottleneck(instance, found.partition)


@BOTH
@pytest.mark.usefixtures("by_levels")
def test_one_stage_needs_no_search_by_levels(solver: Partitioner) -> None:
    """There is one partition only; no time is spent on it, though no bound says that it is the best."""
    instance = Instance.build(random_graph(9, 80), Machine.uniform(1, SYSTEM))
    found = solver(instance, SearchLimits(UNLIMITED, deadline=Deadline(1e6)))
    assert (found.stopped, found.bottleneck) == ("finished", int(instance.work.sum()))


def test_a_reduced_instance_with_one_order_is_cut_anew() -> None:
    """In the file d stands before e; with d merged into b the ops form a chain, whose best cut is the best."""
    ops = [Op("a", 4), Op("d", 1), Op("e", 3), Op("b", 3), Op("c", 4)]
    tensors = [
        Tensor("t", "a", ("e",), transfer=1),
        Tensor("s", "d", ("b",), transfer=9),
        Tensor("r", "e", ("b",), transfer=1),
        Tensor("q", "b", ("c",), transfer=1),
    ]
    graph = CostGraph.build(name="late", time_unit="1", ops=ops, tensors=tensors)
    for k in (2, 3, 4):
        instance = Instance.build(graph, Machine.uniform(k, SYSTEM))
        found = auto.partition(instance, SearchLimits(UNLIMITED, lower_bound=simple_bound(instance).value))
        assert found.stopped in ("finished", "optimal")
        assert found.bottleneck == oracles.brute_force_optimum(graph, SYSTEM, k)


@settings(max_examples=25)
@given(problems(max_ops=6))
def test_small_problems_are_solved(problem: tuple[CostGraph, Device, int]) -> None:
    """A few thousand evaluations find the optimum of nearly everything this small; here, of all that are drawn."""
    graph, system, k = problem
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum = oracles.brute_force_optimum(graph, system, k)
    try:
        found = auto.partition(instance, SearchLimits(3000, lower_bound=simple_bound(instance).value))
    except Infeasible:
        return  # within a hard limit nothing may be found, or nothing may exist
    assert found.bottleneck >= optimum
    if system.memory_bytes is None:
        assert found.bottleneck == optimum


@BOTH
def test_memory_that_never_fills_changes_nothing(solver: Partitioner) -> None:
    """With room for everything the plan is that of no memory at all, in either kind of peak."""
    graph = random_graph(12, 40, time_unit="us", shuffled=False)
    plans = set()
    for memory, peak in ((None, "reserve"), (10**12, "reserve"), (10**12, "order"), (10**12, "stage")):
        field = "memory_bytes" if peak == "stage" else "fast_memory_bytes"
        system = SYSTEM.overriding(**{field: memory}, peak="reserve" if peak == "stage" else peak)
        found = solver(Instance.build(graph, Machine.uniform(4, system)), SearchLimits(300))
        plans.add((tuple(found.partition.assignment.tolist()), found.bottleneck, found.evaluations))
    assert len(plans) == 1


@BOTH
def test_a_memory_that_only_balancing_meets(solver: Partitioner) -> None:
    """Six ops of 5, 5, 4, 4, 3, 3 bytes fill three stages of 8 exactly; no cut of the file's order does."""
    ops = [Op(f"op{i}", 1, param_bytes=size) for i, size in enumerate((5, 5, 4, 4, 3, 3))]
    graph = CostGraph.build(name="bins", time_unit="us", ops=ops, tensors=[])
    instance = Instance.build(graph, Machine.uniform(3, SYSTEM.overriding(memory_bytes=8)))
    found = solver(instance, SearchLimits(2000))
    assert stage_costs(instance, found.partition).param_bytes.tolist() == [8, 8, 8]


def test_what_was_tried_in_vain_is_told() -> None:
    """Three ops of 5 bytes fit no two stages of 8: balancing is part of the budget, but no cut of an order.

    Where downsets are searched too, that is proven.
    """
    ops = [Op(f"op{i}", 1, param_bytes=5) for i in range(3)]
    graph = CostGraph.build(name="bins", time_unit="us", ops=ops, tensors=[])
    instance = Instance.build(graph, Machine.uniform(2, SYSTEM.overriding(memory_bytes=8)))
    for budget, orders in ((1, "the file's order"), (16, "16 orders"), (20, "16 orders"), (517, "17 orders")):
        with pytest.raises(Infeasible, match=f"none found: no cut of {orders} into 2 stages"):
            anneal.partition(instance, SearchLimits(budget))
    with pytest.raises(Infeasible, match="proven infeasible: no partition into 2 stages keeps each to 8 bytes"):
        auto.partition(instance, SearchLimits(517))
    with pytest.raises(Infeasible, match="proven infeasible: no partition into 2 stages keeps each to 8 bytes"):
        auto.partition(instance, SearchLimits(UNLIMITED, deadline=Deadline(5.0)))


@BOTH
def test_what_ends_a_search(solver: Partitioner) -> None:
    """The bound, the budget, the clock, the user, or that there is nothing to search."""
    instance = Instance.build(random_graph(8, 50), Machine.uniform(4, SYSTEM))
    assert solver(instance, SearchLimits(50)).stopped == "budget"
    assert solver(instance, SearchLimits(UNLIMITED, lower_bound=UNLIMITED)).stopped == "optimal"
    assert solver(instance, SearchLimits(UNLIMITED, deadline=Deadline(0.0))).stopped == "time-limit"
    assert solver(instance, SearchLimits(UNLIMITED, interrupted=lambda: True)).stopped == "interrupted"
    done = "optimal" if solver is auto.partition else "finished"  # one of them can prove it
    assert (
        solver(Instance.build(random_graph(8, 50), Machine.uniform(1, SYSTEM)), SearchLimits(UNLIMITED)).stopped == done
    )
    only = Instance.build(chain([3, 1, 4, 1, 5], [1, 2, 1, 2]), Machine.uniform(3, SYSTEM))
    assert has_one_order(only)
    ended = solver(only, SearchLimits(UNLIMITED))
    assert (ended.stopped, ended.bottleneck) == (done, slice.partition(only, SearchLimits(1)).bottleneck)


@BOTH
def test_a_time_limit_is_kept_and_used(solver: Partitioner) -> None:
    """Half a second without an end in sight takes about that, not much less and not several times as long."""
    instance = Instance.build(random_graph(8, 120), Machine.uniform(6, SYSTEM))
    solver(instance, SearchLimits(40))  # compiles
    begin = time.monotonic()
    found = solver(instance, SearchLimits(UNLIMITED, deadline=Deadline(0.5), jobs=2))
    assert found.stopped == "time-limit"
    assert found.evaluations > 100
    assert time.monotonic() - begin > 0.3


@pytest.mark.parametrize("k", [1, 2, 5])
@BOTH
def test_odd_graphs(solver: Partitioner, k: int) -> None:
    """One op, no tensors, no work at all."""
    for works in ([7], [0, 0, 0], [3, 1, 2, 2]):
        graph = CostGraph.build(
            name="odd", time_unit="1", ops=[Op(f"op{i}", work) for i, work in enumerate(works)], tensors=[]
        )
        instance = Instance.build(graph, Machine.uniform(k, SYSTEM))
        found = solver(instance, SearchLimits(300, lower_bound=simple_bound(instance).value))
        assert found.bottleneck == oracles.brute_force_optimum(graph, SYSTEM, k)


@pytest.mark.usefixtures("by_levels")
@pytest.mark.parametrize("budget", [40, 900])
def test_orders_that_failed_are_not_tried_again(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no level has a partition within the stage memory, the smallest is searched on, not once more."""
    system = SYSTEM.overriding(memory_bytes=10**6)
    instance = Instance.build(random_graph(3, 40, time_unit="us"), Machine.uniform(4, system))
    tried: list[tuple[int, bytes]] = []

    def cuts_nothing(instance: Instance, order: Int32Array, **arguments: object) -> None:
        tried.append((instance.op_count, order.tobytes()))

    monkeypatch.setattr(initial_partition, "slice_order", cuts_nothing)
    monkeypatch.setattr(multilevel, "slice_order", cuts_nothing)
    monkeypatch.setattr(initial_partition, "_balanced_memory", lambda *arguments: None)
    with pytest.raises(Infeasible, match="none found"), Threads(1) as threads:
        multilevel.solve_by_levels(instance, SearchLimits(budget), threads, order_share=0.0)
    smallest = min(size for size, _ in tried)
    coarse = [order for size, order in tried if size == smallest]
    assert len(coarse) == budget - min(500, budget - 16)  # the rest is for balanced parameters
    assert len(tried) > len(coarse)


def test_no_more_states_than_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of all tensors in all stages take memory, so runs that wait for a thread have none."""
    made: list[int] = []

    def noted(moves: MoveArrays, stage_count: int, seed: int) -> AssignmentState:
        made.append(stage_count)
        return assignment_state(moves, stage_count, seed)

    monkeypatch.setattr(annealing, "assignment_state", noted)
    instance = Instance.build(random_graph(60, 60), Machine.uniform(4, SYSTEM))
    starts = [Start(slice.partition(instance, SearchLimits(1)).partition.assignment, HOT)] * 8
    rounds = []
    for jobs in (1, 2):
        made.clear()
        with Threads(jobs) as threads:
            annealer = Annealer(instance, 4, threads, 0, lambda: False)
            rounds.append([annealer.round(starts, 10_000) for _ in range(2)])
        assert len(made) <= jobs
    once, twice = (
        [(one.bottleneck, one.stage.tolist()) for found, _ in several for one in found] for several in rounds
    )
    assert once == twice
