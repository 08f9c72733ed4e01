"""Training plans: right ones pass, and every single thing that is changed in one is caught."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
import training_oracles
from machines import on_machine
from tampering import Path, altered, unnoticed
from training_models import four_layers, random_problem
from training_oracles import OracleStage
from training_plan_documents import SHA256, no_plan_document, training_plan_document

from mtpp.checker.report import Check, Report, meets_tier
from mtpp.checker.training.bounds import TrainingClaim, check_work
from mtpp.checker.training.model import training_model_in_ticks
from mtpp.checker.training.plan import TrainingSearches, verify_training_plan
from mtpp.errors import InputError
from mtpp.training.model import Configuration, Layer, TrainingModel
from mtpp.training.problem import PlanningProblem

STAGES = (OracleStage((0,), 2, 1, (1,)), OracleStage((1, 2), 1, 2, (0, 1)), OracleStage((3,), 2, 1, (0,)))


def problem(convention: str = "paper", **changes: Any) -> PlanningProblem:
    """Return what :data:`STAGES` are a plan of: they take all devices, and the second all of their memory."""
    rest = {"devices": 6, "memory_bytes": 59, "bandwidth_bytes_per_s": 3 * 10**9, "micro_batches": 6} | changes
    return PlanningProblem(four_layers(), convention=convention, **on_machine(**rest))


def work_bound(asked: PlanningProblem, rule: str) -> dict[str, Any]:
    """Return a bound with its proof, from its definition."""
    best = []
    for v in range(len(asked.model.layers)):
        ways = [
            (t, one)
            for t in training_oracles.tensor_degrees(asked)
            for one in training_oracles.configurations(asked, v, t)
            if one.memory_a + one.memory_b <= asked.memory_bytes
        ]
        unit = training_oracles.PICOSECONDS[asked.model.time_unit]
        ticks = [(t, -(-one.time_per_sample.numerator * unit // one.time_per_sample.denominator)) for t, one in ways]
        best.append(min((t if rule == "devices" else 1) * time for t, time in ticks))
    value = Fraction(sum(best), asked.devices if rule == "devices" else asked.micro_batches)
    return {
        "value": [value.numerator, value.denominator],
        "method": "work",
        "tier": "exact",
        "proof": {"rule": rule, "total": sum(best)},
    }


def good_plan(convention: str = "paper") -> dict[str, Any]:
    """Return a true document."""
    asked = problem(convention)
    return training_plan_document(asked, STAGES, work_bound(asked, "devices"))


def verify(plan: Any) -> Report:
    """Verify a plan of the chain."""
    return verify_training_plan(plan, four_layers(), SHA256)


def failures(plan: Any) -> list[str]:
    """Return the names of the checks that fail."""
    return [check.name for check in verify(plan).checks if check.passed is False]


TAKEN_ON_TRUST = {("planner",), ("model", "name"), ("stopped",), ("elapsed_s",), ("knapsack", "method")}
STILL_TRUE = {
    ("paper", ("system", "memory_bytes"), 60),  # it fits as well
    ("program", ("system", "memory_bytes"), 60),
    ("paper", ("system", "bandwidth_bytes_per_s"), 3 * 10**9 + 1),  # rounded up to whole ticks, it is the same
    ("program", ("system", "bandwidth_bytes_per_s"), 3 * 10**9 + 1),
    ("paper", ("system", "max_micro_batches"), 7),  # it has 5
    ("paper", ("system", "max_micro_batches"), 5),
}


@pytest.mark.parametrize("convention", ["paper", "program"])
def test_every_single_change_is_caught(convention: str) -> None:
    """Whatever value of a good plan is another one, the plan is malformed or a check fails."""
    plan = good_plan(convention)
    assert failures(plan) == []
    missed, count = unnoticed(
        plan, failures, lambda path, other: path in TAKEN_ON_TRUST or (convention, path, other) in STILL_TRUE
    )
    assert missed == []
    assert count > 150


def without(plan: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a copy without one key."""
    wrong = copy.deepcopy(plan)
    target: Any = wrong
    for key in path[:-1]:
        target = target[key]
    del target[path[-1]]
    return wrong


