"""What a report says of the ratio and of the trust in the lower bound."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from graph_strategies import LINK, chain
from plan_documents import plan_document

from mtpp.errors import InputError
from mtpp.verify import Check, Report, meets_tier, verify_plan


@pytest.fixture
def plan() -> dict[str, Any]:
    """Return a correct plan of a chain in two stages: bottleneck 6, proven bound 4."""
    correct: dict[str, Any] = plan_document(chain([4, 1], [2]), LINK, 2, [0, 1], embed=True)
    return correct


def failures(report: Report) -> set[str]:
    """Return the names of the failed checks."""
    return {check.name for check in report.checks if check.passed is False}


def bound_check(report: Report) -> Check:
    """Return the check of the lower bound."""
    return next(check for check in report.checks if check.name == "lower bound")


def test_report_document_is_json(plan: dict[str, Any]) -> None:
    """The report's document has the stable keys and survives JSON."""
    document = json.loads(json.dumps(verify_plan(plan, None).to_document()))
    assert list(document) == ["format", "version", "valid", "tier", "ratio", "checks"]
    assert document["format"] == "mtpp-verification"
    assert document["valid"] is True
    assert list(document["checks"][0]) == ["name", "passed", "detail"]


def test_zero_bound_has_no_ratio() -> None:
    """A bound of zero gives ratio 1 for a free plan and none for any other."""
    free = plan_document(chain([0, 0], [0]), LINK, 2, [0, 1], embed=True)
    assert free["ratio"] == 1
    assert verify_plan(free, None).passed
    linked = plan_document(chain([0, 0], [3]), LINK, 2, [0, 1], embed=True)
    assert linked["ratio"] is None
    assert verify_plan(linked, None).passed
    linked["ratio"] = Decimal(1)
    assert failures(verify_plan(linked, None)) == {"ratio"}


def test_ratio_is_the_correctly_rounded_quotient() -> None:
    """A ratio that is one unit in the last place off is noticed, also for numbers no float holds."""
    graph = chain([2**53 + 1, 3], [10**15])
    plan = plan_document(graph, LINK, 2, [0, 1], embed=True)
    assert verify_plan(plan, None).passed
    plan["ratio"] = Decimal(repr(float(plan["ratio"]) * (1 + 2**-52)))
    assert failures(verify_plan(plan, None)) == {"ratio"}


@pytest.mark.parametrize("tier", ["enumerated", "solver"])
def test_weaker_tiers_are_compared_but_not_proven(tier: str, plan: dict[str, Any]) -> None:
    """A bound of a weaker tier passes as not checked, unless it contradicts the bottleneck."""
    plan["lower_bound"] |= {"tier": tier, "method": "downset", "proof": {"anything": [1]}}
    report = verify_plan(plan, None)
    assert report.passed
    assert report.tier == tier
    assert bound_check(report).passed is None
    assert ("--deep" in bound_check(report).detail) == (tier == "enumerated")
    plan["lower_bound"]["value"] = 7
    plan["ratio"] = Decimal(repr(6 / 7))
    assert failures(verify_plan(plan, None)) == {"bound order"}


def test_tier_requirements_are_ordered(plan: dict[str, Any]) -> None:
    """Exact meets every requirement, enumerated its own once re-run, solver only its own, a failed bound none."""
    required = ("exact", "enumerated", "solver")
    exact = verify_plan(plan, None)
    assert [meets_tier(exact, tier) for tier in required] == [True, True, True]
    plan["lower_bound"] |= {"tier": "enumerated", "method": "downset", "proof": {}}
    trusted = verify_plan(plan, None)
    assert [meets_tier(trusted, tier) for tier in required] == [False, False, True]
    rerun = trusted.with_deep_recheck(True, "4 again")
    assert [meets_tier(rerun, tier) for tier in required] == [False, True, True]
    assert bound_check(rerun).passed is True
    refuted = trusted.with_deep_recheck(False, "only 3")
    assert not refuted.passed
    assert [meets_tier(refuted, tier) for tier in required] == [False, False, False]
    plan["lower_bound"] |= {"tier": "solver"}
    solver = verify_plan(plan, None)
    assert [meets_tier(solver, tier) for tier in required] == [False, False, True]
    with pytest.raises(InputError, match="unknown tier"):
        meets_tier(exact, "gold")
