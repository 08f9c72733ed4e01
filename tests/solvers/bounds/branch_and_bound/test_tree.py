"""The tree of cases against brute force: whatever ends it, what it says is proven."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import oracles
import pytest
from flow_proofs import claim_of, grouped, random_problem
from graph_strategies import LINK, random_graph

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.bound import bound
from mtpp.solvers.bounds.branch_and_bound.program import SCALE, StageProgram
from mtpp.solvers.bounds.branch_and_bound.tree import BranchAndBound
from mtpp.solvers.bounds.configuration.stage_weights import stage_weights
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.certify.cell_state import CellLimits
from mtpp.solvers.certify.cell_work import certify


class Looks:
    """An interruption after so many looks."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self) -> bool:
        """Count down."""
        self.left -= 1
        return self.left < 0


def check(seed: int, *, op_count: int | None = None) -> tuple[bool, bool]:
    """Work at a small problem in turns, each proof checked; return whether it was interrupted, and proven optimal."""
    pick = random.Random(seed)
    graph, system, k, together = random_problem(seed, op_count=op_count)
    instance, groups = grouped(graph, system, k, together)
    optimum = oracles.brute_force_optimum(graph, system, k, groups)
    if optimum >= oracles.NEVER:
        return False, False
    upper = optimum + pick.choice([0, 0, 1, 7, 50])
    limits = BoundLimits(upper, interrupted=Looks(pick.choice([0, 1, 2, 5, 100])))
    result = bound(instance, limits)
    interrupted = result.resume is not None
    best = verified(result, graph, system, k, together, optimum)
    while result.resume is not None:
        result = result.resume(replace(limits, interrupted=Looks(pick.choice([1, 3, 9]))))
        best = max(best, verified(result, graph, system, k, together, optimum))
    assert result.solved
    if upper > optimum and system.fast_memory_bytes is None:
        assert result.partition is not None
        assert bottleneck(instance, result.partition) == optimum
    if system.fast_memory_bytes is None:
        assert best == optimum, seed
    return interrupted, best == optimum


def verified(result: BoundResult, graph, system, k, together, optimum) -> int:  # type: ignore[no-untyped-def]
    """Return the bound, which the verifier takes and which is at most the optimum; 0 for none."""
    if result.lower is None:
        return 0
    assert result.lower.tier == "exact"
    assert result.lower.value <= optimum
    proof = json.loads(json.dumps(dict(result.lower.proof)))
    claim = claim_of(graph, system, k, together, result.lower.value, proof)
    passed, detail = CHECKERS["branch-and-bound"](claim)
    assert passed, detail
    return result.lower.value


@pytest.mark.slow
def test_small_problems_are_proven_optimal() -> None:
    """In turns of any length, with memories and groups; without a fast memory always, with one mostly."""
    for seeds in (range(150), range(1000, 1125)):
        results = [check(seed) for seed in seeds]
        assert sum(interrupted for interrupted, _ in results) > 20
        assert sum(optimal for _, optimal in results) > 80 * len(seeds) // 150
    for seed in range(15):
        check(seed, op_count=8)


def with_digits(graph: CostGraph, pick: random.Random) -> CostGraph:
    """Return the graph with costs of as many digits as picoseconds have."""
    factor = 10 ** pick.choice([6, 9])
    work = [int(ticks) * factor + pick.randrange(factor) for ticks in graph.work]
    transfer = [None if ticks is None else int(ticks) * factor + pick.randrange(factor) for ticks in graph.transfer]
    return replace(graph, work=tuple(work), transfer=tuple(transfer))


@pytest.mark.parametrize("part", range(4))
def test_costs_of_many_digits_are_proven_to_the_last(part: int) -> None:
    """From the optimum as cutoff, and from some ticks above it, with the partition found on the way."""
    proven = 0
    for seed in range(part * 12, part * 12 + 12):
        pick = random.Random(seed)
        graph, system, k, together = random_problem(seed, op_count=pick.choice([5, 6]))
        if system.fast_memory_bytes is not None:
            continue
        graph = with_digits(graph, pick)
        instance, groups = grouped(graph, system, k, together)
        optimum = oracles.brute_force_optimum(graph, system, k, groups)
        for upper in (optimum, optimum + pick.choice([1, 10**5, 3 * 10**9])):
            result = bound(instance, BoundLimits(upper))
            assert verified(result, graph, system, k, together, optimum) == optimum, seed
            proven += 1
    assert proven > 8


def test_one_op_of_any_size() -> None:
    """Costs far above the cutoff are no coefficients that HiGHS refuses."""
    graph = CostGraph.build(name="one", time_unit="s", ops=[Op("a", 10**5)], tensors=[])
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    for upper in (1, 10**9, 10**17 - 1, 10**17):
        lower = bound(instance, BoundLimits(upper)).lower
        assert lower is not None
        assert (lower.value, lower.tier) == (upper, "exact")


