"""Lower bounds by mixed-integer programs against brute force."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flow_proofs import claim_of
from graph_strategies import LINK, random_graph, with_costs
from oracles import NEVER, brute_force_optimum, monotone_assignments, stage_cost

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, check_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds import exact_mip
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.block_problem import BlockProblem
from mtpp.solvers.bounds.mip.block_solve import BlockOutcome, Solved, SolverProcess, solve_blocks
from mtpp.solvers.bounds.registry import bound_entry
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.partitioners.slice import partition as slice_partition

MIDDLE = ("bottleneck-no-dag", "bottleneck-no-cut-io", "bottleneck")
NAMES = (*MIDDLE, "bottleneck-guess", "node-convex", "exact-mip")


def scaled(graph: CostGraph, factor: Fraction, seed: int) -> CostGraph:
    """Return the graph with every cost times *factor*, where that leaves an integer plus 0, 1 or 2."""
    stream = random.Random(seed)

    def cost(value: Fraction | int) -> Fraction | int:
        return value * factor + (stream.randint(0, 2) if factor.denominator == 1 else 0)

    return with_costs(graph, cost)


def all_bounds(instance: Instance, names: tuple[str, ...] = NAMES) -> dict[str, BoundResult]:
    """Return what each bound proves, all in one stage being the partition known."""
    together = Partition.from_stages(instance, [0] * instance.op_count)
    limits = BoundLimits(bottleneck(instance, together), together)
    return {name: bound_entry(name).load()(instance, limits) for name in names}


def check(graph: CostGraph, system: Device, k: int) -> None:
    """Hold every bound against the optimum and against each other."""
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum = brute_force_optimum(graph, system, k)
    together = bottleneck(instance, Partition.from_stages(instance, [0] * instance.op_count))
    results = all_bounds(instance)
    if simple_bound(instance).value >= together:
        assert all(result == BoundResult(None, True) for result in results.values())
        return
    value = {name: result.lower.value for name, result in results.items() if result.lower is not None}
    assert set(value) == set(NAMES)
    for name, lower in value.items():
        assert lower <= optimum, name
        assert results[name].lower.tier in (("solver", "exact") if name in (*MIDDLE, "node-convex") else ("solver",))
        assert results[name].solved
    tolerance = max(optimum, together) // 10**6  # of the bottleneck of the partition known, from which the margin is
    assert optimum - value["exact-mip"] <= tolerance
    assert max(value["bottleneck-no-dag"], value["bottleneck-no-cut-io"]) <= value["bottleneck"] + tolerance
    assert value["bottleneck"] <= value["bottleneck-guess"] + tolerance
    if k == 2 or instance.op_count == 2:
        assert optimum - value["bottleneck-guess"] <= tolerance
    better = results["exact-mip"].partition
    assert (better is not None) == (optimum < together)
    if better is not None:
        assert bottleneck(instance, better) - optimum <= optimum // 10**6


def check_number(number: int) -> None:
    """Check one of many graphs: costs of all sizes, integers and decimals."""
    exponent = number % 19 - 9
    unit = ("1", "s", "ms", "ps")[number % 4] if exponent < 0 else ("1", "ps")[number % 2]
    graph = random_graph(number, 2 + number % 7, time_unit=unit, fractional=exponent < 0 and number % 3 == 0)
    check(scaled(graph, Fraction(10) ** exponent, number), LINK, 2 + number // 7 % 3)


@pytest.mark.parametrize(
    "number", [*range(0, 200, 8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(1000, 1070))]
)
def test_bounds_by_mip_are_below_the_optimum_and_the_exact_one_meets_it(number: int) -> None:
    """Whatever the size of the costs."""
    check_number(number)


@pytest.mark.parametrize("number", range(24))
def test_memory_is_part_of_the_model(number: int) -> None:
    """Overflow counts as it does in eq. 2, the stage memory is kept to, and peaks in order are relaxed."""
    graph = random_graph(number, 3 + number % 5, time_unit="ns")
    memory, reserve = 20 + 17 * number % 120, number % 15
    system = Device("small", 10**12, 10**11, Link(3 * 10**8), memory, reserve, ("reserve", "order")[number % 4 == 3])
    if number % 3 == 0:
        system = replace(system, memory_bytes=memory + 60)
    k = 2 + number % 3
    instance = Instance.build(graph, Machine.uniform(k, system))
    optimum = brute_force_optimum(graph, system, k)
    if optimum == NEVER:
        return
    limits = BoundLimits(optimum + 1)
    for name in NAMES:
        result = bound_entry(name).load()(instance, limits)
        lower = 0 if result.lower is None else result.lower.value
        assert lower <= optimum, name
        if name == "exact-mip" and system.peak == "reserve" and result.lower is not None:
            assert lower == optimum
            assert result.partition is not None
            check_stage_memory(instance, stage_costs(instance, result.partition))


@pytest.mark.parametrize("number", range(20))
def test_the_middle_stage_is_the_cheapest_with_enough_work(number: int) -> None:
    """``bottleneck`` and its two relaxations equal the minimum over sets found by enumeration."""
    graph = random_graph(number, 6)
    k = 3
    instance = Instance.build(graph, Machine.uniform(k, LINK))
    least = simple_bound(instance).value
    together = bottleneck(instance, Partition.from_stages(instance, [0] * 6))
    sets = [frozenset(v for v in range(6) if mask >> v & 1) for mask in range(1, 64)]
    convex = {frozenset(v for v in range(6) if s[v] == 1) for s in monotone_assignments_of_three(graph)}
    enough = [ops for ops in sets if sum(int(instance.work[v]) for v in ops) >= least]
    expected = {
        "bottleneck-no-dag": min(stage_cost(graph, LINK, ops) for ops in enough),
        "bottleneck-no-cut-io": min(sum(int(instance.work[v]) for v in ops) for ops in enough if ops in convex),
        "bottleneck": min(stage_cost(graph, LINK, ops) for ops in enough if ops in convex),
    }
    results = all_bounds(instance, MIDDLE)
    if least < together:
        found = {name: result.lower.value for name, result in results.items() if result.lower is not None}
        assert found == {name: min(value, together) for name, value in expected.items()}
        for name, result in results.items():
            assert result.lower is not None
            if result.lower.value > least:
                assert result.lower.tier == "exact"
                proof = json.loads(json.dumps(dict(result.lower.proof)))
                assert proof["heavy"] == 2
                assert CHECKERS[name](claim_of(graph, LINK, k, [], result.lower.value, proof))[0]


def monotone_assignments_of_three(graph: CostGraph) -> list[tuple[int, ...]]:
    """Return every assignment to three stages, the first ones empty or not."""
    shifted = [tuple(s + 1 for s in stages) for stages in monotone_assignments(graph, 2)]
    return [*monotone_assignments(graph, 3), *shifted]


def test_streamed_parameters_are_part_of_the_proof() -> None:
    """What overflows a fast memory counts in the integers as well, wherever parameters alone decide that."""
    streamed = 0
    for number in range(12):
        graph = random_graph(number, 7, time_unit="ns")
        system = Device("small", 10**12, 10**11, Link(3 * 10**8), 40, 0, "reserve")
        instance = Instance.build(graph, Machine.uniform(3, system))
        optimum = brute_force_optimum(graph, system, 3)
        lower = bound_entry("bottleneck").load()(instance, BoundLimits(optimum + 1)).lower
        if lower is None or lower.tier != "exact" or "heavy" not in lower.proof:
            continue
        assert lower.value <= optimum
        proof = json.loads(json.dumps(dict(lower.proof)))
        streamed += proof["streamed"]
        assert CHECKERS["bottleneck"](claim_of(graph, system, 3, [], lower.value, proof))[0]
    assert streamed


@pytest.mark.parametrize("number", range(20))
def test_node_convex_is_the_dearest_op_in_its_cheapest_stage(number: int) -> None:
    """The bound equals the maximum, over the ops, of the minimum over convex sets, unless the cutoff is lower."""
    graph = random_graph(number, 6)
    instance = Instance.build(graph, Machine.uniform(6, LINK))
    together = bottleneck(instance, Partition.from_stages(instance, [0] * 6))
    convex = {frozenset(v for v in range(6) if s[v] == 1) for s in monotone_assignments_of_three(graph)}
    expected = max(min(stage_cost(graph, LINK, ops) for ops in convex if v in ops) for v in range(6))
    result = all_bounds(instance, ("node-convex",))["node-convex"]
    if simple_bound(instance).value < together:
        assert result.lower is not None
        assert simple_bound(instance).value <= expected
        assert result.lower.value == min(expected, together)
        if result.lower.value == simple_bound(instance).value:
            return
        assert result.lower.tier == "exact"
        proof = json.loads(json.dumps(dict(result.lower.proof)))
        assert proof["anchor"][1] == 2
        assert CHECKERS["node-convex"](claim_of(graph, LINK, 6, [], result.lower.value, proof))[0]


@pytest.mark.parametrize("number", range(12))
def test_lower_cutoffs_are_tried_where_the_time_does_not_suffice(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they prove is below the optimum, and a better partition found on the way is kept."""
    graph = random_graph(number, 8)
    k = 3 + number % 2
    instance = Instance.build(graph, Machine.uniform(k, LINK))
    optimum = brute_force_optimum(graph, LINK, k)
    together = Partition.from_stages(instance, [0] * 8)
    upper = bottleneck(instance, together)
    hopeless = upper if number % 3 else optimum + 1  # as if cutoffs from here on took too long
    tried = []

    def hurried(problem: BlockProblem, *given: Any, **options: Any) -> BlockOutcome:
        tried.append(problem.scale.most)
        if problem.scale.most >= hopeless:
            return BlockOutcome("time-limit", None, None, 1, 1)
        return solve_blocks(problem, *given, **options)

    monkeypatch.setattr(exact_mip, "solve_blocks", hurried)
    limits = BoundLimits(upper, together, simple_bound(instance).value, deadline=Deadline(30))
    result = exact_mip.bound(instance, limits)
    if simple_bound(instance).value >= upper or not tried:
        return
    assert tried[0] == upper
    assert all(cutoff < upper for cutoff in tried[1:-1])
    if result.lower is not None:
        assert result.lower.value <= optimum
    if result.solved:
        assert result.lower is not None
        assert result.lower.value == optimum
    if result.partition is not None:
        assert optimum <= bottleneck(instance, result.partition) < upper


