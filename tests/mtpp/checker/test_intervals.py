"""The verifier of plans with degrees: costs and decisions of its own against brute force, forged documents refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from layer_chains import all_plans, document_of, problem_of, random_case

from mtpp.checker.intervals.decision import Line, Stages, plan_exists
from mtpp.checker.intervals.interval_costs import cuts_allowed, interval_costs
from mtpp.checker.machine import placed_graph
from mtpp.checker.plan import verify_plan
from mtpp.checker.report import Verdict
from mtpp.errors import Infeasible, InputError
from mtpp.formats.graphs.native import plain_document
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.plan import Plan
from mtpp.solvers.layer_chains.solve import solve_with_degrees
from mtpp.solvers.layer_chains.tables import ChainTables


@pytest.mark.parametrize("block", range(6))
def test_costs_and_decisions_are_those_of_brute_force(block: int) -> None:
    """Costs of intervals as the solver's tables have them; decisions with any limits, whatever the prices."""
    for seed in range(40 * block, 40 * (block + 1)):
        draw = Random(seed)
        case = random_case(draw)
        most = draw.randint(1, case.machine.count)
        least = most if draw.random() < 0.3 else 1
        tables, alternative, ticks = ChainTables.of(case.choices(), case.groups), 0, []
        for c, degrees in enumerate(case.degrees):
            device = case.machine.class_of.index(c)
            rows = []
            for degree in degrees:
                instance = Instance.build(case.graphs[degree], case.machine)
                times = [instance.cost.work[own].tolist() for own in case.machine.class_of]
                machine = case.machine.to_document()
                graph = plain_document(case.graphs[degree])
                placed = placed_graph(machine, graph, case.machine.count, times, embedded=False).by_device[device]
                sequences = machine["devices"][0].get("sequences", 1)
                allowed = cuts_allowed(placed, [list(group) for group in case.groups])
                rows.append(interval_costs(placed, machine["devices"][device], sequences, allowed))
                fits, costs = tables.feasible[alternative], tables.cost[alternative]
                for start, row in enumerate(rows[-1]):
                    due = [int(cost) if fit else None for cost, fit in zip(costs[start], fits[start], strict=True)]
                    assert row == due, seed
                alternative += 1
            ticks.append(rows)
        plans = set(all_plans(case, most, least))
        line = Line(case.machine.class_of, case.machine.free, most, least)
        stages = Stages(tables.op_count, ticks, ticks)
        for _ in range(6):
            bottleneck, latency = draw.choice(sorted(plans) or [(10, 10)])
            limits = [(bottleneck - draw.randint(0, 1), None), (None, latency - draw.randint(0, 1))]
            for limit, total in [*limits, (limits[0][0], limits[1][1])]:
                due = any((limit is None or b <= limit) and (total is None or t <= total) for b, t in plans)
                prices = [draw.randint(0, 30) for _ in case.degrees]
                own, of_any = draw.choice((([], 0), (prices, draw.randint(0, 9))))
                found = plan_exists(stages, line, most=limit, latency=total, prices=own, price_of_any=of_any)
                assert found == due, (seed, limit, total)


def solved(seed: int) -> tuple[Plan, dict[str, Any]] | None:
    """Return the best plan of a random case for a random goal, and its document; None if there is no plan."""
    draw = Random(seed)
    case = random_case(draw)
    most, none_empty = draw.randint(1, case.machine.count), draw.random() < 0.3
    try:
        plan = solve_with_degrees(problem_of(case, Goal(), most, none_empty=none_empty), algorithm="auto")
    except Infeasible:
        return None
    latency = draw.choice((None, plan.latency, plan.latency - 1))
    goal = draw.choice((Goal(), Goal("bottleneck", latency), Goal("latency"), Goal("latency", plan.bottleneck)))
    try:
        plan = solve_with_degrees(problem_of(case, goal, most, none_empty=none_empty), algorithm="auto")
    except Infeasible:
        return None
    return plan, document_of(case, plan)


@pytest.mark.parametrize("block", range(4))
def test_plans_are_verified(block: int) -> None:
    """Every claim of a plan holds from its document alone."""
    for seed in range(30 * block, 30 * (block + 1)):
        found = solved(seed)
        if found is None:
            continue
        plan, document = found
        assert plan.certificate.optimal
        report = verify_plan(document, None)
        assert report.verdict is Verdict.OK, (seed, report.named(Verdict.FALSE), report.named(Verdict.UNCHECKED))
        assert report.bound_rechecked
        assert ("of consecutive ops at degrees" in report.sentence()) == (document["degrees"] != [1])