def keys(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the place of every key, other than those that layers' ids are."""
    if isinstance(value, dict) and path[-1:] != ("configurations",):
        for key, item in value.items():
            yield (*path, key)
            yield from keys(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from keys(item, (*path, i))


def test_every_key_is_needed_and_no_other_is_known() -> None:
    """A key that is missing, or that nobody knows, is bad input, with the place."""
    plan = good_plan()
    for path in keys(plan):
        with pytest.raises(InputError, match=r"missing key|not an mtpp|unknown version"):
            verify(without(plan, path))
    for path in [(), ("model",), ("system",), ("stages", 1), ("lower_bound",), ("lower_bound", "proof"), ("knapsack",)]:
        wrong = copy.deepcopy(plan)
        target: Any = wrong
        for key in path:
            target = target[key]
        target["more"] = 1
        with pytest.raises(InputError, match="unknown key") as caught:
            verify(wrong)
        assert caught.value.where == "".join(f"/{key}" for key in (*path, "more"))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("stages", 0, "data_parallel"), 0, "/stages/0/data_parallel: 0 is out of range"),
        (("stages", 0, "tensor_parallel"), Fraction(3, 2), "/stages/0/tensor_parallel: expected a whole number"),
        (("stages", 0, "time_ticks"), [2, 4], "/stages/0/time_ticks: the fraction is not in lowest terms"),
        (("stages", 0, "time_ticks"), [1, 2, 3], "/stages/0/time_ticks: expected a numerator and a denominator"),
        (("stages", 0, "time_ticks"), [1, 0], "/stages/0/time_ticks: a fraction of this kind"),
        (("stages", 0, "time_ticks"), None, "/stages/0/time_ticks: expected an array"),
        (("stages", 0, "layers"), [True], "/stages/0/layers/0: expected a layer's id"),
        (("time_per_sample",), Decimal("NaN"), "/time_per_sample: NaN is not finite"),
        (("time_unit",), "1", "/time_unit: unknown value '1'"),
        (("lower_bound", "proof"), {"rule": "luck"}, "/lower_bound/proof/rule: unknown value 'luck'"),
        (("lower_bound", "proof"), {}, "/lower_bound/proof/rule: missing key"),
        (("system", "convention"), "both", "/system/convention: unknown value 'both'"),
        (("feasible",), 0, "/feasible: expected true or false"),
        (("version",), 2, "/planner: unknown value 'piper'"),
        (("version",), 3, "/version: unknown version: 3"),
    ],
    ids=str,
)
def test_malformed_documents_name_the_place(path: Path, value: Any, message: str) -> None:
    """Bad input, on one line."""
    with pytest.raises(InputError) as caught:
        verify(altered(good_plan(), path, value))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_batch_allows_as_many_micro_batches() -> None:
    """N = ⌊B / (g · b)⌋, and a model says what its times are of."""
    most = good_plan()["system"]["max_micro_batches"]
    batch = {"samples": 4 * most + 3, "micro_batch_size": 2, "gradient_accumulation": 2}
    assert failures({**good_plan(), "batch": batch}) == []
    for key, value in (("samples", 4 * most - 1), ("micro_batch_size", 1), ("gradient_accumulation", 1)):
        assert failures({**good_plan(), "batch": batch | {key: value}}) == ["batch"]
    model = replace(four_layers(), micro_batch_size=3)
    report = verify_training_plan({**good_plan(), "batch": batch}, model, SHA256)
    assert [check.name for check in report.checks if check.passed is False] == ["batch"]
    with pytest.raises(InputError, match="/batch/samples: 0 is out of range"):
        verify({**good_plan(), "batch": batch | {"samples": 0}})


