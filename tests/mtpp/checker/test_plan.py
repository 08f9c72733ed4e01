"""The independent verifier accepts what the definitions give, and names each single thing that departs from them."""

from __future__ import annotations

import ast
import copy
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import oracles
import pytest
from graph_strategies import problems
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_documents import SHA256, graph_document, plan_document

from mtpp.checker.plan import Report, verify_plan
from mtpp.checker.report import Verdict
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.machine.link import Link

MEMORY = Device("small", 10**12, 10**11, Link(10**9), fast_memory_bytes=100, activation_reserve_bytes=10, peak="order")


def diamond() -> CostGraph:
    """Make a → {b, c} → d in ns; a makes one tensor for both branches, and d one that nothing reads."""
    return CostGraph.build(
        name="diamond",
        time_unit="ns",
        ops=[
            Op("a", 4, "Conv", 60),
            Op("b", Fraction(5, 2), "Conv", 50),
            Op("c", 3, "Conv", 0),
            Op("d", Fraction(10001, 10000), "Add", 8),
        ],
        tensors=[
            Tensor("ta", "a", ("b", "c"), 7, None),
            Tensor("tb", "b", ("d",), 30, Fraction(1, 2)),
            Tensor("tc", "c", ("d",), 20, None),
            Tensor("td", "d", (), 5, None),
        ],
    )


ASSIGNMENT = (0, 1, 1, 3)


def detail(report: Report, name: str) -> str:
    """Return what the check of that name says."""
    return next(check.detail for check in report.checks if check.name == name)


@pytest.fixture
def plan() -> dict[str, Any]:
    """Return a correct plan of the diamond for four stages, one of them empty."""
    return plan_document(diamond(), MEMORY, 4, ASSIGNMENT, together=[["b", "c"]], embed=True)


@pytest.fixture
def model() -> dict[str, Any]:
    """Return the diamond as a document in its own time unit."""
    return graph_document(diamond())


def test_figures_worked_out_by_hand_pass(plan: dict[str, Any], model: dict[str, Any]) -> None:
    """Stage {b, c}: 2.5 + 3 ns of work, 7 bytes in once, 0.5 ns and 20 bytes out, 50 + 57 - 100 bytes too many."""
    middle = plan["stages"][1]
    # Steps of {b, c}: b holds ta and makes tb (7 + 30), c still holds ta and tb and makes tc (7 + 30 + 20).
    assert middle == {
        "index": 1,
        "ops": 2,
        "first": "b",
        "last": "c",
        "work": 5500,
        "input": 7000,
        "output": 500 + 20000,
        "overflow": 7000,
        "cost": 40000,
        "param_bytes": 50,
        "peak_bytes": 57,
    }
    assert plan["stages"][3]["work"] == 1001, "1.0001 ns is rounded up to whole picoseconds"
    assert [stage["cost"] for stage in plan["stages"]] == [11000, 40000, 0, 1001 + 20500]
    report = verify_plan(plan, model, graph_sha256=SHA256, model_given=True)
    assert report.passed
    assert {check.verdict for check in report.checks} == {"ok", None}
    assert [check.name for check in report.checks if check.fact] == [
        "system",
        "bandwidth",
        "memory",
        "dims",
        "groups",
        "stage memory",
    ]
    assert report.tier == "exact"
    assert report.ratio == 40000 / 4000


def test_embedded_graph_alone_is_enough(plan: dict[str, Any]) -> None:
    """Without the model the same plan passes on its embedded ticks, and what could not be checked is said."""
    report = verify_plan(plan, None)
    assert report.passed
    assert report.verdict == "ok"
    assert {"model file", "ticks", "embedded graph"} < {check.name for check in report.checks if check.fact}
    assert detail(report, "model file") == "not given: nothing holds the plan to a file"


Corrupt = Callable[[dict[str, Any]], None]


def put(*path: Any) -> Corrupt:
    """Return the change that sets the value at a path, the last argument."""
    *keys, last, value = path

    def change(plan: dict[str, Any]) -> None:
        target: Any = plan
        for key in keys:
            target = target[key]
        target[last] = value

    return change


def drop_op(plan: dict[str, Any]) -> None:
    """Leave op c without a stage."""
    del plan["assignment"]["c"]


def drop_stage(plan: dict[str, Any]) -> None:
    """Leave out the last stage."""
    del plan["stages"][-1]


