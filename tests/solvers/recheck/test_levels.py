"""All plans of several levels of devices searched again, against those that brute force and planners find."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import pytest
from nested_models import nested_problem, random_question
from nested_oracles import Oracle
from training_models import build_model
from training_plan_documents import training_claim

from mtpp.checker.training.model import training_model_in_ticks
from mtpp.checker.training.plan import verify_training_plan
from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.training_plan import no_plan_document, training_plan_document
from mtpp.formats.training.models import read_training_model
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.nested.planner import plan_nested
from mtpp.solvers.recheck import levels as recheck_levels
from mtpp.solvers.recheck.levels import search_levels
from mtpp.solvers.recheck.pipelines import TooLarge, Unwatched, search_all
from mtpp.solvers.recheck.training import recheck_bound, recheck_no_plan
from mtpp.training.model import TrainingModel
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import NoPlan
from mtpp.training.problem import Schemes
from mtpp.units import PICOSECONDS

SHA256 = "0" * 64
HAIR = Fraction(1, 10**12)

Found = Callable[[Fraction | None, int], bool]
"""Whether there is a plan below a limit of time, with so many bytes on each device."""


def system_of(machine: Machine, rest: dict[str, Any]) -> dict[str, Any]:
    """Return what a plan says of the devices and the rules."""
    schemes = rest["schemes"]
    return {
        "devices": machine.count,
        "memory_bytes": rest["memory_bytes"],
        "bandwidth_bytes_per_s": machine.levels[0].link.bandwidth_bytes_per_s,
        "max_micro_batches": rest["micro_batches"],
        "exact_micro_batches": rest["exact_micro_batches"],
        "convention": "paper",
        "data_parallel": schemes.data_parallel,
        "tensor_parallel": schemes.tensor_parallel,
        "recompute": schemes.recompute,
        "topology": machine.topology(),
    }


def search_of(model: TrainingModel, machine: Machine, rest: dict[str, Any]) -> Found:
    """Return the search that is run again, of one question."""
    ticks = training_model_in_ticks(model, machine.levels[0].link.bandwidth_bytes_per_s)
    system = system_of(machine, rest)
    return lambda below, memory: search_levels(ticks, system, below, memory, Unwatched()).found


def check_against_brute_force(seed: int) -> tuple[int, bool]:
    """Search around the optimum and the least memory; return the number of levels and whether there is a plan."""
    model, machine, rest = random_question(seed)
    oracle = Oracle(model, machine, **rest)
    found, memory = search_of(model, machine, rest), rest["memory_bytes"]
    best, least = oracle.best(), oracle.least_memory()
    assert found(None, memory) == (best is not None)
    if best is not None:
        assert not found(best, memory)
        assert not found(best * Fraction(9, 10), memory)
        assert found(best + HAIR, memory)
        assert found(2 * best + 1, memory)
    if least is None:
        assert not found(None, 2**61)
        return len(machine.levels), False
    assert found(None, least)
    assert not found(None, least - 1)
    tightest = Oracle(model, machine, **{**rest, "memory_bytes": least}).best()
    assert tightest is not None
    assert not found(tightest, least)
    assert found(tightest + HAIR, least)
    return len(machine.levels), best is not None


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(60), range(2000, 2120)])
def test_searches_agree_with_brute_force(seeds: range) -> None:
    """One, two and three levels, feasible or not, to the smallest difference of time and to the byte."""
    seen = {check_against_brute_force(seed) for seed in seeds}
    assert seen == {(levels, feasible) for levels in (1, 2, 3) for feasible in (False, True)}


SHAPES = ((4, 2), (2, 4), (3, 3), (4, 4), (2, 2, 2), (8, 2), (2, 3, 2), (1, 4, 3), (4, 1, 2), (2, 2, 2, 2), (2, 16))


def larger_question(seed: int) -> tuple[TrainingModel, Machine, dict[str, Any]]:
    """Return one that is too large for brute force: up to ten layers, up to 32 devices."""
    chosen = random.Random(seed)
    model = build_model(chosen.randint, chosen.choice((4, 6, 8, 10)))
    unit = PICOSECONDS["s"] // PICOSECONDS[model.time_unit]
    machine = Machine.of_levels(
        tuple(Level(count, Link(unit * chosen.choice((20, 7, 2, 1)))) for count in chosen.choice(SHAPES))
    )
    leanest = [
        min(one.memory_a + one.memory_b for ones in layer.configurations.values() for one in ones)
        for layer in model.layers
    ]
    exactly = chosen.random() < 0.3
    return (
        model,
        machine,
        {
            "memory_bytes": max(1, sum(leanest) * chosen.randint(2, 16) // 4),
            "micro_batches": chosen.randint(1, machine.count) if exactly else chosen.choice((machine.count, 10**6)),
            "exact_micro_batches": exactly,
            "schemes": Schemes(chosen.random() < 0.9, chosen.random() < 0.9, chosen.random() < 0.9),
        },
    )


def document_of(problem: NestedProblem) -> Any:
    """Return what the planner writes, as it is read back."""
    result = plan_nested(problem, PlanLimits())
    if isinstance(result, NoPlan):
        written = no_plan_document(problem, result, file={"sha256": SHA256}, elapsed_s=0.1)
    else:
        written = training_plan_document(
            result, file={"sha256": SHA256}, knapsack="exact", heuristic_differs=[], elapsed_s=0.1
        )
    return parse_json(document_text(written).encode(), "plan")


def check_document(seed: int) -> str:
    """Have a planner's document confirmed, and false ones like it refuted; return what it says."""
    model, machine, rest = larger_question(seed)
    try:
        problem = nested_problem(model, machine, rest)
    except InputError:
        return "refused"
    plan = document_of(problem)
    assert verify_training_plan(plan, model, SHA256).passed
    watcher = Unwatched()
    if plan["feasible"]:
        claim = training_claim(plan, model)
        assert plan["optimal"]
        for value, passed in ((0, True), (-HAIR, True), (HAIR, False), (Fraction(1), False)):
            other = replace(claim, value=claim.value + value)
            assert recheck_bound(other, "downset", watcher).passed is passed
        return "plan"
    ticks = training_model_in_ticks(model, machine.levels[0].link.bandwidth_bytes_per_s)
    assert all(check.passed for check in recheck_no_plan(plan, ticks, watcher))
    least = plan["least_memory_bytes"]
    if least is None:
        return "never"
    for wrong in (least + 1, least - 1):
        checks = recheck_no_plan({**plan, "least_memory_bytes": wrong}, ticks, watcher)
        assert [check.passed for check in checks] == [True, False]
    richer = {**plan, "system": {**plan["system"], "memory_bytes": least}}
    assert recheck_no_plan(richer, ticks, watcher)[0].passed is False
    return "none"


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(5000, 5150), marks=pytest.mark.slow)])
def test_documents_are_confirmed_and_false_ones_refuted(seeds: range) -> None:
    """Bounds a hair too high, and memory that is a byte off."""
    seen = [check_document(seed) for seed in seeds]
    assert {"plan", "none"} <= set(seen)


