"""Plans of stage graphs: right ones pass, and every rule that is broken in one is named by its row."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from graph_plan_documents import (
    SHA256,
    Planned,
    as_training_model,
    diamond,
    graph_plan_document,
    least_layer,
    least_work,
    no_graph_plan_document,
    planned_stages,
    reference_case,
    simulated,
)
from graph_plan_oracles import best_pipeline, leanest_pipeline, random_graph_case
from refusals import refusal
from tampering import altered, leaves, unnoticed

from mtpp.checker.report import SHALLOW, Report, meets_tier
from mtpp.checker.training.graphpipe.bounds import GraphClaim
from mtpp.checker.training.plan import TrainingSearches, verify_training_plan
from mtpp.errors import InputError

MODEL, ASKED, STAGES = diamond()


def good_plan(**asked: Any) -> Any:
    """Return a true document."""
    return graph_plan_document(MODEL, ASKED | asked, STAGES)


def verify(plan: Any, answer: bool | None = True, model: dict[str, Any] = MODEL) -> Report:
    """Verify a plan with a search that answers this whatever is asked."""

    def unused(*_: Any) -> Any:
        raise AssertionError

    searches = TrainingSearches(unused, unused, lambda _claim: (answer, "searched"))
    return verify_training_plan(plan, as_training_model(model), SHA256, searches=searches)


def failures(plan: Any) -> list[str]:
    """Return the names of the checks that fail."""
    return [check.name for check in verify(plan).checks if check.passed is False]


def test_a_plan_and_its_bound() -> None:
    """Every row of a true document holds, and the bound by work is exact."""
    report = verify(good_plan())
    assert report.verdict == "ok", report.sentence()
    assert report.ratio == simulated(MODEL, ASKED, STAGES) / least_work(MODEL, ASKED)
    assert meets_tier(report, "exact")


def test_rows_count_in_the_singular_and_name_orders() -> None:
    """One stage in 1F1B order with a micro-batch in flight, on a device whose memory is short in decimal units only."""
    asked = {**ASKED, "devices": 1, "memory_bytes": 100 * 10**6, "sizes": [1]}
    plan = graph_plan_document(MODEL, asked, [Planned(["a", "b", "c", "d"], 1, 1, 1)])
    details = {check.name: check.detail for check in verify(plan).checks}
    assert details["devices at hand"] == "1, 100 MB each"
    assert details["layers"] == "each of 4 in the only stage"
    assert details["micro-batch sizes"] == "1 sample"
    assert details["orders"] == "1F1B"
    assert details["in flight"] == "at most 1 micro-batch"
    assert details["stage figures"] == "1 stage"
    assert details["depth"] == "1 stage on the longest path"


def _stage(plan: Any, i: int, **values: Any) -> None:
    plan["stages"][i].update(values)


def _swap(plan: Any, i: int, j: int) -> None:
    stages = plan["stages"]
    stages[i], stages[j] = {**stages[j], "index": i}, {**stages[i], "index": j}


BROKEN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a layer twice": ("layers", lambda p: p["stages"][1]["layers"].append("a")),
    "a layer nowhere": ("layers", lambda p: p["stages"].pop()),
    "a layer that is none": ("layers", lambda p: p["stages"][0]["layers"].append("z")),
    "an empty stage": ("layers", lambda p: _stage(p, 0, layers=[])),
    "an index": ("layers", lambda p: _stage(p, 2, index=3)),
    "an edge back": ("edges", lambda p: _swap(p, 0, 1)),
    "tensor parallelism": ("devices", lambda p: _stage(p, 0, tensor_parallel=2)),
    "devices of a stage": ("devices", lambda p: _stage(p, 1, devices=3)),
    "too many devices": ("devices", lambda p: p["system"].update(devices=4)),
    "data parallelism": ("devices", lambda p: p["rules"].update(data_parallel=False)),
    "devices in all": ("devices used", lambda p: p.update(devices_used=6)),
    "no configuration": ("configurations", lambda p: _stage(p, 0, configurations={})),
    "a configuration that is none": ("configurations", lambda p: _stage(p, 0, configurations={"a": "fast"})),
    "a configuration too many": ("configurations", lambda p: p["stages"][0]["configurations"].update(b="plain")),
    "a size that is not allowed": ("micro-batch sizes", lambda p: [_stage(p, i, micro_batch=8) for i in range(4)]),
    "a size that devices cannot share": ("micro-batch sizes", lambda p: _stage(p, 1, data_parallel=3, devices=3)),
    "sizes that differ": ("micro-batch sizes", lambda p: _stage(p, 3, micro_batch=4)),
    "k that is not allowed": ("orders", lambda p: _stage(p, 0, forwards_backwards=2)),
    "too few in flight": ("in flight", lambda p: _stage(p, 0, in_flight=2)),
    "too many in flight": ("in flight", lambda p: _stage(p, 0, in_flight=9)),
    "more than the fewest": (
        "in flight",
        lambda p: [p["rules"].update(in_flight="least"), _stage(p, 0, in_flight=4)],
    ),
    "a forward pass": ("stage figures", lambda p: _stage(p, 0, forward_ticks=1)),
    "a backward pass": ("stage figures", lambda p: _stage(p, 0, backward_ticks=1)),
    "a synchronisation": ("stage figures", lambda p: _stage(p, 1, synchronisation_ticks=1)),
    "a stage's memory": ("stage figures", lambda p: _stage(p, 1, memory_bytes=1)),
    "memory": ("stage memory", lambda p: p["system"].update(memory_bytes=50)),
    "a transfer that is missing": ("transfers", lambda p: p["transfers"].pop()),
    "a transfer of nothing": (
        "transfers",
        lambda p: p["transfers"].append({"source": 2, "target": 4, "forward_ticks": 0, "backward_ticks": 0}),
    ),
    "transfers in disorder": ("transfers", lambda p: p["transfers"].reverse()),
    "a transfer's time": ("transfers", lambda p: p["transfers"][0].update(backward_ticks=0)),
    "latency": ("transfers", lambda p: p["system"].update(latency_ticks=0)),
    "a line of stages": ("in flight", lambda p: p["system"].update(sequential=True)),
    "the depth": ("depth", lambda p: p.update(depth=4)),
    "the time per sample": ("time per sample", lambda p: p.update(time_per_sample_ticks=[1, 1])),
    "the iteration": ("iteration", lambda p: p.update(iteration_ticks=p["iteration_ticks"] - 1)),
    "the iteration's time": ("iteration", lambda p: p.update(iteration_time=1)),
    "the speed": ("iteration", lambda p: p.update(samples_per_s=None)),
    "a bound above the iteration": (
        "lower bound",
        lambda p: p["lower_bound"].update(value=p["iteration_ticks"] + 1, method="chains", tier="enumerated"),
    ),
    "a bound by work": ("lower bound", lambda p: p["lower_bound"].update(value=p["lower_bound"]["value"] + 1)),
    "a method": ("lower bound", lambda p: p["lower_bound"].update(method="downset")),
    "a tier": ("lower bound", lambda p: p["lower_bound"].update(tier="enumerated")),
    "a layer left out that is none": (
        "lower bound",
        lambda p: p["lower_bound"].update(method="chains", tier="enumerated", proof={"left_out": ["z"]}),
    ),
    "a layer left out twice": (
        "lower bound",
        lambda p: p["lower_bound"].update(method="chains", tier="enumerated", proof={"left_out": ["a", "a"]}),
    ),
    "the ratio": ("ratio", lambda p: p.update(ratio=1.0)),
    "optimal": ("optimal", lambda p: p.update(optimal=True)),
    "the samples of times": ("samples of times", lambda p: p["rules"].update(times_of=1)),
    "the model's file": ("model file", lambda p: p["model"].update(sha256="0" * 64)),
    "the model's size": ("layer and edge counts", lambda p: p["model"].update(edges=3)),
    "the unit": ("ticks", lambda p: p.update(time_unit="us")),
    "ticks": ("ticks", lambda p: p.update(ticks_per_unit=1)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_every_rule_has_a_row(what: str) -> None:
    """Whatever is broken, the row that says so fails."""
    row, broken = BROKEN[what]
    plan = good_plan()
    broken(plan)
    report = verify(plan)
    assert row in [check.name for check in report.checks if check.passed is False], report.sentence()
    assert report.verdict == "false"


def test_every_single_change_is_caught() -> None:
    """Whatever value of a good plan is another one, the plan is malformed or a check fails."""
    trusted = {("model", "name"), ("stopped",), ("elapsed_s",)}
    still_true = {
        (("system", "memory_bytes"), 59),  # 54 are needed
        (("system", "memory_bytes"), 61),
        (("system", "devices"), 5),  # as many are used, and bounds grow with fewer
        (("system", "bandwidth_bytes_per_s"), 5 * 10**9 + 1),  # rounded up to whole ticks, it is the same
        (("rules", "recompute"), False),  # nothing does
        (("rules", "per_stage_micro_batch"), True),  # they may differ, but do not
    }

    def is_true(path: tuple[str | int, ...], other: Any) -> bool:
        return path in trusted or (path, other) in still_true

    missed, count = unnoticed(good_plan(), failures, is_true)
    assert missed == []
    assert count > 150


def test_forgeries_never_crash() -> None:
    """Large, small and odd values in any place are malformed or false, and nothing else happens."""
    plan = good_plan()
    for path, value in leaves(plan):
        for other in (0, 1, -1, 2**61, 2**70, True, None, "", [], {}, 1.5):
            if type(other) is type(value) and other == value:
                continue
            with suppress(InputError):
                assert verify(altered(plan, path, other), answer=None).checks, path


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("planner",), "magic", "/planner"),
        (("planner",), 3, "/planner"),
        (("system", "devices"), 1_000_001, "/system/devices"),
        (("mini_batch",), 2**62, "/mini_batch"),
        (("rules", "micro_batch_sizes"), [], "/rules/micro_batch_sizes"),
        (("rules", "micro_batch_sizes"), [4, 2], "/rules/micro_batch_sizes"),
        (("rules", "micro_batch_sizes"), [2, 3], "/rules/micro_batch_sizes/1"),
        (("rules", "forwards_backwards"), [65], "/rules/forwards_backwards/0"),
        (("rules", "in_flight"), "some", "/rules/in_flight"),
        (("least_memory_bytes",), 3, "/least_memory_bytes"),
        (("time_per_sample_ticks",), [2, 4], "/time_per_sample_ticks"),
        (("iteration_ticks",), None, "/iteration_ticks"),
        (("lower_bound", "proof"), {"left_out": []}, "/lower_bound/proof/left_out"),
        (("lower_bound", "proof"), [], "/lower_bound/proof"),
        (("stages", 0, "more"), 1, "/stages/0/more"),
    ],
)
def test_malformed_documents(path: tuple[str | int, ...], value: Any, where: str) -> None:
    """What is malformed is named by its place."""
    assert refusal(verify, altered(good_plan(), path, value)).where == where


def test_too_many_passes() -> None:
    """Micro-batches by the billion are refused before any is looked at."""
    plan = good_plan()
    plan["mini_batch"] = 2**40
    with pytest.raises(InputError, match="more than 4000000 passes") as caught:
        verify(plan)
    assert caught.value.where == "/stages"


def test_searches_that_are_left_out_or_out_of_reach() -> None:
    """Bounds that rest on a search are unchecked without it, and so is all that rests on them."""
    bound = {"value": 300_000, "method": "chains", "tier": "enumerated", "proof": {"left_out": ["d"]}}
    plan = graph_plan_document(MODEL, ASKED, STAGES, bound)
    shallow = verify_training_plan(plan, as_training_model(MODEL), SHA256)
    open_ = {check.name: check.detail for check in shallow.checks if check.verdict == "unchecked"}
    assert set(open_) == {"lower bound", "ratio", "optimal"}
    assert SHALLOW in open_["lower bound"]
    assert not meets_tier(shallow, "enumerated")
    assert verify(plan, None).verdict == "unchecked"
    assert verify(plan, False).verdict == "false"
    assert meets_tier(verify(plan), "enumerated")


def test_work_that_is_interrupted() -> None:
    """What was not checked by then is unchecked."""

    def search(_claim: GraphClaim) -> Any:
        raise TimeoutError

    def unused(*_: Any) -> Any:
        raise AssertionError

    bound = {"value": 300_000, "method": "exhaustive", "tier": "enumerated", "proof": {}}
    none = no_graph_plan_document(MODEL, {**ASKED, "memory_bytes": 20}, {**bound, "value": 30}, STAGES)
    for plan in (graph_plan_document(MODEL, ASKED, STAGES, bound), none):
        searches = TrainingSearches(unused, unused, search)
        report = verify_training_plan(
            plan, as_training_model(MODEL), SHA256, searches=searches, ended_by=(TimeoutError,)
        )
        assert report.verdict == "unchecked"


def test_the_bandwidth_that_the_user_says() -> None:
    """It is a row of its own."""
    for bandwidth, verdict in ((5 * 10**9, "ok"), (10**9, "false")):
        due = {"bandwidth_bytes_per_s": bandwidth}
        report = verify_training_plan(good_plan(), as_training_model(MODEL), SHA256, system_due=due)
        assert report.verdict == verdict


def test_lines_and_sizes_that_differ() -> None:
    """Stages in one line, with micro-batches of their own sizes and other orders, pass where they are allowed to."""
    line = [Planned(["a"], 1, 2, 8, 2), Planned(["c"], 1, 4, 3), Planned(["b"], 2, 4, 2), Planned(["d"], 1, 4, 1)]
    asked = {**ASKED, "memory_bytes": 10**6, "sequential": True, "per_stage": True, "intervals": (1, 2)}
    plan = graph_plan_document(MODEL, asked, line)
    assert verify(plan).verdict == "ok", verify(plan)
    assert {(row["source"], row["target"]) for row in plan["transfers"]} >= {(0, 1), (1, 2), (2, 3)}
    assert failures(altered(plan, ("rules", "per_stage_micro_batch"), False))[0] == "micro-batch sizes"
    assert failures(altered(plan, ("rules", "forwards_backwards"), [1]))[0] == "orders"
    assert "transfers" in failures(altered(plan, ("system", "sequential"), False))


def _no_plan(value: int, method: str = "layer", limit: int = 20, **changes: Any) -> Any:
    tier = "exact" if method == "layer" else "enumerated"
    bound = {"value": value, "method": method, "tier": tier, "proof": {"left_out": []} if method == "chains" else {}}
    return {**no_graph_plan_document(MODEL, {**ASKED, "memory_bytes": limit}, bound, STAGES), **changes}


def test_no_plan() -> None:
    """A bound of the memory above what devices have is a proof; a plan shows what memory would do."""
    due = least_layer(MODEL, ASKED)
    report = verify(_no_plan(due))
    assert report.verdict == "ok", report
    assert report.sentence() == "valid, proven that there is no plan within the memory of the devices"
    unproven = verify(_no_plan(due, limit=due))
    assert (unproven.verdict, unproven.tier) == ("ok", "none")
    searched = _no_plan(due + 1, "exhaustive")
    assert verify(searched).verdict == "ok"
    shallow = verify_training_plan(searched, as_training_model(MODEL), SHA256)
    assert [check.name for check in shallow.checks if check.verdict == "unchecked"] == ["memory bound", "no plan"]
    none = no_graph_plan_document(MODEL, {**ASKED, "memory_bytes": 20}, _no_plan(due)["memory_bound"], None)
    assert verify(none).verdict == "ok"


NO_PLANS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a bound by layer": ("memory bound", lambda p: p["memory_bound"].update(value=p["memory_bound"]["value"] + 1)),
    "a bound above the plan": (
        "memory bound",
        lambda p: p["memory_bound"].update(value=55, method="exhaustive", tier="enumerated"),
    ),
    "a method": ("memory bound", lambda p: p["memory_bound"].update(method="work")),
    "proven": ("no plan", lambda p: p.update(proven=False)),
    "less memory": ("least memory", lambda p: p.update(least_memory_bytes=53)),
    "more memory": ("least memory", lambda p: p.update(least_memory_bytes=55)),
    "no memory": ("least memory", lambda p: p.update(least_memory_bytes=None)),
    "memory that there is": ("least memory", lambda p: p["system"].update(memory_bytes=54)),
    "stages": ("stages", lambda p: p.update(stages=p["least_memory_stages"])),
    "a figure": ("stage figures", lambda p: p["least_memory_stages"][0].update(forward_ticks=1)),
    "a stage that is missing": ("layers", lambda p: p["least_memory_stages"].pop()),
    "too few in flight": ("in flight", lambda p: p["least_memory_stages"][0].update(in_flight=2)),
}


@pytest.mark.parametrize("what", NO_PLANS)
def test_every_claim_of_no_plan_has_a_row(what: str) -> None:
    """Whatever is false in a document that says that there is none, the row that says so fails."""
    row, broken = NO_PLANS[what]
    plan = _no_plan(least_layer(MODEL, ASKED))
    broken(plan)
    assert row in failures(plan)


def test_every_single_change_of_no_plan_is_caught() -> None:
    """The same for every value; the bound may be lower, and devices may be fewer, have less and other links."""
    free = [("model", "name"), ("stopped",), ("elapsed_s",), ("reason",), ("rules",), ("system",)]

    def is_true(path: tuple[str | int, ...], other: Any) -> bool:
        lower = path == ("memory_bound", "value") and 20 < other < least_layer(MODEL, ASKED)
        return lower or path in free or path[:1] in free

    missed, _ = unnoticed(_no_plan(least_layer(MODEL, ASKED)), failures, is_true)
    assert missed == []


def test_plans_of_the_reference(shared_reference: Path) -> None:
    """The plans of the six models, whose iterations are known, pass whole."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["models"]:
        model, asked, stages = reference_case(case)
        plan = graph_plan_document(model, asked, stages)
        assert plan["iteration_ticks"] == case["optimum_ticks"]
        assert verify(plan, model=model).verdict == "ok"
        missed = copy.deepcopy(plan)
        missed["iteration_ticks"] -= 1
        assert verify(missed, model=model).verdict == "false"


def _check_random(seed: int) -> bool:
    """Verify the best plan, or the leanest where none fits; return whether one does."""
    model, asked = random_graph_case(seed)
    best = best_pipeline(model, asked)
    if best is not None:
        plan = graph_plan_document(model, asked, planned_stages(model, best[1]))
        assert plan["iteration_ticks"] == best[0]
        assert verify(plan, model=model).verdict == "ok", (seed, verify(plan, model=model).sentence())
        return True
    leanest = leanest_pipeline(model, asked)
    stages = None if leanest is None else planned_stages(model, leanest[1])
    bound = {"value": least_layer(model, asked), "method": "layer", "tier": "exact", "proof": {}}
    none = no_graph_plan_document(model, asked, bound, stages)
    assert verify(none, model=model).verdict == "ok", (seed, verify(none, model=model).sentence())
    return False


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(1000, 1100), marks=pytest.mark.slow)])
def test_plans_of_random_models(seeds: range) -> None:
    """Oracles' plans of random models pass, in one line or not, with sizes that differ or not."""
    feasible = [_check_random(seed) for seed in seeds]
    assert len(seeds) // 8 < sum(feasible) < len(seeds)