def test_cutoffs_of_any_size() -> None:
    """A cutoff near the largest number of ticks is no overflow."""
    graph, system, k, together = random_problem(3)
    instance, groups = grouped(graph, system, k, together)
    result = bound(instance, BoundLimits(2**62 - 1))
    assert verified(result, graph, system, k, together, oracles.brute_force_optimum(graph, system, k, groups)) > 0


def test_a_programme_that_fails_ends_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer of HiGHS there is nothing to go on with, and nothing is called solved."""
    graph, system, k, together = random_problem(3)
    instance, _ = grouped(graph, system, k, together)
    monkeypatch.setattr(StageProgram, "solve", lambda self, known, time_limit_s: None)
    result = bound(instance, BoundLimits(10**6))
    assert (result.lower, result.solved, result.resume) == (None, False, None)


@pytest.mark.parametrize("seed", range(30))
def test_the_programme_costs_what_stages_do(seed: int) -> None:
    """With the stage of every op fixed its optimum is the bottleneck, without overflow; else less, or the optimum."""
    graph, system, k, together = random_problem(seed)
    instance, _ = grouped(graph, replace(system, fast_memory_bytes=None, memory_bytes=None), k, together)
    pick = random.Random(seed)
    count = min(k, instance.op_count)
    stages = np.zeros(instance.op_count, dtype=np.int32)
    for op in instance.order.tolist():
        before = [int(stages[u]) for u, v in zip(*instance.edges, strict=True) if v == op]
        stages[op] = pick.randint(max(before, default=0), count - 1)
    partition = Partition.from_stages(instance, stages)
    blocks = Blocks.of(instance, stage_weights(instance)[0], (1,) * count)
    cost = max(1, stage_costs(instance, partition).bottleneck)
    known = blocks.known_first(instance.most_ticks + 1)
    assert known is not None
    program = StageProgram(blocks, known, cost)
    first = program.solve(known, 60)
    assert first is not None
    assert first.value <= SCALE * (1 + 1e-9)
    for place, op in enumerate(instance.order.tolist()):
        for b in range(count - 1):
            more = known.with_one(place, b, inside=bool(stages[op] <= b), reach=blocks.reach)
            assert more is not None
            known = more
    fixed = program.solve(known, 60)
    assert fixed is not None
    assert fixed.value == pytest.approx(SCALE * stage_costs(instance, partition).bottleneck / cost, abs=1e-6)


def test_a_long_proof_is_not_claimed() -> None:
    """What cannot be shown is the solver's word, and the same number."""
    graph, system, k, together = random_problem(3)
    instance, groups = grouped(graph, system, k, together)
    optimum = oracles.brute_force_optimum(graph, system, k, groups)
    shown = bound(instance, BoundLimits(optimum)).lower
    kept = bound(instance, BoundLimits(optimum, proof_bytes=0)).lower
    assert shown is not None
    assert kept is not None
    assert (shown.tier, kept.tier) == ("exact", "solver")
    assert kept.value == shown.value
    assert "nodes" not in kept.proof


def test_what_is_proven_is_told_before_its_proof_is_too_long() -> None:
    """A tree ends with a bound that can be checked; when it goes on it comes to the optimum."""
    graph = random_graph(5, 24)
    instance = Instance.build(graph, Machine.uniform(4, LINK))
    known = certify(instance, CellLimits(None, bounds=("downset",)))
    optimum = known.proven.value
    assert known.upper == optimum
    whole = bound(instance, BoundLimits(optimum)).lower
    assert whole is not None
    assert whole.value == optimum
    limits = BoundLimits(optimum, known.partition, proof_bytes=len(json.dumps(whole.proof)) // 2)
    part = bound(instance, limits)
    assert 0 < verified(part, graph, LINK, 4, [], optimum) < optimum
    assert part.resume is not None
    last = part.resume(limits)
    assert last.solved
    assert last.lower is not None
    assert (last.lower.value, last.lower.tier) == (optimum, "solver")


def test_nothing_is_proven_before_the_first_programme() -> None:
    """Without time there is no bound, and the tree says so."""
    graph, system, k, together = random_problem(3)
    instance, _ = grouped(graph, system, k, together)
    blocks = Blocks.of(instance, stage_weights(instance)[0], (1,) * min(k, instance.op_count))
    tree = BranchAndBound(blocks, blocks.most(10**6), 10**6)
    assert (tree.begun, tree.finished, tree.most_refuted) == (False, False, -1)


def test_large_models_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a size even the first programme takes too long: that is said."""
    graph, system, k, together = random_problem(3)
    instance, _ = grouped(graph, system, k, together)
    assert isinstance(instance, Instance)
    monkeypatch.setattr("mtpp.solvers.bounds.branch_and_bound.bound._MOST_CELLS", 1)
    assert "ops times stages" in bound(instance, BoundLimits(10**6)).left_out
