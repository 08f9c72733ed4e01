"""Relaxed searches, the loop around them and the sets that it leaves out, against brute force and the verifier."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import oracles
import pytest
from flow_proofs import RelaxedProblem, claim_of, grouped, random_problem, relaxed_problem
from graph_strategies import LINK

from mtpp.checker.checks import check_bound
from mtpp.checker.claim import BoundClaim
from mtpp.checker.merged import MergedGraph
from mtpp.checker.report import Check, Outcome, Tier
from mtpp.inference.certificate import LowerBound
from mtpp.inference.charges import charges
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import bottleneck
from mtpp.inference.relaxation import relax
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.convex_weights import search_rule
from mtpp.solvers.bounds.convex_weights.search_rule import SearchRules
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.relaxation import bound
from mtpp.solvers.downsets import stage_shares
from mtpp.solvers.recheck.downset import recheck_downset
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.relaxation import candidates, relaxed_search
from mtpp.solvers.relaxation import loop as loop_module
from mtpp.solvers.relaxation.candidates import Candidates
from mtpp.solvers.relaxation.loop import RelaxationLoop
from mtpp.solvers.relaxation.relaxed_search import RelaxedSearch
from mtpp.solvers.threads import Threads


def _search(claim: BoundClaim, merged: MergedGraph) -> Outcome:
    return recheck_downset(merged, claim.graph, claim.system, claim.k, claim.value, claim.proof)


def _checked(problem: RelaxedProblem | tuple[Any, ...], lower: LowerBound, optimum: int) -> Check:
    if isinstance(problem, RelaxedProblem):
        names = problem.graph.op_names
        groups = [[names[v] for v in group] for group in problem.groups]
        problem = (problem.graph, problem.system, problem.k, groups)
    graph, system, k, together = problem
    claim = claim_of(graph, system, k, together, lower.value, json.loads(json.dumps(lower.proof)))
    return check_bound(claim, lower.method, Tier.ENUMERATED, optimum, _search)[0]


def _named(lower: LowerBound, said: dict[str, Any]) -> LowerBound:
    """Return a bound whose record has the lowered transfers by name: searches lower none themselves."""
    return LowerBound(lower.value, lower.method, lower.tier, {**lower.proof, "relaxed": said})


@pytest.mark.parametrize("part", range(4))
def test_relaxed_optima_are_bounds_with_proofs(part: int) -> None:
    """Whatever is left out, the search ends at the relaxed optimum, no more than the optimum, and proves it."""
    proven = 0
    for seed in range(part, 240, 4):
        problem = relaxed_problem(seed)
        optimum = oracles.brute_force_optimum(problem.graph, problem.system, problem.k, problem.groups)
        if optimum >= oracles.NEVER:
            continue
        relaxation = problem.relaxation
        search = RelaxedSearch(replace(relaxation, lowered={}), 0, optimum, 2**20, lambda: False)
        search.run(0, optimum, 10**6)
        assert search.closed
        assert search.lower <= optimum, seed
        if search.partition is not None:
            assert bottleneck(relaxation.instance, search.partition) == search.cost == search.lower
        if search.bound is None:
            continue
        lower = _named(search.bound, problem.said)
        check = _checked(problem, lower, optimum)
        assert check.passed, (seed, check.detail)
        proven += bool(problem.said["left_out"])
        raised = LowerBound(
            lower.value + 1, lower.method, lower.tier, {**lower.proof, "cutoff": lower.proof["cutoff"] + 1}
        )
        assert not _checked(problem, raised, lower.value + 1).passed or lower.value < optimum
    assert proven > 15


def test_relaxed_searches_by_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun again with weights on the way, they end at the same optimum, and their proofs pass."""
    monkeypatch.setattr(relaxed_search, "_WEIGHED_AFTER", 0)
    monkeypatch.setattr(search_rule, "_ORDER_STEPS", 0)
    monkeypatch.setattr(stage_shares, "_SLACK", 1e9)
    rules = SearchRules(2**22)
    proven = 0
    for seed in range(120):
        problem = relaxed_problem(seed)
        optimum = oracles.brute_force_optimum(problem.graph, problem.system, problem.k, problem.groups)
        if optimum >= oracles.NEVER:
            continue
        relaxation = replace(problem.relaxation, lowered={})
        plain = RelaxedSearch(relaxation, 0, optimum, 2**20, lambda: False)
        plain.run(0, optimum, 10**6)
        search = RelaxedSearch(relaxation, 0, optimum, 2**20, lambda: False, rules=rules)
        for _ in range(1000):
            search.run(0, optimum, random.Random(seed).randint(3, 9))
        assert search.closed
        assert search.lower == plain.lower, seed
        if search.bound is not None and "weights" in search.bound.proof:
            check = _checked(problem, _named(search.bound, problem.said), optimum)
            assert check.passed, (seed, check.detail)
            proven += 1
    assert proven > 3