@pytest.mark.parametrize("name", [*MIDDLE, "bottleneck-guess", "exact-mip"])
def test_costs_too_small_for_the_solver_do_not_raise_the_bound(name: str) -> None:
    """A thousand ops of 20 ps beside two of a second: the half of them that a stage must hold is next to nothing."""
    ops = [Op("a", 10**12), Op("b", 10**12), *(Op(f"small{i}", 20) for i in range(1000))]
    instance = Instance.build(CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=[]), Machine.uniform(2, LINK))
    lower = bound_entry(name).load()(instance, BoundLimits(int(instance.work.sum()))).lower
    optimum = 10**12 + 500 * 20
    assert lower is not None
    assert 0.999 * optimum < lower.value <= optimum


def test_a_solver_that_fails_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit on time, positions that cannot be solved count with the simple bound."""
    monkeypatch.setattr(SolverProcess, "solve", lambda *given, **limits: Solved("failed", -math.inf, None))
    instance = Instance.build(random_graph(3, 8), Machine.uniform(4, LINK))
    together = bottleneck(instance, Partition.from_stages(instance, [0] * 8))
    for name, result in all_bounds(instance, ("bottleneck-guess", "node-convex", "exact-mip")).items():
        assert not result.solved, name
        if result.lower is not None:
            assert result.lower.value == simple_bound(instance).value < together


def test_a_target_ends_the_work() -> None:
    """What is above may be found on the way, where the MIP below what is enough has no solution."""
    graph = random_graph(5, 8)
    instance = Instance.build(graph, Machine.uniform(4, LINK))
    optimum = brute_force_optimum(graph, LINK, 4)
    enough = simple_bound(instance).value + 5
    for name in ("bottleneck-guess", "node-convex", "exact-mip"):
        result = bound_entry(name).load()(instance, BoundLimits(2 * optimum, enough=enough))
        assert result.lower is not None
        assert result.solved
        assert result.lower.value <= (optimum if name == "exact-mip" else enough)


def test_without_time_nothing_is_claimed_but_what_is_known_without() -> None:
    """A deadline in the past gives no bound, or the simple one."""
    instance = Instance.build(random_graph(5, 8), Machine.uniform(3, LINK))
    together = bottleneck(instance, Partition.from_stages(instance, [0] * 8))
    for name in NAMES:
        result = bound_entry(name).load()(instance, BoundLimits(together, deadline=Deadline(-1.0)))
        assert result.lower is None or result.lower.value <= simple_bound(instance).value
        assert not result.solved


def test_the_unit_of_time_does_not_change_the_bounds(shared_data: Path) -> None:
    """GNMT in s, ms, µs and ns has the same bounds, none of them false."""
    graph = read_graph(read_source(str(shared_data / "pipedream" / "gnmt.txt")))
    found = []
    for unit, exponent in (("s", -3), ("ms", 0), ("us", 3), ("ns", 6)):
        other = with_costs(graph, lambda work, factor=Fraction(10) ** exponent: work * factor, unit=unit)
        instance = Instance.build(other, Machine.uniform(8, load_device()))
        known = slice_partition(instance, SearchLimits(2000))
        values = {}
        for name in ("bottleneck", "bottleneck-guess", "node-convex", "exact-mip"):
            limits = BoundLimits(known.bottleneck, known.partition, deadline=Deadline(60))
            result = bound_entry(name).load()(instance, limits)
            assert result.lower is not None
            assert result.solved, name
            assert result.lower.value <= known.bottleneck
            values[name] = result.lower.value
        found.append(values)
    assert found[1:] == found[:-1]
