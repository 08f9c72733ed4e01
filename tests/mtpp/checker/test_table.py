"""Rows of certificates: what the oracles say of a partition passes, and each thing said wrongly is found."""

from __future__ import annotations

import copy
import random
from typing import Any

import oracles
import pytest
from certificate_documents import certificate_row, table
from flow_proofs import claim_of, node_proof
from graph_strategies import LINK, chain, problems, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_documents import SHA256, graph_document, reread
from refusals import refusal

from mtpp.checker.plan import Check, Report
from mtpp.checker.table import check_table, unchecked_row, verify_row
from mtpp.checker.tables.means import verify_summary
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device
from mtpp.machine.link import Link

GRAPH = chain([10, 20, 30, 40], [1, 2, 3], "ms")


def row_of_chain(assignment: list[int] | None) -> dict[str, Any]:
    """Return the row of a chain of four ops in two stages."""
    row: dict[str, Any] = table([certificate_row(GRAPH, LINK, 2, assignment)])["rows"][0]
    return row


def verify(row: dict[str, Any]) -> Report:
    """Verify a row of the chain."""
    check_table(table([]) | {"rows": [row]}, ())
    return verify_row(row, 0, graph_document(GRAPH), SHA256)


def failed(report: Report) -> dict[str, str]:
    """Return what is wrong, by check."""
    return {check.name: check.detail for check in report.checks if check.passed is False}


def test_a_true_row_passes() -> None:
    """All that the row says is found again."""
    report = verify(row_of_chain([0, 0, 0, 1]))
    assert failed(report) == {}
    assert (report.tier, report.bound_rechecked, report.ratio) == ("exact", True, 63 / 50)


def test_a_row_of_bounds_alone_is_checked_for_its_bound() -> None:
    """Without an upper side there is no partition to check and no ratio."""
    report = verify(row_of_chain(None))
    assert failed(report) == {}
    assert (report.tier, report.ratio) == ("exact", None)
    assert "bottleneck" not in {check.name for check in report.checks}


def test_groups_of_a_row_of_bounds_are_of_its_ops() -> None:
    """Where there is no partition to say so."""
    assert failed(verify({**row_of_chain(None), "together": [["op2", "op3"]]})) == {}
    assert failed(verify({**row_of_chain(None), "together": [["op2", "nobody"]]})).keys() == {"together"}


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_ops=5), data=st.data())
def test_rows_of_any_problem_pass(problem: tuple[CostGraph, Device, int], data: st.DataObject) -> None:
    """The verifier comes to what the oracles come to, with memories and without."""
    graph, system, k = problem
    assignments = list(oracles.monotone_assignments(graph, k))
    row = table([certificate_row(graph, system, k, data.draw(st.sampled_from(assignments)))])["rows"][0]
    assert failed(verify_row(row, 0, graph_document(graph), SHA256)) == {}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"upper": 62 * 10**9}, {"bottleneck"}),
        ({"assignment": {"op0": 0, "op1": 1, "op2": 0, "op3": 1}}, {"edges", "bottleneck", "ratio", "optimal"}),
        ({"assignment": {"op0": 0, "op1": 0, "op2": 1, "op3": 1}}, {"bottleneck", "ratio"}),
        ({"assignment": {"op0": 0, "op1": 0, "op2": 0}}, {"assignment", "ratio", "optimal"}),
        ({"assignment": {"op0": 0, "op1": 0, "op2": 0, "op3": 2}}, {"assignment", "ratio", "optimal"}),
        ({"lower": 51 * 10**9}, {"lower bound", "bounds tried", "ratio", "optimal"}),
        ({"lower_method": "guess"}, {"lower bound", "bounds tried", "ratio", "optimal"}),
        ({"k": 3}, {"lower bound", "ratio", "optimal"}),
        ({"ratio": 1.0}, {"ratio"}),
        ({"optimal": True}, {"optimal"}),
        ({"ops": 5}, {"op and tensor counts"}),
        ({"ticks_per_unit": 10**6}, {"ticks"}),
        ({"time_unit": "s"}, {"ticks"}),
        ({"sha256": "0" * 64}, {"model file"}),
        ({"bounds": {"simple": 50 * 10**9, "bottleneck": 64 * 10**9}}, {"bounds tried"}),
        ({"bounds": {"simple": 50 * 10**9, "bottleneck": 51 * 10**9}}, {"bounds tried"}),
        ({"bounds": {"simple": 49 * 10**9}}, {"bounds tried"}),
        ({"bounds": {"node": 50 * 10**9}}, {"bounds tried"}),
        ({"solved": ["simple", "node"]}, {"bounds tried"}),
        ({"bounds": {"simple": 50 * 10**9, "magic": 1}}, {"found by"}),
        ({"upper_algorithm": "magic"}, {"found by"}),
        ({"stopped": "because"}, {"found by"}),
        ({"stopped": "solver-target"}, {"found by"}),
        ({"together": [["op2", "op3"]]}, {"together", "ratio", "optimal"}),
    ],
)
def test_each_false_statement_is_found(change: dict[str, Any], wrong: set[str]) -> None:
    """One thing in the row is false, and the checks that look at it fail."""
    report = verify({**row_of_chain([0, 0, 0, 1]), **change})
    assert set(failed(report)) == wrong
    assert not report.passed