@pytest.mark.parametrize("part", range(4))
def test_the_loop_keeps_between_bound_and_optimum(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small graphs with memories and groups, where any op may be left out, bounds are proven and partitions hold."""
    monkeypatch.setattr(candidates, "_LEVELS", ((1.0, 0.0), (0.5, 0.0), (0.2, 0.0)))
    monkeypatch.setattr(candidates, "_MOST_WORK", 1.0)
    raised = 0
    for seed in range(part, 160, 4):
        graph, system, k, together = random_problem(seed, op_count=random.Random(seed).randint(4, 7))
        instance, groups = grouped(graph, system, k, together)
        optimum = oracles.brute_force_optimum(graph, system, k, groups)
        if optimum >= oracles.NEVER:
            continue
        reduced = reduce_instance(instance)
        known = max(optimum, oracles.bottleneck(graph, system, [0] * graph.op_count, k))
        result = bound(reduced.instance, BoundLimits(min(known, oracles.NEVER - 1), reduced=reduced))
        if result.partition is not None:
            assert optimum <= bottleneck(reduced.instance, result.partition) < known
        if result.lower is None:
            continue
        raised += 1
        assert result.lower.value <= optimum, seed
        check = _checked((graph, system, k, together), result.lower, optimum)
        assert check.passed, (seed, check.detail)
    assert raised > 3


def test_a_gap_of_one_tick_ends_the_search() -> None:
    """Where the memory suffices for nothing more, no search is begun again and again."""
    for seed in range(300):
        problem = relaxed_problem(seed)
        relaxation, most = replace(problem.relaxation, lowered={}), problem.relaxation.original.most_ticks + 1
        search = RelaxedSearch(relaxation, 0, most, 40, lambda: False)
        search.run(0, most, 10**9)
        before = search.steps
        search.run(search.lower, search.cost, 10**9)
        assert search.steps - before < 10**6


@pytest.fixture
def anything_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ops of small graphs be left out, in one set."""
    monkeypatch.setattr(candidates, "_LEVELS", ((0.5, 0.0),))
    monkeypatch.setattr(candidates, "_MOST_WORK", 1.0)


def small_instances(seeds: range) -> Iterator[tuple[Instance, int]]:
    """Yield instances with their optima."""
    for seed in seeds:
        graph, system, k, together = random_problem(seed, op_count=random.Random(seed).randint(5, 7))
        instance, groups = grouped(graph, system, k, together)
        optimum = oracles.brute_force_optimum(graph, system, k, groups)
        if k > 1 and optimum < oracles.NEVER:
            yield instance, optimum


@pytest.mark.usefixtures("anything_goes")
def test_a_loop_that_was_cut_short_goes_on() -> None:
    """Wherever it was interrupted; only what comes as far as without interruption has finished."""
    resumed = 0
    for instance, _ in small_instances(range(40)):
        upper = instance.most_ticks

        def loop_of(looks: int, instance: Instance = instance, upper: int = upper) -> RelaxationLoop:
            left = iter(range(looks))
            limits = BoundLimits(upper, interrupted=lambda: next(left, None) is None)
            return RelaxationLoop(ReducedInstance(instance), 0, upper, limits, threads, enough=upper)

        with Threads(1) as threads:
            whole = loop_of(10**6)
            whole.run()
            for looks in range(2, 30, 3):
                loop = loop_of(looks)
                loop.run()
                if loop.finished or loop.lower >= loop.upper:
                    continue
                resumed += 1
                loop.renew(0, loop.upper, BoundLimits(upper), threads, enough=upper)
                loop.run()
                assert loop.lower >= whole.lower or not loop.finished
                assert loop.upper <= whole.upper or not loop.finished
    assert resumed > 50


@pytest.mark.usefixtures("anything_goes")
def test_a_cutoff_above_the_optimum_leaves_nothing_to_resume() -> None:
    """Where the loop's own partition meets its bound, the cutoff is of no interest any more."""
    met = 0
    for instance, optimum in small_instances(range(40)):
        result = bound(instance, BoundLimits(min(2 * optimum + 1, instance.most_ticks)))
        if result.partition is None or result.lower is None:
            continue
        if bottleneck(instance, result.partition) == result.lower.value == optimum:
            assert result.solved
            met += 1
        assert result.resume is None or not result.solved
    assert met > 5


def open_loops(seeds: range) -> Iterator[RelaxationLoop]:
    """Yield loops on small instances from which something can be left out, as they begin."""
    for instance, _ in small_instances(seeds):
        upper = instance.most_ticks
        with Threads(1) as threads:
            loop = RelaxationLoop(ReducedInstance(instance), 0, upper, BoundLimits(upper), threads, enough=upper)
            if not loop.finished:
                yield loop


class _Undecided(RelaxedSearch):
    """A search that makes its steps and is never decided."""

    def run(self, lower: int, upper: int, steps: int) -> None:
        self.steps += steps


@pytest.mark.usefixtures("anything_goes")
def test_searches_that_are_not_decided_end_the_loop_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing moves for some rounds, others may go on: the loop returns, without having finished."""
    monkeypatch.setattr(loop_module, "RelaxedSearch", _Undecided)
    ended = 0
    for loop in open_loops(range(30)):
        for _ in range(3):
            loop.run()
            assert not loop.finished or loop.lower >= loop.upper
        assert loop.steps < 2**34
        ended += 1
    assert ended > 5


@pytest.mark.usefixtures("anything_goes")
def test_sets_that_leave_too_many_paths_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tried once; without any other the loop has finished."""
    tried = 0

    def fail(*_: object) -> None:
        nonlocal tried
        tried += 1
        raise ValueError("left-out ops lead between too many others")

    monkeypatch.setattr(loop_module, "relax", fail)
    loops = 0
    for loop in open_loops(range(30)):
        sets, tried = len(loop._chains), 0
        loop.run()
        assert loop.finished or loop.lower >= loop.upper
        assert tried <= sets
        loops += 1
    assert loops > 5


LAYERS = 8


def _layers() -> Instance:
    """Return a chain of layers; each reads the cosine and the sine of a table that is made for it from nothing.

    They may be anywhere before their layer: without them there are few downsets.
    """
    ops, tensors = [], []
    for i in range(LAYERS):
        ops += [Op(f"table{i}", 2), Op(f"cos{i}", 1), Op(f"sin{i}", 1), Op(f"layer{i}", 1000)]
        tensors += [
            Tensor(f"t{i}", f"table{i}", (f"cos{i}", f"sin{i}"), None, 9),
            Tensor(f"c{i}", f"cos{i}", (f"layer{i}",), None, 9),
            Tensor(f"s{i}", f"sin{i}", (f"layer{i}",), None, 9),
        ]
        if i:
            tensors.append(Tensor(f"x{i}", f"layer{i - 1}", (f"layer{i}",), None, 50))
    graph = CostGraph.build(name="layers", time_unit="ps", ops=ops, tensors=tensors)
    return Instance.build(graph, Machine.uniform(4, LINK))


def test_trees_that_others_pay_for_are_left_out_at_no_loss() -> None:
    """Tables, cosines and sines go, but those that come before all else, and the relaxed optimum is that of all ops."""
    instance = _layers()
    candidates = Candidates.of(instance)
    found = next(candidates.levels(2500, lambda: False))
    left_out = [name for name, out in zip(instance.op_names, found.tolist(), strict=True) if out]
    assert left_out == [f"{kind}{i}" for i in range(1, LAYERS) for kind in ("table", "cos", "sin")]
    assert candidates.lost_work(found) == 0
    relaxation = relax(instance, found)
    assert relaxation.instance.work.tolist() == [2, 1, 1, 1000, *[1004] * (LAYERS - 1)]
    search = RelaxedSearch(relaxation, 0, 3000, 2**20, lambda: False)
    search.run(0, 3000, 10**6)
    assert search.lower == 2 * 1004 + 2 * 50  # two layers, with what comes in and goes out


def test_a_tree_is_charged_on_the_reader_of_its_dearest_tensor() -> None:
    """One that stays before one that does not, and no more than the tensor costs."""
    ops = [Op("a", 7), Op("b", 3), Op("c", 1), Op("d", 1)]
    tensors = [
        Tensor("ab", "a", ("b", "c"), None, 5),
        Tensor("ad", "a", ("d",), None, 4),
        Tensor("bd", "b", ("d",), None, 2),
    ]
    graph = CostGraph.build(name="tree", time_unit="ps", ops=ops, tensors=tensors)
    instance = Instance.build(graph, Machine.uniform(2, LINK))
    charged = charges(instance, np.array([True, True, False, False]), instance.transfer)
    assert charged.reader.tolist() == [2, 3, -1, -1]
    assert charged.amount.tolist() == [5, 2, 0, 0]
    assert charged.on_op.tolist() == [0, 0, 5, 2]
    assert charged.spare.tolist() == [0, 4, 0]
    charged = charges(instance, np.array([True, True, True, False]), instance.transfer)
    assert charged.reader.tolist() == [1, 3, -1, -1]  # nobody reads from c, so nothing can be charged on it
    assert charged.amount.tolist() == [5, 2, 0, 0]
    assert charged.on_op.tolist() == [0, 5, 0, 2]
