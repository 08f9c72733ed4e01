"""Branch and bound by weights that no stage can exceed: never above the optimum, and no forged weights pass."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from flow_proofs import claim_of
from seeds import sampled
from share_cases import any_shares, best_shares, drawn_weights
from weight_searches import Searched, searched

from mtpp.checker.bounds.branch_and_bound import check_branch_and_bound
from mtpp.checker.claim import Verdict
from mtpp.host.deadline import Deadline
from mtpp.inference.certificate import LowerBound
from mtpp.solvers.bounds.branch_and_bound.bound import bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.downsets import stage_shares
from mtpp.solvers.downsets.stage_shares import StageShares


@pytest.fixture(autouse=True)
def _any_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use weights however few stages they fill."""
    monkeypatch.setattr(stage_shares, "_SLACK", 1e9)


def run(case: Searched, upper: int, shares: tuple[StageShares, ...]) -> BoundResult:
    """Run the tree to its end."""
    return bound(case.instance, BoundLimits(upper, shares=shares, deadline=Deadline(10)))


def checked(case: Searched, lower: LowerBound, **changes: Any) -> Verdict:
    """Check a proof as read from a document."""
    proof: dict[str, Any] = {**json.loads(json.dumps(lower.proof)), **changes}
    if case.reduced.rounds:
        proof["merges"] = case.reduced.record()
    return check_branch_and_bound(claim_of(case.graph, case.system, case.k, [], lower.value, proof))


def proof_holds(case: Searched, lower: LowerBound) -> None:
    """Check that a bound is at most the optimum and its proof passes."""
    assert lower.value <= case.optimum, case.seed
    passed, why = checked(case, lower)
    assert passed, (case.seed, why)


@pytest.mark.parametrize("seeds", sampled([range(s, s + 25) for s in range(0, 1000, 25)], 3), ids=str)
def test_bounds_by_weights(seeds: range) -> None:
    """Around the optimum, with the best weights and any, bounds do not exceed it and are about as good as without."""
    proven = 0
    for case in searched(seeds):
        pick = random.Random(case.seed)
        for upper in {case.optimum, case.optimum + pick.randint(1, 9)}:
            known = (any_shares(case, upper - 1, drawn_weights(case, pick)), *best_shares(case, upper - 1))
            for shares in known:
                lower, plain = run(case, upper, (shares,)).lower, run(case, upper, ()).lower
                assert (lower is None) == (plain is None)
                if lower is None or plain is None:
                    continue
                assert lower.value >= 0.999 * min(plain.value, case.optimum)  # trees may get stuck at other cases
                proof_holds(case, lower)
                proven += 1
    assert proven > 10


@pytest.mark.parametrize("seeds", sampled([range(s, s + 40) for s in range(0, 1600, 40)], 2), ids=str)
def test_weights_that_do_not_hold(seeds: range) -> None:
    """With smaller capacities, trees refute cutoffs above the optimum: no such proof passes."""
    forged = 0
    for case in searched(seeds):
        pick = random.Random(case.seed)
        upper = case.optimum + pick.randint(1, 9)
        shares = any_shares(case, upper - 1, drawn_weights(case, pick), less=pick.randint(1, 20))
        lower = run(case, upper, (shares,)).lower
        if lower is not None and lower.value > case.optimum:
            passed, why = checked(case, lower)
            assert not passed, case.seed
            assert "may hold" in why
            forged += 1
    assert forged > 1


def test_weights_that_are_too_few_for_the_limit_are_left_alone() -> None:
    """Weights of a lower limit than the one that is looked at are no rule."""
    case = next(one for one in searched(range(20, 60)) if one.optimum > 2 and one.instance.op_count > 4)
    shares = any_shares(case, case.optimum - 2, case.instance.work + 1)
    lower = run(case, case.optimum, (shares,)).lower
    assert lower is not None
    assert "weights" not in lower.proof