STAGE_CORRUPTIONS = [
    put("stages", s, figure, value)
    for s in (1, 2)
    for figure, value in [
        ("index", 0),
        ("ops", 3),
        ("first", "c"),
        ("first", None),
        ("last", "b"),
        ("work", 1),
        ("input", 1),
        ("output", 1),
        ("overflow", 1),
        ("cost", 1),
        ("param_bytes", 1),
        ("peak_bytes", 1),
    ]
    if not (s == 2 and value is None)
]


@pytest.mark.parametrize("corrupt", STAGE_CORRUPTIONS)
def test_every_stage_figure_is_recomputed(corrupt: Corrupt, plan: dict[str, Any], model: dict[str, Any]) -> None:
    """One wrong figure of a stage, full or empty, fails the stage costs and nothing else."""
    corrupt(plan)
    for report in (verify_plan(plan, model, graph_sha256=SHA256), verify_plan(plan, None)):
        assert set(report.named(Verdict.FALSE)) == {"stage costs"}


def test_wrong_figure_is_named_with_both_numbers(plan: dict[str, Any]) -> None:
    """The first stage and figure that differ are named."""
    plan["stages"][1]["output"] = 20501
    assert detail(verify_plan(plan, None), "stage costs") == "stage 1: the plan says output 20501, it is 20500"


UNPROVEN = {"lower bound", "ratio", "optimal"}

CORRUPTIONS: list[tuple[Corrupt, set[str]]] = [
    (put("model", "sha256", "0" * 64), {"model file"}),
    (put("model", "sha256", None), {"model file"}),
    (put("model", "ops", 5), {"op and tensor counts"}),
    (put("model", "tensors", 3), {"op and tensor counts"}),
    (put("ticks_per_unit", 1), {"ticks"}),
    (put("time_unit", "us"), {"ticks"}),
    (put("bottleneck", 39999), {"bottleneck"}),
    (put("lower_bound", "value", 4001), UNPROVEN),
    (put("lower_bound", "value", 40001), UNPROVEN),
    (put("lower_bound", "method", "magic"), UNPROVEN),
    (put("lower_bound", "proof", "work", 3999), UNPROVEN),
    (put("lower_bound", "proof", "ops", ["b"]), UNPROVEN),
    (put("lower_bound", "proof", "ops", ["nobody"]), UNPROVEN),
    (put("lower_bound", "proof", "ops", []), UNPROVEN),
    (put("lower_bound", "proof", "rule", "guess"), UNPROVEN),
    (put("ratio", Decimal("10.000000000000002")), {"ratio"}),
    (put("ratio", None), {"ratio"}),
    (put("optimal", True), {"optimal"}),
    (put("together", [["b", "d"]]), {"together", "ratio", "optimal"}),
    (put("together", [["b", "nobody"]]), {"together", "ratio", "optimal"}),
    (put("assignment", "a", 4), {"assignment", "ratio", "optimal"}),
    (put("assignment", "a", -1), {"assignment", "ratio", "optimal"}),
    (put("assignment", "nobody", 0), {"assignment", "ratio", "optimal"}),
    (drop_op, {"assignment", "ratio", "optimal"}),
    (put("assignment", "d", 0), {"edges", "stage costs", "bottleneck", "ratio", "optimal"}),
    (put("assignment", "b", 0), {"together", "stage costs", "bottleneck", "ratio", "optimal"}),
    (put("k", 5), {"stage costs"}),
    (put("k", 3), {"assignment", "ratio", "optimal"}),
    (drop_stage, {"stage costs"}),
    (put("system", "activation_reserve_bytes", 20), set()),
    (put("system", "peak", "reserve"), {"stage costs", "bottleneck", "ratio"}),
    (put("system", "fast_memory_bytes", 99), {"stage costs", "bottleneck", "ratio"}),
    (put("system", "stage_memory_bytes", 107), set()),
    (put("system", "stage_memory_bytes", 106), {"stage memory", "ratio", "optimal"}),
    (put("system", "bandwidth_bytes_per_s", 10**9 - 1), {"embedded graph", "stage costs", "bottleneck", "ratio"}),
    (put("graph", "time_unit", "ns"), {"embedded graph"}),
    (put("graph", "ops", 1, "work", 2499), {"embedded graph"}),
    (put("graph", "ops", 1, "param_bytes", 0), {"embedded graph"}),
    (put("graph", "tensors", 0, "transfer", 6999), {"embedded graph"}),
    (put("graph", "tensors", 0, "bytes", 6), {"embedded graph"}),
    (put("graph", "tensors", 0, "consumers", ["b"]), {"embedded graph"}),
    (put("graph", "tensors", 3, "name", "other"), {"embedded graph"}),
]