@pytest.mark.slow
def test_the_order_of_layers_does_not_matter() -> None:
    """Layers of the file in another order, and edges too: the same times can be reached."""
    for seed in range(40):
        model, machine, rest = larger_question(seed)
        shuffled = random.Random(seed)
        layers, edges = list(model.layers), list(model.edges)
        shuffled.shuffle(layers)
        shuffled.shuffle(edges)
        other = TrainingModel(model.name, model.time_unit, layers, edges)
        found, again = search_of(model, machine, rest), search_of(other, machine, rest)
        for limit in (None, *(Fraction(shuffled.randint(1, 10**5)) for _ in range(6))):
            assert found(limit, rest["memory_bytes"]) == again(limit, rest["memory_bytes"])


@pytest.mark.slow
def test_levels_of_one_device_change_nothing() -> None:
    """Outside, between or inside: as with the others alone, and as the search for one level has it."""
    checked = 0
    for seed in range(300):
        model, machine, rest = larger_question(seed)
        counts = [level.devices for level in machine.levels]
        if prod(counts) > 8:
            continue
        rate = machine.levels[0].link.bandwidth_bytes_per_s
        flat = Machine.of_levels((Level(prod(counts), Link(rate)),))
        padded = Machine.of_levels((flat.levels[0], Level(1, Link(1)), Level(1, Link(7))))
        ticks = training_model_in_ticks(model, rate)
        one, more = system_of(flat, rest), system_of(padded, rest)
        for limit in (None, *(Fraction(10**i, 3) for i in range(1, 9))):
            expected = search_all(ticks, one, limit, rest["memory_bytes"], Unwatched()).found
            assert search_levels(ticks, more, limit, rest["memory_bytes"], Unwatched()).found == expected
        checked += 1
    assert checked > 20


