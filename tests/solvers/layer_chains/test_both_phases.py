"""Least bottleneck of one phase within a latency of another: against all plans, and the proof checked."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from layer_chains import DegreeCase, all_plans_of_both, document_of, problem_of, random_case

from mtpp.checker.plan import verify_plan
from mtpp.errors import Infeasible
from mtpp.formats.graphs.native import plain_document
from mtpp.inference.degrees.stage_degrees import DegreeGraph
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.inference.plan import Plan
from mtpp.solvers.layer_chains.solve import DegreeProblem, Prefill, solve_with_degrees


def prompts_of(case: DegreeCase, draw: Random) -> DegreeCase:
    """Return the same layers with other times, and with larger tensors."""
    graphs = {
        degree: replace(
            graph,
            work=tuple(draw.randint(0, 60) // degree for _ in graph.work),
            tensor_bytes=graph.tensor_bytes * draw.randint(1, 2),
        )
        for degree, graph in case.graphs.items()
    }
    return replace(case, graphs=graphs)


def with_prompts(case: DegreeCase, prompts: DegreeCase, limit: int | None, most: int) -> DegreeProblem:
    """Return the problem of both phases."""
    instances = {
        degree: Instance.build(graph, case.machine, most_used=most) for degree, graph in prompts.graphs.items()
    }
    graphs = {
        degree: DegreeGraph(graph, [row.tolist() for row in instances[degree].cost.work])
        for degree, graph in prompts.graphs.items()
    }
    return replace(problem_of(case, Goal(), most), prefill=Prefill(instances, limit, {}, graphs))


def document_of_both(case: DegreeCase, prompts: DegreeCase, plan: Plan) -> dict[str, Any]:
    """Return the document of a plan with the graphs of both phases."""
    document = document_of(case, plan)
    assert plan.first_token is not None
    embedded = {
        str(degree): {"graph": plain_document(one.graph), "times": [list(row or ()) for row in one.times]}
        for degree, one in plan.first_token.graphs.items()
    }
    return document | {"first_token": plan.first_token.to_document(plan.partition, embedded)}


@pytest.mark.parametrize("block", range(4))
def test_plans_of_both_phases_are_the_best_and_verified(block: int) -> None:
    """At any limit on the other phase, in both orders of devices, at all degrees."""
    solved = 0
    for seed in range(30 * block, 30 * (block + 1)):
        draw = Random(seed)
        case = random_case(draw, most_ops=6, most_devices=3)
        if 1 not in case.graphs:
            continue
        prompts = prompts_of(case, draw)
        most = draw.randint(1, case.machine.count)
        plans = set(all_plans_of_both(case, prompts, most, 1))
        latencies = sorted({latency for _, latency in plans}) or [5]
        for limit in (None, latencies[0], latencies[0] - 1, latencies[len(latencies) // 2]):
            due = min((cost for cost, latency in plans if limit is None or latency <= limit), default=None)
            if limit is not None and limit < 0:
                continue
            problem = with_prompts(case, prompts, limit, most)
            if due is None:
                with pytest.raises(Infeasible):
                    solve_with_degrees(problem, algorithm="auto")
                continue
            plan = solve_with_degrees(problem, algorithm="auto")
            solved += 1
            assert plan.bottleneck == due, seed
            assert plan.certificate.optimal
            assert plan.first_token is not None
            assert (due, plan.first_token.costs(plan.partition).latency) in plans
            report = verify_plan(document_of_both(case, prompts, plan), None)
            assert report.passed, (seed, report.sentence())
    assert solved > 20
