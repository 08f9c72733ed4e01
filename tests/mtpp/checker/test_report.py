"""What a report says of the ratio and of the trust in the lower bound."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from graph_strategies import LINK, chain
from plan_documents import plan_document

from mtpp.checker.facts import quantity
from mtpp.checker.plan import Check, Report, meets_tier, verify_plan
from mtpp.checker.report import Verdict
from mtpp.errors import InputError


@pytest.fixture
def plan() -> dict[str, Any]:
    """Return a correct plan of a chain in two stages: bottleneck 6, proven bound 4."""
    correct: dict[str, Any] = plan_document(chain([4, 1], [2]), LINK, 2, [0, 1], embed=True)
    return correct


def bound_check(report: Report) -> Check:
    """Return the check of the lower bound."""
    return next(check for check in report.checks if check.name == "lower bound")


def test_report_document_is_json(plan: dict[str, Any]) -> None:
    """The report's document has the stable keys and survives JSON."""
    document = json.loads(json.dumps(verify_plan(plan, None).to_document()))
    assert list(document) == ["format", "version", "valid", "verdict", "sentence", "tier", "ratio", "checks"]
    assert (document["format"], document["version"]) == ("mtpp-verification", 2)
    assert (document["valid"], document["verdict"]) == (True, "ok")
    assert list(document["checks"][0]) == ["name", "verdict", "detail"]
    solved = plan | {"lower_bound": plan["lower_bound"] | {"tier": "solver"}}
    unchecked = verify_plan(solved, None).to_document()
    assert (unchecked["valid"], unchecked["verdict"], unchecked["ratio"]) == (None, "unchecked", None)
    false = verify_plan(solved | {"optimal": True}, None).to_document()
    assert (false["valid"], false["verdict"]) == (False, "false")


def test_zero_bound_has_no_ratio() -> None:
    """A bound of zero gives ratio 1 for a free plan and none for any other."""
    free = plan_document(chain([0, 0], [0]), LINK, 2, [0, 1], embed=True)
    assert free["ratio"] == 1
    assert verify_plan(free, None).passed
    linked = plan_document(chain([0, 0], [3]), LINK, 2, [0, 1], embed=True)
    assert linked["ratio"] is None
    assert verify_plan(linked, None).passed
    linked["ratio"] = Decimal(1)
    assert set(verify_plan(linked, None).named(Verdict.FALSE)) == {"ratio"}


def test_ratio_is_the_correctly_rounded_quotient() -> None:
    """A ratio that is one unit in the last place off is noticed, also for numbers no float holds."""
    graph = chain([2**53 + 1, 3], [10**15])
    plan = plan_document(graph, LINK, 2, [0, 1], embed=True)
    assert verify_plan(plan, None).passed
    plan["ratio"] = Decimal(repr(float(plan["ratio"]) * (1 + 2**-52)))
    assert set(verify_plan(plan, None).named(Verdict.FALSE)) == {"ratio"}


