"""Plans whose stages have one degree, against brute force over each degree, and their documents."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from layer_chains import DegreeCase, all_plans, document_of, problem_of, random_case

from mtpp.checker.plan import verify_plan
from mtpp.checker.report import Verdict
from mtpp.errors import Infeasible
from mtpp.inference.goal import Goal
from mtpp.inference.plan import Plan
from mtpp.solvers.layer_chains.solve import solve_with_degrees


def _plans(case: DegreeCase, most: int, least: int) -> set[tuple[int, int]]:
    """Return bottleneck and latency of all plans of one degree."""
    found: set[tuple[int, int]] = set()
    for degree in sorted({degree for degrees in case.degrees for degree in degrees}):
        own = tuple(tuple(one for one in degrees if one == degree) for degrees in case.degrees)
        found |= set(all_plans(replace(case, degrees=own), most, least))
    return found


def _solved(case: DegreeCase, goal: Goal, most: int, *, even: bool) -> Plan | None:
    try:
        problem = replace(problem_of(case, goal, most, one_degree=True), even=even)
        return solve_with_degrees(problem, algorithm="auto")
    except Infeasible:
        return None


def test_best_plans_of_one_degree() -> None:
    """Each goal; documents are verified, and refused with another bound or with stages of other degrees."""
    mixed = 0
    for seed in range(120):
        draw = Random(seed)
        case = random_case(draw)
        most = draw.randint(1, case.machine.count)
        plans = _plans(case, most, 1)
        best = min((bottleneck for bottleneck, _ in plans), default=None)
        plan = _solved(case, Goal(), most, even=draw.random() < 0.5)
        assert best == (None if plan is None else plan.bottleneck), seed
        if plan is None:
            continue
        assert plan.degrees is not None
        busy = {degree for degree, ops in zip(plan.degrees.of_stage, plan.costs.ops.tolist(), strict=True) if ops}
        assert len(busy) == 1
        least = _solved(case, Goal("latency"), most, even=False)
        assert least is not None
        assert least.latency == min(latency for _, latency in plans), seed
        document = document_of(case, plan)
        report = verify_plan(document, None)
        assert report.verdict is Verdict.OK, (seed, report.named(Verdict.FALSE))
        assert ("of consecutive ops at one of degrees" in report.sentence()) == (document["degrees"] != [1])
        free = min(bottleneck for bottleneck, _ in all_plans(case, most, 1))
        if free < plan.bottleneck:
            mixed += 1
            del document["one_degree"]
            assert verify_plan(document, None).verdict is Verdict.FALSE, seed
    assert mixed


@pytest.mark.parametrize("block", range(2))
def test_even_plans_use_the_most_devices(block: int) -> None:
    """Of those within the bottleneck, at one degree."""
    for seed in range(200 + 30 * block, 230 + 30 * block):
        draw = Random(seed)
        case = random_case(draw)
        plan = _solved(case, Goal(), case.machine.count, even=True)
        if plan is None:
            continue
        degree = next(d for d, ops in zip(plan.degrees.of_stage, plan.costs.ops.tolist(), strict=True) if ops)  # type: ignore[union-attr]
        own = tuple(tuple(one for one in degrees if one == degree) for degrees in case.degrees)
        single = replace(case, degrees=own)
        counts = range(1, case.machine.count + 1)
        most = max(m for m in counts if any(b <= plan.bottleneck for b, _ in all_plans(single, m, m)))
        assert int((plan.costs.ops > 0).sum()) == most, seed