def test_stages_that_are_no_plan() -> None:
    """Layers twice, nowhere, or after those that need them; what cannot be derived then is said to be unchecked."""
    plan = good_plan()
    plan["stages"][0]["layers"] = [0, 1]
    report = verify(plan)
    details = {check.name: check for check in report.checks}
    assert details["layers"].detail == "layer 1 is in stage 0 and in stage 1"
    assert details["stage figures"].passed is None
    swapped = training_plan_document(problem(), STAGES[::-1], work_bound(problem(), "devices"))
    assert failures(swapped) == ["edges", "ratio", "optimal"]
    empty = copy.deepcopy(good_plan())
    empty["stages"] = []
    assert "layers" in failures(empty)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"devices": 5}, "devices"),
        ({"max_micro_batches": 4}, "degrees"),
        ({"exact_micro_batches": True}, "degrees"),
        ({"memory_bytes": 58}, "stage memory"),
        ({"recompute": False}, "configurations"),
        ({"tensor_parallel": False}, "degrees"),
        ({"data_parallel": False}, "degrees"),
    ],
    ids=str,
)
def test_plans_that_were_not_allowed(changes: dict[str, Any], name: str) -> None:
    """A plan whose numbers are all right, for what rules it out."""
    bound = {"value": [0, 1], "method": "work", "tier": "exact", "proof": {"rule": "devices", "total": 0}}
    plan = training_plan_document(problem(), STAGES, bound)
    assert failures(plan) == []
    plan["system"] |= changes
    assert failures(plan) == [name, "ratio", "optimal"]


def test_degrees_of_the_program_divide_the_batch() -> None:
    """5 micro-batches cannot be shared by 2, other than by the paper's rules."""
    asked = problem("program", micro_batches=5)
    assert failures(training_plan_document(asked, STAGES, work_bound(asked, "degrees"))) == [
        "degrees",
        "ratio",
        "optimal",
    ]
    asked = problem("paper", micro_batches=5)
    assert failures(training_plan_document(asked, STAGES, work_bound(asked, "degrees"))) == []


CONFIRMED = TrainingSearches(
    lambda claim, method: Check("lower bound", True, "confirmed"),
    lambda plan, model: [Check("no plan", True, "confirmed"), Check("least memory", True, "confirmed")],
)
"""Searches that find whatever is claimed to be so."""


def test_optimal_plans_of_random_problems_pass() -> None:
    """And what says that there is none does."""
    for seed in range(40):
        asked = random_problem(seed, most_layers=5)
        best = training_oracles.best_plan(asked)
        if best is None:
            document = no_plan_document(asked, training_oracles.least_memory(asked))
        else:
            document = training_plan_document(asked, best[1])
        report = verify_training_plan(document, asked.model, SHA256)
        assert report.passed, report
        searched = verify_training_plan(document, asked.model, SHA256, searches=CONFIRMED)
        assert searched.verdict == "ok", searched
        assert searched.ratio == (None if best is None else 1.0)


@pytest.mark.parametrize("rule", ["devices", "degrees"])
def test_bounds_by_work_hold(rule: str) -> None:
    """They are below what is optimal, are re-derived to the last tick, and one tick more is refused."""
    count = 0
    for seed in range(60):
        asked = random_problem(seed, most_layers=4)
        best = training_oracles.best_plan(asked)
        if best is None:
            continue
        bound = work_bound(asked, rule)
        assert Fraction(*bound["value"]) <= best[0]
        report = verify_training_plan(training_plan_document(asked, best[1], bound), asked.model, SHA256)
        assert report.passed, report
        assert meets_tier(report, "exact")
        bound["proof"]["total"] += 1
        report = verify_training_plan(training_plan_document(asked, best[1], bound), asked.model, SHA256)
        assert report.named("false") == ["lower bound", "ratio", "optimal"]
        assert report.tier == "none"
        count += 1
    assert count > 20


def test_bounds_with_shares_and_cutoffs_never_pass_the_optimum() -> None:
    """Whatever the proof, a bound that some plan beats is refused; one that is far enough below passes."""
    accepted = 0
    for seed in range(80):
        asked = random_problem(seed, most_layers=4)
        best = training_oracles.best_plan(asked)
        if best is None or best[0] == 0:
            continue
        ticks = training_model_in_ticks(asked.model, asked.link.bandwidth_bytes_per_s)
        document = training_plan_document(asked, best[1])
        for alpha, beta in ((1, 0), (0, 1), (2, 3), (7, 1)):
            shares = {"per_device": alpha, "per_degree": beta}
            for factor in (Fraction(1, 2), Fraction(9, 10), 1, Fraction(11, 10), 3):
                cutoff = best[0] * factor
                proof = {"rule": "gradients", "cutoff": [cutoff.numerator, cutoff.denominator], **shares}
                above = best[0] + Fraction(1, 10**9)
                assert not check_work(TrainingClaim(ticks, document["system"], above, proof))[0]
                accepted += check_work(TrainingClaim(ticks, document["system"], best[0] * Fraction(9, 10), proof))[0]
            proof = {"rule": "mixed", "total": 2**62, **shares}
            assert not check_work(TrainingClaim(ticks, document["system"], Fraction(0), proof))[0]
    assert accepted > 20
    nothing = {"rule": "mixed", "total": 0, "per_device": 0, "per_degree": 0}
    assert not check_work(TrainingClaim(ticks, document["system"], Fraction(0), nothing))[0]