def enumerated(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what a bound by enumeration claims, which no search confirms."""
    proof = {"merges": [], "cutoff": 4, "k": 2, "rules": ["fit"], "downsets": 1, "pairs": 0, "digest": "0" * 64}
    return plan["lower_bound"] | {"tier": "enumerated", "method": "downset", "proof": proof}


@pytest.mark.parametrize("tier", ["enumerated", "solver"])
def test_bounds_that_were_not_looked_at_are_unchecked(tier: str, plan: dict[str, Any]) -> None:
    """So are ratio and optimum; a bound above the bottleneck is false whatever it rests on."""
    plan["lower_bound"] = enumerated(plan) | {"tier": tier}
    report = verify_plan(plan, None)
    assert (report.verdict, report.tier, report.ratio) == ("unchecked", tier, None)
    assert report.named("unchecked") == ["lower bound", "ratio", "optimal"]
    assert not any(check.detail.startswith("proven") for check in report.checks)
    assert ("‹shallow›" in bound_check(report).detail) == (tier == "enumerated")
    plan["lower_bound"]["value"] = 7
    plan["ratio"] = Decimal(repr(6 / 7))
    report = verify_plan(plan, None)
    assert set(report.named(Verdict.FALSE)) == {"lower bound", "ratio", "optimal"}
    assert bound_check(report).detail == "7 ticks is above the bottleneck, 6 ticks"


def closed(plan: dict[str, Any], tier: str, *, optimal: bool) -> dict[str, Any]:
    """Return a plan whose bound is said to meet its bottleneck."""
    bound = enumerated(plan) | {"value": 6, "tier": tier}
    bound["proof"]["cutoff"] = 6
    return plan | {"lower_bound": bound, "ratio": Decimal(1), "optimal": optimal}


def test_optimal_means_proven(plan: dict[str, Any]) -> None:
    """It is false of a solver's bound, of one that does not meet the bottleneck, and where it is left out."""

    def verdict(document: dict[str, Any], search: Any = None) -> str | None:
        report = verify_plan(document, None, search=search)
        return next(check.verdict for check in report.checks if check.name == "optimal")

    assert verdict(closed(plan, "solver", optimal=True)) == "false"
    assert verdict(closed(plan, "solver", optimal=False)) == "unchecked"
    assert verdict(closed(plan, "enumerated", optimal=True)) == "unchecked"
    unseen = verify_plan(closed(plan, "enumerated", optimal=True), None).checks[-1]
    assert unseen.detail == "claimed: rests on lower bound, which was not checked"
    assert verdict(closed(plan, "enumerated", optimal=True), lambda *_: (True, "6 again")) == "ok"
    assert verdict(closed(plan, "enumerated", optimal=True), lambda *_: (False, "only 3")) == "false"
    assert verdict(closed(plan, "enumerated", optimal=True), lambda *_: (None, "too much")) == "unchecked"
    assert verdict(closed(plan, "enumerated", optimal=False), lambda *_: (True, "6 again")) == "false"
    assert verdict(plan | {"optimal": True}) == "false"


def test_tier_requirements_are_ordered(plan: dict[str, Any]) -> None:
    """Exact meets every requirement, enumerated its own once re-run, solver only its own, a failed bound none."""
    required = ("exact", "enumerated", "solver")

    def met(search: Any = None) -> list[bool]:
        return [meets_tier(verify_plan(plan, None, search=search), tier) for tier in required]

    assert met() == [True, True, True]
    plan["lower_bound"] = enumerated(plan)
    assert met() == [False, False, True]
    assert met(lambda *_: (True, "4 again")) == [False, True, True]
    assert met(lambda *_: (None, "too much")) == [False, False, True]
    assert met(lambda *_: (False, "only 3")) == [False, False, False]
    plan["lower_bound"] |= {"tier": "solver"}
    assert met() == [False, False, True]
    with pytest.raises(InputError, match="unknown tier"):
        meets_tier(verify_plan(plan, None), "gold")


class Ended(BaseException):
    """The end of the time that a verification may take."""


def test_what_time_did_not_suffice_for_is_unchecked(plan: dict[str, Any]) -> None:
    """What was checked before is kept."""

    def search(*_: Any) -> Any:
        raise Ended

    plan["lower_bound"] = enumerated(plan)
    report = verify_plan(plan, None, search=search, ended_by=(Ended,))
    assert report.named("unchecked") == ["lower bound", "ratio", "optimal"]
    assert bound_check(report).detail == "downset: out of time"
    assert "bottleneck" in report.named("ok")
    with pytest.raises(Ended):
        verify_plan(plan, None, search=search)


def test_what_the_document_chose_is_shown_and_held_to_the_user_s(plan: dict[str, Any]) -> None:
    """Device, bandwidth, memory, sizes and groups have no verdict unless the user says what they have to be."""
    plan["together"] = [["op0"], ["op1"]]
    plan["model"]["dims"] = {"batch": 2}

    def rows(system: dict[str, Any], dims: dict[str, int]) -> dict[str, tuple[str | None, str]]:
        report = verify_plan(plan, None, system_due=system, dims_due=dims)
        return {check.name: (check.verdict, check.detail) for check in report.checks}

    free = rows({}, {})
    assert {free[name][0] for name in ("system", "bandwidth", "memory", "dims", "groups")} == {None}
    assert free["groups"][1].startswith("2 groups, 2 of 2 ops")
    bandwidth = plan["system"]["bandwidth_bytes_per_s"]
    held = rows({"bandwidth_bytes_per_s": bandwidth, "fast_memory_bytes": None}, {"batch": 2})
    assert [held[name][0] for name in ("system", "bandwidth", "memory", "dims")] == [None, "ok", "ok", "ok"]
    other = rows({"bandwidth_bytes_per_s": 25 * 10**9, "fast_memory_bytes": 2**20}, {"batch": 1})
    assert [other[name][0] for name in ("system", "bandwidth", "memory", "dims")] == [None, "false", "false", "false"]
    assert other["bandwidth"][1].endswith(", it has to be 25 GB/s")
    assert other["memory"][1] == "the plan says fast memory none, it has to be 1 MiB"
    assert other["dims"][1] == "the plan says batch = 2, it has to be 1"
    plan["model"]["proposed_dims"] = ["batch"]
    assert rows({}, {})["dims"] == (None, "batch = 2 (proposed)")
    plan["model"]["proposed_dims"] = ["height"]
    assert rows({}, {})["dims"] == ("false", "the plan says that 'height' was proposed, and nothing of its size")


@pytest.mark.parametrize(
    ("value", "text"), [(25 * 10**9, "25 GB/s"), (1500, "1.5 kB/s"), (25 * 10**9 + 1, "25000000001 B/s"), (0, "0 B/s")]
)
def test_quantities_are_exact(value: int, text: str) -> None:
    """No digit that counts is rounded away."""
    assert quantity(value, "B/s") == text
