"""Plans for devices within devices: right ones pass, and every single thing that is changed in one is caught."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import nested_oracles
import pytest
from nested_oracles import OracleStage, OracleSuperstage
from refusals import refusal
from tampering import unnoticed
from training_models import four_layers

from mtpp.checker.training.plan import verify_training_plan
from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.training_plan import training_plan_document
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.training.nested_plan import NestedPlan, Superstage
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.plan import LayerStage, TimeBound

SHA256 = "0" * 64
LEVELS = (Level(3, Link(3 * 10**9)), Level(2, Link(2 * 10**9)), Level(3, Link(10**9)))
PIPELINE = (
    Superstage(
        2,
        (
            Superstage(1, (LayerStage((0,), 2, 1, (1,)), LayerStage((1,), 1, 1, (0,)))),
            Superstage(1, (LayerStage((2,), 1, 2, (1,)),)),
        ),
    ),
    Superstage(1, (Superstage(2, (LayerStage((3,), 3, 1, (0,)),)),)),
)
"""Three levels, with data parallelism at each of them."""


def nested_plan() -> NestedPlan:
    """Return a plan for three levels, with a bound that spreads work over all devices."""
    problem = NestedProblem.build(four_layers(), Machine.of_levels(LEVELS, 200), micro_batches=20)
    work = [min((30 + v) * 10**3 + t * 10**3 for t in (1, 2)) for v in range(4)]
    bound = TimeBound(Fraction(sum(work), 18), "work", "exact", {"rule": "devices", "total": sum(work)})
    return NestedPlan(problem, "piper", PIPELINE, bound, "finished")


def document(plan: NestedPlan) -> Any:
    """Return a plan as it is read from its file."""
    written = training_plan_document(
        plan, file={"sha256": SHA256}, knapsack="exact", heuristic_differs=[], elapsed_s=0.1
    )
    return parse_json(document_text(written).encode(), "plan")


def failures(plan: Any) -> list[str]:
    """Return the names of the checks that fail."""
    return [check.name for check in verify_training_plan(plan, four_layers(), SHA256).checks if check.passed is False]


def oracle_parts(parts: Any, ways: Any) -> tuple[Any, ...]:
    """Return a pipeline as the oracle of nested plans has it."""
    return tuple(
        OracleSuperstage(part.data_parallel, oracle_parts(part.inside, ways))
        if isinstance(part, Superstage)
        else OracleStage(
            tuple(
                (v, ways[v].configurations[part.tensor_parallel][c])
                for v, c in zip(part.layers, part.chosen, strict=True)
            ),
            part.data_parallel,
            part.tensor_parallel,
        )
        for part in parts
    )


def test_nested_plans_pass() -> None:
    """Three levels, whose time and memory an oracle confirms, and the innermost alone."""
    plan = nested_plan()
    report = verify_training_plan(document(plan), four_layers(), SHA256)
    assert [check for check in report.checks if check.passed is False] == []
    oracle = nested_oracles.Oracle(four_layers(), Machine.of_levels(LEVELS), memory_bytes=200, micro_batches=20)
    memory, time = oracle.cost(oracle_parts(PIPELINE, four_layers().layers))
    assert (memory, time) == (max(figures.memory_bytes for figures in plan.figures), plan.time_per_sample)
    assert {check.name: check.detail for check in report.checks}["time per sample"].startswith(f"{time} ticks")
    problem = NestedProblem.build(four_layers(), Machine.of_levels(LEVELS[:1], 200), micro_batches=20)
    flat = NestedPlan(problem, "piper", [LayerStage((0, 1, 2, 3), 3, 1, (1, 1, 1, 1))], plan.lower, "finished")
    assert failures(document(flat)) == []


def test_every_single_change_is_caught() -> None:
    """Whatever value of a good plan is another one, the plan is malformed or a check fails."""
    plan = document(nested_plan())
    trusted = {("planner",), ("model", "name"), ("stopped",), ("elapsed_s",), ("knapsack", "method")}
    still_true = {"memory_bytes", "max_micro_batches", "bandwidth_bytes_per_s"}  # by one more or less
    missed, count = unnoticed(
        plan, failures, lambda path, _: path in trusted or (path[0] == "system" and path[-1] in still_true)
    )
    assert missed == []
    assert count > 150


@pytest.mark.parametrize("level", [0, 1, 2])
def test_too_many_devices_at_a_level(level: int) -> None:
    """Each level has its own number of devices, whatever there is in all."""
    counts = [3, 2, 3]
    counts[level] -= 1
    counts[level - 1] += 3
    levels = [replace(one, devices=count) for one, count in zip(LEVELS, counts, strict=True)]
    plan = document(nested_plan())
    for stated, one in zip(plan["system"]["topology"], levels, strict=True):
        stated["devices"] = one.devices
    plan["system"]["devices"] = levels[0].devices * levels[1].devices * levels[2].devices
    assert "superstages" in failures(plan)


def test_bounds_for_one_level_prove_nothing_of_several() -> None:
    """What counts gradients at one bandwidth is not claimed of more."""
    plan = document(nested_plan())
    plan["lower_bound"]["proof"] = {"rule": "layer", "layer": 0}
    assert failures(plan) == ["lower bound", "ratio", "optimal"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"superstages": None}, "/superstages: missing key"),
        ({"convention": "program"}, "/system/convention: has no rule for several levels"),
        ({"topology": []}, "/system/topology: a topology has 1 to 20 levels, not 0"),
        ({"topology": None}, "/superstages: is only known of several levels of devices"),
        ({"devices": 17}, "/system/devices: is not the product"),
        ({"bandwidth_bytes_per_s": 1}, "/system/bandwidth_bytes_per_s: is not that of the innermost level"),
    ],
    ids=str,
)
def test_malformed_nesting_is_bad_input(change: dict[str, Any], message: str) -> None:
    """With the place."""
    plan = document(nested_plan())
    if "superstages" in change:
        del plan["superstages"]
    else:
        plan["system"] |= change
    assert str(refusal(verify_training_plan, plan, four_layers(), SHA256)).startswith(message)


def test_nesting_without_end_is_refused() -> None:
    """However deep, no traceback."""
    plan = document(nested_plan())
    row = plan["superstages"][0]
    for _ in range(300):
        row = {**row, "superstages": [row]}
    plan["superstages"] = [row]
    with pytest.raises(InputError, match="nested more than 20 deep"):
        verify_training_plan(plan, four_layers(), SHA256)