def test_bounds_by_a_single_layer_hold() -> None:
    """The verifier's own value of each layer is below what is optimal; nothing above it passes."""
    count = 0
    for seed in range(60):
        asked = random_problem(seed, most_layers=4)
        best = training_oracles.best_plan(asked)
        if best is None:
            continue
        for v, layer in enumerate(asked.model.layers):
            parts = [
                training_oracles.stage_parts(asked, OracleStage((v,), d, t, (c,)), d)
                for d in training_oracles.data_degrees(asked)
                for t in training_oracles.tensor_degrees(asked)
                for c in range(len(training_oracles.configurations(asked, v, t)))
                if d * t <= asked.devices
            ]
            least = min(part.compute + part.gradients for part in parts if part.memory <= asked.memory_bytes)
            assert least <= best[0]
            for value, holds in ((least, True), (least + Fraction(1, 10**6), False)):
                proof = {"rule": "layer", "layer": layer.id}
                pair = [value.numerator, value.denominator]
                bound = {"value": pair, "method": "work", "tier": "exact", "proof": proof}
                plan = training_plan_document(asked, best[1], bound)
                checks = verify_training_plan(plan, asked.model, SHA256).checks
                assert next(check.passed for check in checks if check.name == "lower bound") is holds
            count += 1
    assert count > 40


def test_bounds_that_nothing_is_known_of() -> None:
    """Another method proves nothing in the exact tier, and no bound of training plans rests on a MIP solver."""
    asked = problem()
    bound = work_bound(asked, "devices")
    for change in ({"method": "luck"}, {"tier": "solver"}, {"proof": {"rule": "layer", "layer": 99}}):
        report = verify(training_plan_document(asked, STAGES, bound | change))
        assert report.named("false") == ["lower bound", "ratio", "optimal"]
    own = training_plan_document(asked, STAGES)
    own["lower_bound"]["proof"]["less_than"] = [1, 1]
    assert failures(own) == ["lower bound", "ratio", "optimal"]


def test_no_plan() -> None:
    """Some reasons follow from the model; the least memory is at least what each layer needs, and not there."""
    alone = verify(no_plan_document(problem(memory_bytes=13), 50))
    assert (alone.passed, alone.tier) == (True, "exact")
    searched = verify(no_plan_document(problem(memory_bytes=30), 50))
    assert (searched.passed, searched.tier, searched.bound_rechecked) == (True, "enumerated", False)
    assert verify(no_plan_document(problem(memory_bytes=30), None, proven=False)).tier == "none"
    many = verify(no_plan_document(problem(exact_micro_batches=True, micro_batches=7), None))
    assert many.tier == "exact"
    for least in (30, 13):
        assert failures(no_plan_document(problem(memory_bytes=30), least)) == ["least memory"]
    with_stages = no_plan_document(problem(memory_bytes=30), 50)
    with_stages["stages"] = good_plan()["stages"]
    assert failures(with_stages) == ["stages"]


def test_another_four_layers() -> None:
    """Layers and edges that are not there, another file, ids that a plan cannot tell apart."""
    plan = good_plan()
    assert [
        check.name for check in verify_training_plan(plan, four_layers(), "0" * 64).checks if check.passed is False
    ] == ["model file"]
    layers = [*four_layers().layers, Layer("0", "zero", {1: [Configuration("plain", 1, 0, 0, 0)]})]
    alike = TrainingModel("alike", "ns", layers, four_layers().edges)
    with pytest.raises(InputError, match="written alike"):
        verify_training_plan(plan, alike, SHA256)