def test_stage_memory_counts() -> None:
    """A partition whose stage is above the limit is no partition."""
    graph = random_graph(3, 5, time_unit="ps")
    system = Device("limited", 1, 1, Link(10**12), None, 0, "reserve", max(graph.param_bytes.tolist()))
    row = table([certificate_row(graph, LINK, 2, [0] * 5)])["rows"][0] | {"system": system.to_document()}
    assert "stage memory" in failed(verify_row(row, 0, graph_document(graph), SHA256))


def test_what_is_not_checked_is_said() -> None:
    """A bound that rests on something else is not called wrong, nor right, and neither is its ratio."""
    by_solver = {"lower_method": "exact-mip", "tier": "solver", "lower_proof": {}}
    report = verify({**row_of_chain([0, 0, 0, 1]), **by_solver, "bounds": {"exact-mip": 50 * 10**9}, "solved": []})
    bound = next(check for check in report.checks if check.name == "lower bound")
    assert (bound.passed, report.passed, report.bound_rechecked, report.ratio) == (None, True, False, None)
    assert "rests on the MIP solver's word" in bound.detail
    assert report.named("unchecked") == ["lower bound", "ratio", "optimal"]


@pytest.mark.parametrize(("change", "passed"), [({}, None), ({"cutoff": 51}, False), ({"k": 3}, False)])
def test_a_search_was_for_this_bound_and_k(change: dict[str, int], passed: bool | None) -> None:
    """What an exhaustive search proved is not carried over to another value, even if it is not run again."""
    counts = {"rules": ["fit"], "downsets": 1, "pairs": 0, "digest": "0" * 64}
    proof = {"merges": [], "cutoff": 50 * 10**9, "k": 2, **counts, **change}
    report = verify({**row_of_chain(None), "lower_method": "downset", "tier": "enumerated", "lower_proof": proof})
    assert next(check.passed for check in report.checks if check.name == "lower bound") is passed


PROVEN = row_of_chain([0, 0, 0, 1])
SOLVED = {
    **PROVEN,
    "lower": 51 * 10**9,
    "lower_method": "exact-mip",
    "tier": "solver",
    "lower_proof": {},
    "bounds": {"simple": PROVEN["lower"], "exact-mip": 51 * 10**9},
    "ratio": 63 / 51,
    "proven": {
        "value": PROVEN["lower"],
        "method": PROVEN["lower_method"],
        "tier": PROVEN["tier"],
        "proof": PROVEN["lower_proof"],
        "ratio": PROVEN["ratio"],
    },
}
"""A row whose best bound is a MIP solver's, with the best one that can be checked."""


def test_the_best_bound_that_can_be_checked_is_a_claim_of_its_own() -> None:
    """Beside one of tier solver, which stays unchecked."""
    report = verify(SOLVED)
    verdicts = {check.name: check.verdict for check in report.checks}
    assert (verdicts["proven lower bound"], verdicts["proven ratio"]) == ("ok", "ok")
    assert report.named("unchecked") == ["lower bound", "ratio", "optimal"]
    assert (report.tier, report.ratio, report.bound_rechecked) == ("solver", None, False)
    higher = {**SOLVED, "proven": {**SOLVED["proven"], "value": PROVEN["lower"] + 1}}
    assert set(failed(verify(higher))) == {"proven lower bound", "bounds tried", "proven ratio"}
    assert set(failed(verify({**SOLVED, "proven": {**SOLVED["proven"], "ratio": 1.2}}))) == {"proven ratio"}
    for row, where in (({**PROVEN, "proven": SOLVED["proven"]}, "/rows/0/proven"),):
        assert refusal(verify, row).where == where
    without_ratio = {key: value for key, value in SOLVED["proven"].items() if key != "ratio"}
    assert refusal(verify, {**SOLVED, "proven": without_ratio}).where == "/rows/0/proven/ratio"


