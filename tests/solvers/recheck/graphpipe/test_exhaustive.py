"""All plans of small models searched again, against brute force and the known optima."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graph_plan_documents import (
    SHA256,
    Planned,
    as_training_model,
    bound_claim,
    diamond,
    graph_plan_document,
    no_graph_plan_document,
    reference_case,
)
from graph_plan_oracles import best_iteration, leanest_pipeline, random_graph_case
from planning import plan_with
from seeds import sampled

import mtpp
from mtpp.checker.report import Report
from mtpp.checker.training.plan import TrainingSearches, verify_training_plan
from mtpp.errors import Infeasible
from mtpp.solvers.recheck.graphpipe import exhaustive
from mtpp.solvers.recheck.graphpipe.exhaustive import recheck_exhaustive
from mtpp.solvers.recheck.pipelines import Unwatched
from mtpp.solvers.recheck.training import recheck_graph_bound

WATCHER = Unwatched()
SENTENCE = (
    "valid, proven optimal: no stage graph with kFkB orders of whole backward passes by these rules "
    "has a shorter iteration"
)


def verify(plan: Any, model: dict[str, Any]) -> Report:
    """Verify a document with the searches behind it."""

    def unused(*_: Any) -> Any:
        raise AssertionError

    searches = TrainingSearches(unused, unused, lambda claim: recheck_graph_bound(claim, WATCHER))
    return verify_training_plan(plan, as_training_model(model), SHA256, searches=searches)


def bound(value: int) -> dict[str, Any]:
    """Return a bound as documents state it."""
    return {"value": value, "method": "exhaustive", "tier": "enumerated", "proof": {}}


def test_optima_of_the_reference(shared_reference: Path) -> None:
    """Plans of the six models are proven optimal; no bound is above; the least memory is as known."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["models"]:
        model, asked, stages = reference_case(case)
        best, least = case["optimum_ticks"], case["least_memory_bytes"]
        report = verify(graph_plan_document(model, asked, stages, bound(best)), model)
        assert report.verdict == "ok", report
        assert report.sentence() == SENTENCE
        assert recheck_exhaustive(bound_claim(model, asked, "exhaustive", best + 1), WATCHER)[0] is False
        short = {**asked, "memory_bytes": least - 1}
        none = no_graph_plan_document(model, short, bound(least), None)
        assert verify(none, model).verdict == "ok"
        higher = no_graph_plan_document(model, short, bound(least + 1), None)
        assert verify(higher, model).named("false") == ["memory bound", "no plan"]


@pytest.mark.parametrize(
    ("key", "rules"),
    [
        ("optimum_least_in_flight_ticks", {"least": True}),
        ("sequential_optimum_ticks", {"sequential": True}),
        ("sequential_least_in_flight_ticks", {"sequential": True, "least": True}),
        ("per_stage_optimum_ticks", {"per_stage": True}),
    ],
)
def test_other_rules_of_the_reference(shared_reference: Path, key: str, rules: dict[str, bool]) -> None:
    """The same optima with the fewest in flight, in one line, and with sizes that differ."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["models"]:
        if key in case:
            model, asked, _ = reference_case(case)
            claim = bound_claim(model, {**asked, **rules}, "exhaustive", case[key])
            assert recheck_exhaustive(claim, WATCHER)[0] is True
            assert recheck_exhaustive(replace(claim, value=claim.value + 1), WATCHER)[0] is False


def with_shared_tensors(model: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return a model whose layers hand tensors to others on their device, at the cost of more bytes."""
    draw = random.Random(seed)
    shared = copy.deepcopy(model)
    one = {layer["name"]: layer["configurations"]["1"][0] for layer in shared["layers"]}
    for edge in shared["edges"]:
        one[edge["target"]].setdefault("sync_in", {})[edge["source"]] = draw.choice((0, 5, 40))
        one[edge["source"]].setdefault("sync_out", {})[edge["target"]] = draw.choice((0, 5, 40))
    return shared