def claimed(seed: int = 3) -> Any:
    """Return the claim of a plan with a bound of tier ``enumerated``."""
    while True:
        model, machine, rest = larger_question(seed)
        seed += 1
        try:
            plan = document_of(nested_problem(model, machine, rest))
        except InputError:
            continue
        if plan["feasible"] and plan["lower_bound"]["method"] == "downset" and len(model.layers) > 4:
            return training_claim(plan, model)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("MOST_DOWNSETS", 3, "the model has more than 3 downsets"),
        ("MOST_BYTES", 3000, "it needs more than 0 MB of memory"),
    ],
)
def test_searches_out_of_reach_are_said_to_be(
    name: str, value: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is neither confirmed nor refuted."""
    claim = claimed()
    assert recheck_bound(claim, "downset", Unwatched()).passed
    monkeypatch.setattr(recheck_levels, name, value)
    check = recheck_bound(claim, "downset", Unwatched())
    assert (check.passed, check.detail) == (None, f"downset: the search cannot be run again: {reason}")


@pytest.mark.parametrize("part", ["edge_bytes", "weight_bytes", "edges"])
def test_costs_that_could_wrap_are_out_of_reach(part: str) -> None:
    """At any level."""
    claim = claimed()
    larger = [(*one[:2], 2**60) if part == "edges" else 2**60 for one in getattr(claim.model, part)]
    model = replace(claim.model, **{part: larger})
    with pytest.raises(TooLarge, match="64 bits"):
        search_levels(model, claim.system, claim.value, claim.system["memory_bytes"], Unwatched())


class _Impatient(Unwatched):
    """Ends a search after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.last = -1

    def searched(self, done: int, downsets: int) -> None:
        """Take note."""
        assert self.last <= done <= downsets
        self.last = done
        self.looks -= 1
        if self.looks == 0:
            raise KeyboardInterrupt


def test_searches_can_be_ended() -> None:
    """Between any two slices; what is told in between only grows."""
    claim = claimed()
    for looks in (1, 2, 5):
        with pytest.raises(KeyboardInterrupt):
            recheck_bound(claim, "downset", _Impatient(looks))
    assert recheck_bound(claim, "downset", _Impatient(10**6)).passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "unit", "counts", "memory_mib", "micro_batches"),
    [
        ("bert32a100", "s", (8, 8), 2048, 1920),
        ("bert32a100", "s", (4, 4, 4), 8192, 480),
        ("bert32a100", "s", (8, 8), 700, 1920),  # there is none
        ("resnet", "ms", (8, 4), 4096, 7680),
    ],
)
def test_plans_of_published_models_are_optimal(
    name: str, unit: str, counts: tuple[int, ...], memory_mib: int, micro_batches: int, shared_data: Path
) -> None:
    """On clusters of several levels, to the last fraction of a tick."""
    model, _ = read_training_model(str(shared_data / "piper" / f"{name}.json"), unit)
    rates = (300, 100, 12) if len(counts) == 3 else (300, 25)
    machine = Machine.of_levels(tuple(Level(one, Link(rate * 10**9)) for one, rate in zip(counts, rates, strict=True)))
    limits = {"memory_bytes": memory_mib * 2**20, "micro_batches": micro_batches}
    plan = document_of(nested_problem(model, machine, limits))
    assert verify_training_plan(plan, model, SHA256).passed
    if plan["feasible"]:
        claim = training_claim(plan, model)
        assert plan["optimal"]
        assert recheck_bound(claim, "downset", Unwatched()).passed
        assert recheck_bound(replace(claim, value=claim.value + HAIR), "downset", Unwatched()).passed is False
    else:
        ticks = training_model_in_ticks(model, machine.levels[0].link.bandwidth_bytes_per_s)
        assert [check.passed for check in recheck_no_plan(plan, ticks, Unwatched())] == [True, True]