def with_node(proof: bool = True) -> tuple[CostGraph, dict[str, Any]]:
    """Return a graph, and a row with its node bound as a single one below the best, with its proof or without."""
    graph = random_graph(1, 5, time_unit="ps")
    merged = claim_of(graph, LINK, 2, [], 0, {}).merged()
    assert not isinstance(merged, str)
    row = certificate_row(graph, LINK, 2, None)
    bounds = sorted((node_proof(merged, LINK, v, [], random.Random(0)) for v in range(5)), key=lambda pair: pair[0])
    value, held = next((value, held) for value, held in bounds if 0 < value <= row["lower"])
    row["bounds"] |= {"node": value}
    return graph, reread(row | ({"proofs": {"node": {"tier": "exact", "proof": held}}} if proof else {}))


def test_single_bounds_rest_on_their_proofs() -> None:
    """With its proof a bound is checked; without it stays open, and all else in the row holds."""
    graph, row = with_node()

    def verdict(changed: dict[str, Any]) -> Report:
        check_table(table([]) | {"rows": [changed]}, ())
        return verify_row(changed, 0, graph_document(graph), SHA256)

    assert verdict(row).verdict == "ok"
    assert "bounds tried" in verdict(row).named("ok")
    assert verdict(with_node(proof=False)[1]).named("unchecked") == ["bounds tried"]
    raised = {**row, "bounds": {**row["bounds"], "node": row["bounds"]["node"] + 1}}
    assert "bounds tried" in verdict(raised).named("false")
    for stray in ("crossings", "bottleneck"):
        assert refusal(verdict, {**row, "proofs": {stray: row["proofs"]["node"]}}).where == f"/rows/0/proofs/{stray}"
    row["proofs"]["node"]["proof"]["flow"] = [[0, 1]]
    assert refusal(verdict, row).where == "/rows/0/proofs/node/proof/flow/0"


def test_other_proofs_are_checked_too() -> None:
    """A row may rest on any bound of the exact tier, and a malformed proof is named by its place in the table."""
    graph = random_graph(1, 5, time_unit="ps")
    merged = claim_of(graph, LINK, 2, [], 0, {}).merged()
    assert not isinstance(merged, str)
    value, proof = max((node_proof(merged, LINK, v, [], random.Random(0)) for v in range(5)), key=lambda pair: pair[0])
    row = certificate_row(graph, LINK, 2, None) | {"lower": value, "lower_method": "node", "lower_proof": proof}
    row = reread(row)
    assert verify_row(row, 0, graph_document(graph), SHA256).tier == "exact"
    assert not verify_row({**row, "lower": value + 1}, 0, graph_document(graph), SHA256).passed
    row["lower_proof"]["flow"] = [[0, 1]]
    assert refusal(verify_row, row, 7, graph_document(graph), SHA256).where == "/rows/7/lower_proof/flow/0"


@pytest.mark.parametrize(
    ("place", "change", "where"),
    [
        ("row", {"k": 0}, "/rows/0/k"),
        ("row", {"upper": 1.5}, "/rows/0/upper"),
        ("row", {"sha256": "12"}, "/rows/0/sha256"),
        ("row", {"more": 1}, "/rows/0/more"),
        ("row", {"ratio": "1"}, "/rows/0/ratio"),
        ("row", {"tier": "certain"}, "/rows/0/tier"),
        ("row", {"bounds": {"simple": -1}}, "/rows/0/bounds/simple"),
        ("row", {"system": {}}, "/rows/0/system/name"),
        ("table", {"version": 2}, "/version"),
        ("table", {"format": "mtpp-plan"}, "/format"),
        ("table", {"rows": {}}, "/rows"),
        ("table", {"summary": [{}]}, "/summary/0/k"),
        ("table", {"elapsed_s": 1}, "/elapsed_s"),
    ],
)
def test_malformed_tables_are_bad_input(place: str, change: dict[str, Any], where: str) -> None:
    """What is not of the table's shape is refused at its pointer."""
    document = table([certificate_row(GRAPH, LINK, 2, [0, 0, 0, 1])])
    (document["rows"][0] if place == "row" else document).update(change)
    assert refusal(check_table, document, ()).where == where


@pytest.mark.parametrize("key", ["upper", "upper_algorithm", "ratio", "optimal", "assignment"])
def test_the_upper_side_is_there_as_a_whole(key: str) -> None:
    """A row has all of its upper side or nothing."""
    document = table([certificate_row(GRAPH, LINK, 2, [0, 0, 0, 1])])
    del document["rows"][0][key]
    assert refusal(check_table, document, ()).where == f"/rows/0/{key}"


def test_an_impossible_system_is_named_by_its_place() -> None:
    """A reserve above the fast memory is bad input, not a false statement."""
    row = row_of_chain([0, 0, 0, 1])
    row["system"] |= {"fast_memory_bytes": 1, "activation_reserve_bytes": 2}
    assert refusal(verify, row).where == "/rows/0/system/activation_reserve_bytes"