@pytest.mark.parametrize(("corrupt", "expected"), CORRUPTIONS)
def test_single_corruptions_fail_the_right_checks(
    corrupt: Corrupt, expected: set[str], plan: dict[str, Any], model: dict[str, Any]
) -> None:
    """Each wrong value fails the checks that are about it, and only those."""
    corrupt(plan)
    report = verify_plan(plan, model, graph_sha256=SHA256, model_given=True)
    assert set(report.named(Verdict.FALSE)) == expected
    assert report.passed is (not expected)
    assert report.tier == ("none" if "lower bound" in expected else "exact")


def test_offending_edge_is_named(plan: dict[str, Any]) -> None:
    """An edge that goes back is named with its tensor and both stages."""
    plan["assignment"]["d"] = 0
    text = detail(verify_plan(plan, None), "edges")
    assert text == "tensor 'tb' goes back from 'b' (stage 1) to 'd' (stage 0)"


def test_stage_above_the_memory_is_named(plan: dict[str, Any]) -> None:
    """The stage that needs most is named with its bytes and the limit; without a limit nothing can exceed it."""
    assert detail(verify_plan(plan, None), "stage memory") == "no limit"
    plan["system"]["stage_memory_bytes"] = 107
    assert detail(verify_plan(plan, None), "stage memory") == "at most 107 of 107 bytes"
    plan["system"]["stage_memory_bytes"] = 56
    assert detail(verify_plan(plan, None), "stage memory") == "stage 1 needs 107 bytes, the limit is 56"


def test_model_without_its_hash_fails(plan: dict[str, Any], model: dict[str, Any]) -> None:
    """A model file whose hash is not known cannot be the plan's."""
    assert set(verify_plan(plan, model, model_given=True).named(Verdict.FALSE)) == {"model file"}


def test_no_graph_at_all_asks_for_the_model(plan: dict[str, Any]) -> None:
    """Without an embedded graph and without a model there is nothing to compare with."""
    del plan["graph"]
    with pytest.raises(InputError, match="give the model with model"):
        verify_plan(plan, None)


@settings(max_examples=150, deadline=None)
@given(problem=problems(), data=st.data())
def test_plans_by_the_definitions_pass(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """Whatever the graph, units, system and partition: the oracles' plan passes, with the model and without."""
    graph, system, k = problem
    stages = [0] * graph.op_count
    before = oracles.predecessors(graph)
    for v in oracles.own_order(graph):
        stages[v] = data.draw(st.integers(max((stages[u] for u in before[v]), default=0), k - 1))
    plan = plan_document(graph, system, k, stages, embed=True)
    assert (
        set(verify_plan(plan, graph_document(graph), graph_sha256=SHA256, model_given=True).named(Verdict.FALSE))
        == set()
    )
    assert set(verify_plan(plan, None).named(Verdict.FALSE)) == set()


@settings(max_examples=100, deadline=None)
@given(problem=problems(max_ops=5), data=st.data())
def test_any_other_integer_fails(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """No figure of a correct plan can be changed by a tick or a byte unnoticed."""
    graph, system, k = problem
    plan = plan_document(graph, system, k, [0] * graph.op_count)
    stage = data.draw(st.integers(0, k - 1))
    figures = [name for name, value in plan["stages"][stage].items() if isinstance(value, int)]
    plan["stages"][stage][data.draw(st.sampled_from(figures))] += data.draw(st.sampled_from((1, 2**40)))
    assert set(verify_plan(plan, graph_document(graph)).named(Verdict.FALSE)) == {"stage costs"}


def test_documents_are_left_as_they_are(plan: dict[str, Any], model: dict[str, Any]) -> None:
    """Verifying changes neither the plan nor the model."""
    before = copy.deepcopy((plan, model))
    verify_plan(plan, model)
    assert (plan, model) == before


def test_verifier_is_independent(checkout: Path) -> None:
    """It imports the standard library, the errors, rules of documents and itself, and never loads numpy."""
    imported: set[str] = set()
    for path in (checkout / "mtpp" / "checker").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    own = {name for name in imported if name.startswith("mtpp.checker")} | {
        "mtpp.errors",
        "mtpp.document_shape",
        "__future__",
    }
    assert {name.partition(".")[0] for name in imported - own} <= sys.stdlib_module_names
    others = {"numpy", "numba", "mtpp.inference.graph", "mtpp.inference.objective"}
    script = f"import sys, mtpp.checker.plan; print(sorted({others} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=checkout, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
