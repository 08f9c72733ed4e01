"""All training plans searched again, against those that brute force finds."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import training_oracles
from hypothesis import given, settings
from hypothesis import strategies as st
from training_models import problems, random_problem
from training_plan_documents import SHA256, no_plan_document, training_claim, training_plan_document

from mtpp.checker.training.bounds import TrainingClaim
from mtpp.checker.training.model import TickModel, training_model_in_ticks
from mtpp.checker.training.plan import verify_training_plan
from mtpp.formats.training.models import read_training_model
from mtpp.machine.machine import Machine
from mtpp.solvers.recheck import pipelines as recheck_pipelines
from mtpp.solvers.recheck.kernels.stages import can_choose
from mtpp.solvers.recheck.pipelines import TooLarge, Unwatched, all_downsets, search_all
from mtpp.solvers.recheck.training import recheck_bound, recheck_no_plan
from mtpp.training.problem import PlanningProblem


def claim_of(problem: PlanningProblem, plan: dict[str, Any]) -> TrainingClaim:
    """Return what a plan which passes claims."""
    assert verify_training_plan(plan, problem.model, SHA256).passed
    return training_claim(plan, problem.model)


def ticks_of(problem: PlanningProblem) -> TickModel:
    """Return the model in ticks, as the verifier makes it."""
    return training_model_in_ticks(problem.model, problem.link.bandwidth_bytes_per_s)


def check_against_brute_force(problem: PlanningProblem) -> bool:
    """Search with limits around the optimum and around the least memory; return whether there is a plan."""
    best, least = training_oracles.best_plan(problem), training_oracles.least_memory(problem)
    ticks, watcher = ticks_of(problem), Unwatched()
    if best is None:
        none = no_plan_document(problem, least)
        assert all(check.passed for check in recheck_no_plan(none, ticks, watcher))
        if least is not None:
            for wrong in (least + 1, least - 1):
                checks = recheck_no_plan({**none, "least_memory_bytes": wrong}, ticks, watcher)
                assert [check.passed for check in checks] == [True, False]
            some = {**none, "planner": "equi", "least_memory_bytes": least + 1}  # of its own plans, which are few
            assert all(check.passed for check in recheck_no_plan(some, ticks, watcher))
            richer = {**none, "system": {**none["system"], "memory_bytes": least}}
            assert recheck_no_plan(richer, ticks, watcher)[0].passed is False
        return False
    claim = claim_of(problem, training_plan_document(problem, best[1]))
    assert recheck_bound(claim, "downset", watcher).passed
    more = TrainingClaim(claim.model, claim.system, claim.value + Fraction(1, 10**9), claim.proof)
    assert recheck_bound(more, "downset", watcher).passed is False
    assert search_all(ticks, claim.system, None, problem.memory_bytes, watcher).found
    return True


def test_searches_agree_with_brute_force() -> None:
    """On problems of all kinds, to the smallest difference."""
    feasible = [check_against_brute_force(random_problem(seed, most_layers=6)) for seed in range(60)]
    assert 15 < sum(feasible) < 55


@given(problems(most_layers=4, most_devices=4))
@settings(max_examples=30)
def test_searches_agree_with_brute_force_on_drawn_problems(problem: PlanningProblem) -> None:
    """The same on what hypothesis draws."""
    check_against_brute_force(problem)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3), max_size=6),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_choices_are_the_best_there_are(layers: list[list[tuple[int, int]]], most_cost: int, most_memory: int) -> None:
    """Whether any combination fits, against all of them."""
    fits = any(
        sum(cost for cost, _ in chosen) <= most_cost and sum(memory for _, memory in chosen) <= most_memory
        for chosen in product(*layers)
    )
    offsets = np.cumsum([0, *map(len, layers)]).astype(np.int64)
    options = np.array([option for options in layers for option in options], dtype=np.int64).reshape(-1, 2)
    cost, memory = (np.ascontiguousarray(options[:, i]) for i in range(2))
    assert can_choose(offsets, cost, memory, most_cost, most_memory) == fits


def test_all_downsets_are_closed_under_successors() -> None:
    """Each once, by size, and each leads to those that are larger by one layer."""
    for seed in range(20):
        ticks = ticks_of(random_problem(seed, most_layers=6))
        masks, grow = all_downsets(ticks)
        closed = {
            mask
            for mask in range(2 ** len(ticks.ids))
            if all(mask >> v & 1 or not mask >> u & 1 for u, v, _ in ticks.edges)
        }
        assert sorted(masks) == sorted(closed)
        assert [mask.bit_count() for mask in masks] == sorted(mask.bit_count() for mask in masks)
        for mask, larger in zip(masks, grow, strict=True):
            assert {masks[j] for j in larger} == {
                other for other in closed if (other ^ mask).bit_count() == 1 and other > mask
            }


def test_searches_out_of_reach_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many downsets leave the bound as it was, neither proven nor refuted; other searches are not known."""
    problem = next(one for one in map(random_problem, range(50)) if training_oracles.best_plan(one) is not None)
    best = training_oracles.best_plan(problem)
    assert best is not None
    claim = claim_of(problem, training_plan_document(problem, best[1]))
    assert recheck_bound(claim, "upset", Unwatched()).passed is False
    level = {"devices": claim.system["devices"], "bandwidth_bytes_per_s": claim.system["bandwidth_bytes_per_s"]}
    flat = replace(claim, system={**claim.system, "topology": [level]})
    assert recheck_bound(flat, "downset", Unwatched()).passed
    monkeypatch.setattr(recheck_pipelines, "MOST_DOWNSETS", 1)
    check = recheck_bound(claim, "downset", Unwatched())
    assert (check.passed, check.detail) == (
        None, "downset: the search cannot be run again: the model has more than 1 downsets"
    )  # fmt: skip
    with pytest.raises(TooLarge):
        all_downsets(claim.model)


def test_published_times_of_bert_are_optimal(shared_data: Path, shared_reference: Path) -> None:
    """By the rules of Piper's program, no plan is a thousandth faster than what it printed, and one is as fast."""
    model, _ = read_training_model(str(shared_data / "piper" / "bert32a100.json"), "s")
    for told in json.loads((shared_reference / "piper.json").read_text())["bert32a100"]["program"]:
        problem = PlanningProblem(
            model,
            machine=Machine.of_devices(
                told["devices"], memory_bytes=int(told["memory_gib"] * 2**30), bandwidth_bytes_per_s=25 * 2**30
            ),
            micro_batches=1920,
            convention="program",
        )
        limits = [None]
        if told["tps"] is not None:
            limits = [Fraction(str(told["tps"])) * 10**9 * factor for factor in (999, 1001)]
        system = no_plan_document(problem, None)["system"]
        ticks = ticks_of(problem)
        found = [search_all(ticks, system, limit, problem.memory_bytes, Unwatched()).found for limit in limits]
        assert found == [False, True][: len(limits)]