def test_a_row_without_its_model_is_unchecked() -> None:
    """Nothing is known of it, but what its own figures say of each other."""
    report = unchecked_row(row_of_chain([0, 0, 0, 1]), "no model")
    assert report.verdict == "unchecked"
    assert report.named("ok") == []
    assert {"bottleneck", "lower bound", "ratio", "optimal"} < set(report.named("unchecked"))
    assert failed(unchecked_row({**row_of_chain([0, 0, 0, 1]), "ratio": 1.0}, "no model")).keys() == {"ratio"}


ROWS = [
    certificate_row(GRAPH, LINK, 2, [0, 0, 0, 1]),
    certificate_row(chain([5, 6, 7], [1, 1], "ms"), LINK, 2, [0, 0, 1]),
    certificate_row(chain([5, 5], [0], "ms"), LINK, 2, [0, 1]),
    certificate_row(chain([0, 0], [0], "ms"), LINK, 2, [0, 1]),
    certificate_row(GRAPH, LINK, 4, [0, 1, 2, 3]),
    certificate_row(GRAPH, LINK, 3, None),
]


def test_a_row_without_its_model_contradicts_itself() -> None:
    """A bound above the bottleneck is false whatever the model is."""
    row = row_of_chain([0, 0, 0, 1])
    row |= {"lower": row["upper"] + 1, "ratio": row["upper"] / (row["upper"] + 1), "optimal": False}
    report = unchecked_row(row, "no model")
    assert (report.verdict, report.tier) == ("false", "none")
    assert failed(report).keys() >= {"lower bound", "ratio"}


def test_means_are_added_up_again() -> None:
    """Means over the rows of one k, those without a simple bound left out; a table may have none at all."""
    document = table(ROWS)
    check_table(document, ())
    checks = summarise(document)
    assert [check.verdict for check in checks] == ["ok", "ok"] * 3
    assert checks[0].detail == "over 3 of 4 rows"
    assert verify_summary(document["rows"], [], []) == []


def test_means_are_no_better_than_their_rows() -> None:
    """One row that is unchecked, or false, is enough."""
    document = table(ROWS)
    for verdict, passed in (("unchecked", None), ("false", False)):
        verdicts = [verdict] + ["ok"] * (len(document["rows"]) - 1)
        checks = verify_summary(document["rows"], document["summary"], verdicts)
        assert [check.passed for check in checks] == [passed, passed, True, True, True, True]
        assert checks[0].detail == f"over 3 of 4 rows, and 1 of them is {verdict}"
        singles = verify_summary(document["rows"], document["summary"], ["ok"] * len(verdicts), verdicts)
        assert [check.passed for check in singles] == [True, passed, True, True, True, True]


def summarise(document: dict[str, Any], summary: list[dict[str, Any]] | None = None) -> list[Check]:
    """Check the means of a table whose rows are all true."""
    stated = document["summary"] if summary is None else summary
    return verify_summary(document["rows"], stated, ["ok"] * len(document["rows"]))


@pytest.mark.parametrize(
    ("entry", "path", "value"),
    [
        (0, ["geomean_ratio"], 1.01),
        (0, ["geomean_ratio"], None),
        (1, ["geomean_ratio"], 1.0),
        (0, ["models"], 4),
        (0, ["cells"], 3),
        (0, ["closed"], 3),
        (0, ["geomean_bounds", "simple"], 1.5),
        (0, ["geomean_bounds", "bottleneck"], 1.0),
        (0, ["over_simple", "bottleneck", "geomean"], 1.1),
        (0, ["over_simple", "bottleneck", "solved"], 1),
        (0, ["best", "simple"], 3),
        (0, ["k"], 5),
        (0, ["k"], 4),
    ],
)
def test_false_means_are_found(entry: int, path: list[str], value: Any) -> None:
    """One figure is off, and the check of its k fails."""
    document = table(ROWS)
    place = document["summary"][entry]
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    checks = summarise(document)
    assert any(check.passed is False for check in checks)


def test_bounds_in_the_means_are_those_of_the_rows() -> None:
    """A mean of a bound that no row has, or a bound of the rows without a mean, is found."""
    document = table(ROWS)
    for change in ({"simple": 1.2}, document["summary"][0]["geomean_bounds"] | {"node": 1.0}):
        summary = copy.deepcopy(document["summary"])
        summary[0]["geomean_bounds"] = change
        assert summarise(document, summary)[1].passed is False
    assert summarise(document, document["summary"][1:])[-1].passed is False
