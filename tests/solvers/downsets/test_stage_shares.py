"""The rule of weights: searches come to the same with it, their proofs pass, and weights that do not hold never do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from downset_proofs import downset_proof
from seeds import sampled
from share_cases import any_shares, best_shares, checked, drawn_weights
from weight_searches import Searched, searched

from mtpp.checker.claim import BoundClaim
from mtpp.checker.merged import MergedGraph
from mtpp.solvers.downsets import stage_shares
from mtpp.solvers.downsets.enumeration import DownsetProblem, DownsetSearch, downset_problem
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.recheck.claim import DownsetClaim
from mtpp.solvers.recheck.compiled import Unwatched, search_compiled
from mtpp.solvers.recheck.plain import search_plain

MEMORY = 1 << 22


@pytest.fixture(autouse=True)
def _any_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use weights however few stages they fill."""
    monkeypatch.setattr(stage_shares, "_SLACK", 1e9)


def run(problem: DownsetProblem, limit: int) -> DownsetSearch:
    """Search to the end, a few steps at a time."""
    search = problem.search(limit, MEMORY)
    search.advance(1 << 40, 5, lambda: False)
    return search


def limits_of(case: Searched, pick: random.Random) -> list[int]:
    """Return limits around the optimum."""
    near = {case.optimum - 1, case.optimum, case.optimum + pick.randint(1, 9), case.optimum * 9 // 10}
    return sorted(limit for limit in near if 0 <= limit < case.instance.most_ticks)


def cases(seeds: range) -> Iterator[tuple[Searched, random.Random, int, DownsetProblem, StageShares]]:
    """Return problems with limits, and weights that hold at them."""
    for case in searched(seeds):
        pick = random.Random(case.seed)
        problem = downset_problem(case.instance)
        for limit in limits_of(case, pick):
            known = [any_shares(case, limit + pick.randint(0, 5), drawn_weights(case, pick))]
            for shares in (*known, *best_shares(case, limit)):
                yield case, pick, limit, problem, shares


@pytest.mark.parametrize("seeds", sampled([range(s, s + 40) for s in range(0, 2000, 40)], 3), ids=str)
def test_the_same_answers_with_weights_and_without(seeds: range) -> None:
    """A limit is refuted if and only if it is below the optimum; proofs pass; no downset comes in by the rule."""
    for case, _, limit, problem, shares in cases(seeds):
        without, search = run(problem, limit), run(replace(problem, shares=(shares,)), limit)
        assert (search.state == "ended") == (limit < case.optimum), (case.seed, limit)
        assert search.state == without.state
        if search.state == "ended":
            assert search.count <= without.count
            proof = search.proof(case.reduced)
            assert proof["rules"][-1] in ("weights", "whole")
            passed, why = checked(case, proof)
            assert passed, (case.seed, limit, why)


def test_downsets_left_out() -> None:
    """Fewer downsets are reached where weights are a rule."""
    fewer = 0
    for case, _, limit, problem, shares in cases(range(40)):
        if limit < case.optimum:
            fewer += run(replace(problem, shares=(shares,)), limit).count < run(problem, limit).count
    assert fewer > 1


@pytest.mark.parametrize("seeds", sampled([range(s, s + 40) for s in range(0, 1000, 40)], 2), ids=str)
def test_all_ways_to_search_agree_with_the_definition(seeds: range) -> None:
    """Plain Python, the kernel that checks and the one that searches come to what all downsets and pairs come to."""
    for case, pick, limit, problem, shares in cases(seeds):
        if case.reduced.rounds:
            continue
        search = run(replace(problem, shares=(shares,)), limit)
        if search.state != "ended" or search.whole:
            continue
        proof = search.proof(case.reduced)
        due = downset_proof(
            case.graph, case.system, case.k, limit + 1, proof["rules"], None, (shares.weights.tolist(), shares.capacity)
        )
        assert due is not None
        figures = due["downsets"], due["pairs"], due["digest"]
        assert figures == (proof["downsets"], proof["pairs"], proof["digest"]), (case.seed, limit)

        def both(
            claim: BoundClaim,
            merged: MergedGraph,
            figures: tuple[Any, ...] = figures,
            steps: int = pick.choice((1, 3, 1000)),
        ) -> tuple[bool, str]:
            terms = merged, claim.graph, claim.system, claim.k, claim.value, claim.proof["rules"]
            again = DownsetClaim.of(*terms).with_shares(merged, claim.proof["weights"])
            assert figures == search_plain(again, None)[:3]  # type: ignore[index]
            return figures == search_compiled(again, 10**9, 10**9, Unwatched(), steps)[:3], "the kernel"

        assert checked(case, proof, both)[0], (case.seed, limit)


@pytest.mark.parametrize("seeds", sampled([range(s, s + 40) for s in range(0, 4000, 40)], 3), ids=str)
def test_weights_that_do_not_hold(seeds: range) -> None:
    """With smaller capacities or larger weights, searches refute limits from the optimum on: no such proof passes."""
    forged = 0
    for case in searched(seeds):
        pick = random.Random(case.seed)
        for limit in limits_of(case, pick):
            shares = any_shares(case, limit, drawn_weights(case, pick), less=pick.randint(1, 20))
            if pick.random() < 0.3:
                weights = shares.weights.copy()
                weights[pick.randrange(len(weights))] += pick.randint(1, 9)
                honest = any_shares(case, limit, shares.weights)
                shares = any_shares(case, limit, weights)
                shares = replace(shares, capacity=min(shares.capacity, honest.capacity))
            search = run(replace(downset_problem(case.instance), shares=(shares,)), limit)
            if search.state != "ended":
                continue
            proof = search.proof(case.reduced)
            proof["weights"]["capacity"] = shares.capacity
            passed, why = checked(case, proof)
            if limit >= case.optimum:
                assert passed is False, (case.seed, limit)
                assert "holds more" in why or "may hold" in why
                assert checked(case, proof, None)[0] is False
                forged += 1
    assert forged > 1


def test_weights_of_a_proof_and_its_rules_go_together() -> None:
    """Weights without the rule, the rule without weights, and weights of ops that are none are refused."""
    case = next(one for one in searched(range(20, 60)) if one.optimum > 2 and one.instance.op_count > 4)
    limit = case.optimum - 1
    shares = any_shares(case, limit, np.ones(case.instance.op_count, dtype=np.int64))
    proof = run(replace(downset_problem(case.instance), shares=(shares,)), limit).proof(case.reduced)
    assert checked(case, proof)[0]
    without_rule = {**proof, "rules": [rule for rule in proof["rules"] if rule != "weights"]}
    assert checked(case, without_rule) == (False, "downset: there are weights, and no rule goes by them")
    without = {key: value for key, value in proof.items() if key != "weights"}
    assert checked(case, without) == (False, "downset: there are no weights for the rule 'weights'")
    unknown = {**proof, "weights": {**proof["weights"], "weights": [[99, 1]]}}
    assert checked(case, unknown) == (False, "downset: there is no op 99")
    higher = {**proof, "cutoff": case.optimum + 1}
    assert checked(case, higher)[0] is False
