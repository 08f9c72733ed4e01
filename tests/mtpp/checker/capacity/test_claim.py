"""Claims on capacity: true ones hold, forged ones do not."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from layer_memories import graph_of, random_problem
from refusals import refusal

from mtpp.checker.capacity.claim import ROWS, LayersDue, check_capacity
from mtpp.checker.capacity.shape import capacity_rule
from mtpp.checker.graph import TickGraph, model_in_ticks
from mtpp.checker.report import Check
from mtpp.formats.graphs.native import plain_document
from mtpp.solvers.layer_chains.search import least_latency_plan
from mtpp.solvers.serving.capacity import CapacityProblem, LargestFit

VALUE, COLUMNS, NEXT = ROWS


def document_of(problem: CapacityProblem, value: int) -> dict[str, Any]:
    """Return the graph of the layers at a value, as a document."""
    context, _, batch = problem.load.at(value)
    return plain_document(graph_of(problem.holdings[0].phases[0], context, batch))


def ticks_of(problem: CapacityProblem, value: int) -> TickGraph:
    """Return the graph of the layers at a value, as the checker reads it."""
    return model_in_ticks(document_of(problem, value), 1, 1)


def plan_of(problem: CapacityProblem, found: LargestFit) -> dict[str, Any]:
    """Return all of a plan that a claim on capacity rests on."""
    context, sequences, batch = problem.load.at(found.value)
    chain = least_latency_plan(problem.tables_at(found.value), problem.devices)
    assert chain is not None
    rows = [problem.holdings[c] for c in problem.devices.class_of]
    devices = [
        {
            "stage_memory_bytes": row.limit,
            "activation_reserve_bytes": row.reserve or 0,
            "peak": "order" if row.reserve is None else "reserve",
        }
        for row in rows
    ]
    prompts = problem.holdings[0].phases[0].whole_prompts
    return {
        "k": problem.devices.most_used,
        "system": {"sequences": sequences},
        "machine": {"order": "free" if problem.devices.free else "fixed", "devices": devices},
        "model": {"dims": {"prompt" if prompts else "context": context, "batch": batch}},
        "together": [[f"op{v}" for v in group] for group in problem.groups],
        "stages": [{"device": {"index": stage.device}} for stage in chain.stages],
        "assignment": {f"op{v}": s for s, one in enumerate(chain.stages) for v in range(one.start, one.stop)},
        "capacity": problem.proof(found).to_document(),
    }


def checked(plan: dict[str, Any], graph: TickGraph, due: LayersDue | None = None) -> dict[str, Check]:
    """Return the rows on a plan's capacity by name."""
    capacity_rule(plan["capacity"], ("capacity",))
    return {row.name: row for row in check_capacity(plan, graph, due, ())}


def solved(seed: int, objective: str) -> tuple[CapacityProblem, LargestFit]:
    """Return a made-up problem with a next value at which nothing fits."""
    random = Random(seed)
    while True:
        problem = random_problem(random, objective)
        found = problem.largest_fit()
        if found is not None and found.next_infeasible is not None:
            return problem, found


@pytest.mark.parametrize("objective", ["context", "sequences"])
def test_true_claims_hold(objective: str) -> None:
    """In both orders of devices, by what a document has alone and with graphs of the model."""
    random, seen = Random(8), 0
    for _ in range(80):
        problem = random_problem(random, objective)
        found = problem.largest_fit()
        if found is None:
            continue
        seen += 1
        plan, graph = plan_of(problem, found), ticks_of(problem, found.value)
        phase = "prefill" if problem.holdings[0].phases[0].whole_prompts else "decode"
        due = {(1, phase, value): document_of(problem, value) for value in (found.value, found.value + 1)}
        for rows in (checked(plan, graph), checked(plan, graph, due)):
            assert [row for row in rows.values() if not row.passed] == []
    assert seen > 40


@pytest.mark.parametrize("objective", ["context", "sequences"])
def test_a_value_that_is_too_small_is_false(objective: str) -> None:
    """The next one fits; no value is beyond which it is too small either."""
    seen = 0
    for seed in range(30):
        problem, found = solved(seed, objective)
        if found.value == 1:
            continue
        seen += 1
        less = LargestFit(found.value - 1, found.value, 1)
        rows = checked(plan_of(problem, less), ticks_of(problem, less.value))
        assert rows[NEXT].passed is False
        assert rows[NEXT].detail == f"stages fit at {found.value}, too"
        anything = LargestFit(found.value, None, 1)
        rows = checked(plan_of(problem, anything), ticks_of(problem, anything.value))
        assert rows[NEXT].passed is False
    assert seen > 10