def _other_degree(draw: Random, document: dict[str, Any]) -> None:
    stage = draw.choice(document["stages"])
    stage["tensor_parallel"] = draw.choice([degree for degree in (1, 2, 4, 8) if degree != stage["tensor_parallel"]])


def _bound(draw: Random, document: dict[str, Any]) -> None:
    document["lower_bound"]["value"] += 1
    document["lower_bound"]["proof"]["cutoff"] += 1


def _cutoff(draw: Random, document: dict[str, Any]) -> None:
    document["lower_bound"]["proof"]["cutoff"] += draw.choice((-1, 1))


def _fewer_devices(draw: Random, document: dict[str, Any]) -> None:
    document["lower_bound"]["proof"]["k"] += 1


def _hidden_stage(draw: Random, document: dict[str, Any]) -> None:
    """Say that the most expensive stage has no ops, at a degree that no graph is of."""
    row = max(document["stages"], key=lambda row: int(row["cost"]))
    row.update(dict.fromkeys(("ops", "work", "input", "output", "overflow", "cost", "param_bytes", "peak_bytes"), 0))
    row.update({"first": None, "last": None, "tensor_parallel": draw.choice((1, 8, 16))})
    if "state_bytes" in row:
        row["state_bytes"] = 0


def _other_one(draw: Random, document: dict[str, Any]) -> None:
    busy = {row["tensor_parallel"] for row in document["stages"] if row["ops"]}
    document["one_degree"] = True
    if len(busy) == 1:  # then it may be true
        _bound(draw, document)


def _order(draw: Random, document: dict[str, Any]) -> None:
    proof = document["lower_bound"]["proof"]
    proof["order"] = "free" if proof["order"] == "fixed" else "fixed"


def _cost(draw: Random, document: dict[str, Any]) -> None:
    draw.choice(document["stages"])["cost"] += 1


def _tier(draw: Random, document: dict[str, Any]) -> None:
    document["lower_bound"]["tier"] = draw.choice(("enumerated", "solver"))


def _busy_changed(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return any(row != old and old["ops"] for row, old in zip(after["stages"], before["stages"], strict=True))


@pytest.mark.parametrize(
    "forge",
    [_other_degree, _hidden_stage, _other_one, _bound, _cutoff, _fewer_devices, _order, _cost, _tier],
    ids=lambda forge: forge.__name__[1:],
)
def test_forged_documents_are_refused(forge: Callable[[Random, dict[str, Any]], None]) -> None:
    """One figure changed is a claim that is false."""
    forged = 0
    for seed in range(40):
        found = solved(seed)
        if found is None:
            continue
        document = copy.deepcopy(found[1])
        forge(Random(seed), document)
        try:
            report = verify_plan(document, None)
        except InputError:  # a number below zero
            forged += 1
            continue
        if forge is _other_degree and not _busy_changed(found[1], document):
            continue  # of a stage without ops a degree says nothing
        assert report.verdict is Verdict.FALSE, seed
        forged += 1
    assert forged > 15


@pytest.mark.parametrize("block", range(4))
def test_no_worse_plan_is_called_optimal(block: int) -> None:
    """Plans that are best for another objective, with all figures in order, which say that they are best for this."""
    refused = 0
    for seed in range(40 * block, 40 * (block + 1)):
        case = random_case(Random(seed))
        for own, other in (("bottleneck", "latency"), ("latency", "bottleneck")):
            try:
                best = solve_with_degrees(problem_of(case, Goal(own)), algorithm="auto")
            except Infeasible:
                continue
            worse = solve_with_degrees(problem_of(case, Goal(other)), algorithm="auto")
            value = Goal(own).value(worse.costs)
            document = document_of(case, worse) | {"objective": own, "ratio": 1.0, "optimal": True}
            document["lower_bound"]["value"] = document["lower_bound"]["proof"]["cutoff"] = value
            report = verify_plan(document, None)
            if value == best.goal.value(best.costs):
                assert report.verdict is Verdict.OK, seed
            else:
                assert report.named(Verdict.FALSE)[0] == "lower bound", seed
                assert "there is a plan" in next(row.detail for row in report.checks if row.name == "lower bound")
                refused += 1
    assert refused > 5