def check_random(seed: int, *, shared: bool = False) -> bool:
    """Claim the optimum of a random model and one more; its least memory and one more."""
    model, asked = random_graph_case(seed)
    if shared:
        model = with_shared_tensors(model, seed)
    best = best_iteration(model, asked)
    high = 10**12 if best is None else best
    assert recheck_exhaustive(bound_claim(model, asked, "exhaustive", high), WATCHER)[0] is True
    if best is not None:
        assert recheck_exhaustive(bound_claim(model, asked, "exhaustive", best + 1), WATCHER)[0] is False
    leanest = leanest_pipeline(model, asked)
    if leanest is not None:
        for value, holds in ((leanest[0], True), (leanest[0] + 1, False)):
            claim = bound_claim(model, asked, "exhaustive", value, "memory")
            assert recheck_exhaustive(claim, WATCHER)[0] is holds
    return best is not None


@pytest.mark.parametrize(
    "seeds", [range(100, 130), pytest.param(sampled(range(2000, 2300), 150), marks=pytest.mark.slow)]
)
def test_random_models(seeds: range) -> None:
    """The search is exact, of time and of memory."""
    assert len(seeds) // 6 < sum(check_random(seed, shared=seed > 999 and seed % 2 == 0) for seed in seeds) < len(seeds)


def test_random_models_that_share_tensors() -> None:
    """What sharing a tensor moves besides, with one device a layer too, is part of what is searched."""
    assert 5 < sum(check_random(seed, shared=True) for seed in range(130, 160)) < 30


def test_plans_of_models_that_share_tensors_are_proven() -> None:
    """The search behind the bound of such a plan runs again: every claim holds, and a raised bound is false."""
    passed = 0
    for seed in range(300, 312):
        model, asked = random_graph_case(seed)
        model = with_shared_tensors(model, seed)
        memory, bandwidth = f"{asked['memory_bytes']}B", f"{asked['bandwidth']}B/s"
        with suppress(Infeasible):
            plan = plan_with(
                model, planner="graphpipe", devices=asked["devices"], memory=memory, bandwidth=bandwidth,
                batch_size=asked["mini_batch"],
            )  # fmt: skip
            assert plan.optimal
            assert mtpp.verify(plan, model).passed, mtpp.verify(plan, model)
            passed += 1
    assert passed > 3


def test_configurations() -> None:
    """Of several configurations the best mix counts, unless it recomputes and may not."""
    model, asked, _ = diamond()
    for layer in model["layers"]:
        one = layer["configurations"]["1"][0]
        rows = one["micro_batches"].items()
        table = {s: {**row, "memory_bytes": 0, "forward": 2 * row["forward"]} for s, row in rows}
        lean = {**one, "id": "lean", "time": table["2"]["forward"] + table["2"]["backward"], "recompute": True}
        layer["configurations"]["1"].append({**lean, "memory_bytes_per_micro_batch": 0, "micro_batches": table})
    asked = {**asked, "memory_bytes": 40, "devices": 3}
    claim = bound_claim(model, asked, "exhaustive", 10**12)
    assert recheck_exhaustive(claim, WATCHER)[0] is False
    plain = diamond()[0]
    assert recheck_exhaustive(bound_claim(plain, asked, "exhaustive", 10**12), WATCHER)[0] is True


def test_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of many layers, and searches of many steps, are left unchecked."""
    model, asked, _ = diamond()
    claim = bound_claim(model, asked, "exhaustive", 200_000)
    assert recheck_exhaustive(claim, WATCHER)[0] is True
    monkeypatch.setattr(exhaustive, "MOST_STEPS", 20)
    assert recheck_exhaustive(claim, WATCHER)[0] is None
    monkeypatch.setattr(exhaustive, "MOST_LAYERS", 3)
    assert recheck_exhaustive(claim, WATCHER)[0] is None


def test_interruption() -> None:
    """A watcher that has enough ends the search."""

    class Impatient(Unwatched):
        def alive(self) -> None:
            raise TimeoutError

    model, asked, _ = diamond()
    with pytest.raises(TimeoutError):
        recheck_exhaustive(bound_claim(model, asked, "exhaustive", 240_000), Impatient())


def test_a_plan_that_is_not_optimal() -> None:
    """Its bound may not be its own iteration."""
    model, asked, _ = diamond()
    stages = [Planned(["a"], 1, 2, 2), Planned(["b", "c", "d"], 1, 2, 1)]
    asked = {**asked, "memory_bytes": 200}
    plan = graph_plan_document(model, asked, stages)
    claimed = graph_plan_document(model, asked, stages, bound(plan["iteration_ticks"]))
    assert claimed["optimal"]
    assert verify(claimed, model).named("false") == ["lower bound", "ratio", "optimal"]