@pytest.mark.parametrize("objective", ["context", "sequences"])
def test_a_value_that_does_not_fit_is_false(objective: str) -> None:
    """Some stage needs more than its limit."""
    problem, found = solved(3, objective)
    plan = plan_of(problem, found)
    more = LargestFit(found.value + 1, found.value + 2, 1)
    context, sequences, batch = problem.load.at(more.value)
    key = "prompt" if "prompt" in plan["model"]["dims"] else "context"
    plan["system"]["sequences"], plan["model"]["dims"] = sequences, {key: context, "batch": batch}
    plan["capacity"] = problem.proof(more).to_document()
    rows = checked(plan, ticks_of(problem, more.value))
    assert rows[VALUE].passed is False
    assert f"bytes at {more.value}, the limit is" in rows[VALUE].detail
    assert rows[NEXT].passed is None


def test_memory_that_grows_faster_than_the_models_is_false() -> None:
    """Equal at the value and more at the next one: only the model tells."""
    problem, found = solved(11, "context")
    plan, graph = plan_of(problem, found), ticks_of(problem, found.value)
    row = plan["capacity"]["layers"][0]
    row["caches"] = [[0, None, 0, size] for size in problem.holdings[0].phases[0].cache_bytes(found.value)]
    phase = row["phase"]
    rows = checked(plan, graph)
    assert rows[COLUMNS].passed
    assert "give the model to hold them to it at the next one" in rows[COLUMNS].detail
    due = {(1, phase, value): document_of(problem, value) for value in (found.value, found.value + 1)}
    rows = checked(plan, graph, due)
    assert rows[COLUMNS].passed is False
    assert rows[COLUMNS].detail.startswith("the caches of the layers differ from those of the graph at ")


FORGERIES = {
    "value": (("capacity", "context"), 7, VALUE),
    "next": (("capacity", "next_infeasible"), 10**6, VALUE),
    "dims": (("model", "dims", "context"), 10**6, VALUE),
    "sequences": (("system", "sequences"), 10**6, VALUE),
    "batch": (("model", "dims", "batch"), 10**6, VALUE),
    "degrees": (("machine", "devices", 0, "tensor_parallel"), [1, 2], VALUE),
    "no memory": (("capacity", "layers"), [], VALUE),
    "weights": (("capacity", "layers", 0, "weights", 0), 0, COLUMNS),
    "GPUs": (("stages", 0, "tensor_parallel"), 2, VALUE),
    "assignment": (("assignment", "op0"), 99, VALUE),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_claims_are_false(name: str) -> None:
    """Whatever they are forged in."""
    path, forged, due = FORGERIES[name]
    for seed in range(40):
        problem, found = solved(seed, "context")
        plan = plan_of(problem, found)
        if "context" in plan["model"]["dims"] and plan["capacity"]["layers"][0]["weights"][0]:
            break
    place: Any = plan
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = forged
    if name == "degrees":
        plan["degrees"] = [1, 2]
    if name == "weights":
        plan["machine"]["devices"] = [{**one, "stage_memory_bytes": 10**6} for one in plan["machine"]["devices"]]
    assert checked(plan, ticks_of(problem, found.value))[due].passed is False


def test_malformed_claims_are_refused() -> None:
    """By the place where they are."""
    problem, found = solved(1, "context")
    good = problem.proof(found).to_document()
    for path, wrong, where in (
        (("layers", 0, "caches"), [], "/capacity/layers/0/caches"),
        (("layers", 0, "shared"), [[1, []]], "/capacity/layers/0/shared/0/1"),
        (("layers", 0, "shared"), [[1, [1, 0]]], "/capacity/layers/0/shared/0/1"),
        (("layers", 0, "passing"), [[1, 1, 5, [5]]], "/capacity/layers/0/passing/0/3"),
        (("layers", 0, "passing"), [[1, 1, -1, []]], "/capacity/layers/0/passing/0/3"),
        (("layers", 0, "passing"), [[1, 1, 0, [99]]], "/capacity/layers/0/passing/0/3"),
        (("layers", 0, "bits_of_32_elements"), 0, "/capacity/layers/0/bits_of_32_elements"),
        (("value",), 0, "/capacity/value"),
    ):
        bad: Any = copy.deepcopy(good)
        place = bad
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = wrong
        assert refusal(capacity_rule, bad, ("capacity",)).where == where
