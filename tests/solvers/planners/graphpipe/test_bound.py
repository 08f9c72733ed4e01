"""Lower bound of iterations: never above the optimum over all stage graphs, equal branches told apart or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graph_plan_oracles import random_graph_case

from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.solvers.planners.graphpipe import bound as bound_module
from mtpp.solvers.planners.graphpipe.bound import iteration_bound
from mtpp.solvers.planners.graphpipe.branches import equal_branches
from mtpp.solvers.planners.graphpipe.exhaustive import ExhaustiveSearch
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import TrainingModel

FAR = 10**15


def _model(document: Any) -> TrainingModel:
    return training_model_from_document(parse_json(json.dumps(document).encode(), "m"), "m")


def _problem(document: dict[str, Any], asked: dict[str, Any]) -> GraphProblem:
    rules = GraphRules(
        micro_batch_sizes=asked["sizes"],
        per_stage=asked["per_stage"],
        intervals=asked["intervals"],
        in_flight="least" if asked["least"] else "any",
        sequential=asked["sequential"],
    )
    return GraphProblem.build(
        _model(document),
        devices=asked["devices"],
        memory_bytes=asked["memory_bytes"],
        bandwidth_bytes_per_s=asked["bandwidth"],
        mini_batch=asked["mini_batch"],
        latency_ticks=asked["latency"],
        rules=rules,
    )


def _ratio(problem: GraphProblem) -> float | None:
    """Return optimum / bound of a small problem, None if there is no plan."""
    plan = ExhaustiveSearch(problem).best()
    if plan is None:
        return None
    lower = iteration_bound(problem, FAR).value
    assert lower <= plan.iteration
    assert iteration_bound(problem, plan.iteration).value <= plan.iteration
    return plan.iteration / lower


def test_never_above_the_optimum() -> None:
    """Random models with memories, latencies, sizes by stage and kFkB; most bounds are close."""
    ratios = sorted(ratio for seed in range(150) if (ratio := _ratio(_problem(*random_graph_case(seed)))) is not None)
    assert len(ratios) > 80
    assert ratios[len(ratios) // 2] < 1.2


@pytest.mark.slow
def test_never_above_the_optimum_of_many() -> None:
    """The same for hundreds."""
    for seed in range(10_000, 10_400):
        _ratio(_problem(*random_graph_case(seed)))


def test_models_of_the_reference(shared_reference: Path) -> None:
    """Below the optimum of the six models, by no more than a half."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["models"]:
        problem = GraphProblem.build(
            _model(case["model"]),
            devices=case["devices"],
            memory_bytes=case["memory_bytes"],
            bandwidth_bytes_per_s=case["bandwidth_bytes_per_s"],
            mini_batch=case["mini_batch"],
            rules=GraphRules(micro_batch_sizes=case["micro_batch_sizes"]),
        )
        assert case["optimum_ticks"] / 1.5 < iteration_bound(problem, FAR).value <= case["optimum_ticks"]


@pytest.mark.parametrize(
    ("family", "sizes", "batch"),
    [
        ("mmt", {"branches": 3, "layers": 2}, 8),
        ("dlrm", {"dense": 2, "sparse": 3, "layers": 2}, 64),
        ("candle-uno", {"branches": 3, "layers": 2, "seed": 3}, 256),
    ],
)
def test_equal_branches_are_interchangeable(
    family: str, sizes: dict[str, int], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking at them up to order gives the same bound as telling them apart."""
    problem = GraphProblem.build(
        multi_branch_model(family, **sizes),  # type: ignore[arg-type]
        devices=4,
        memory_bytes=16 * 2**30,
        bandwidth_bytes_per_s=12_500_000_000,
        mini_batch=batch,
    )
    together = iteration_bound(problem, FAR)
    groups: list[list[list[int]]] = []

    def told_apart(*arguments: Any) -> list[list[list[int]]]:
        groups[:] = equal_branches(*arguments)
        return [[branch] for group in groups for branch in group]

    monkeypatch.setattr(bound_module, "equal_branches", told_apart)
    assert iteration_bound(problem, FAR) == together
    assert max(map(len, groups)) == (1 if "seed" in sizes else 3)


def test_models_of_many_layers_have_chains() -> None:
    """More than a hundred layers, of which no branch is cheap: better than all work, spread evenly."""
    problem = GraphProblem.build(
        multi_branch_model("mmt", branches=3, layers=40, micro_batch_sizes=(4,)),
        devices=16,
        memory_bytes=16 * 2**30,
        bandwidth_bytes_per_s=12_500_000_000,
        mini_batch=32,
    )
    layer = problem.choices[0][0].micro_batches[4]
    work = 8 * 120 * (layer.forward + layer.backward)
    found = iteration_bound(problem, FAR)
    assert found.method == "chains"
    assert found.value > 1.03 * work / 16
