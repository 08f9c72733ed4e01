"""Lower bound of iterations: never above the optimum over all stage graphs, equal branches told apart or not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graph_plan_oracles import random_graph_case
from machines import on_other_devices
from nested_models import graph_problem

from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.machine.machine import Machine
from mtpp.solvers.planners.graphpipe import bound as bound_module
from mtpp.solvers.planners.graphpipe.bound import PipelineBound, iteration_bound
from mtpp.solvers.planners.graphpipe.branches import equal_branches
from mtpp.solvers.planners.graphpipe.chain_search import ChainSearch
from mtpp.solvers.planners.graphpipe.exhaustive import ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.kernels.chain_arrays import NONE
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.graphpipe.least_memory import memory_bound
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import TrainingModel

FAR = 10**15


def _model(document: Any) -> TrainingModel:
    return training_model_from_document(parse_json(json.dumps(document).encode(), "m"), "m")


def _reference(case: dict[str, Any]) -> GraphProblem:
    return GraphProblem.build(
        _model(case["model"]),
        machine=Machine.of_devices(
            case["devices"], memory_bytes=case["memory_bytes"], bandwidth_bytes_per_s=case["bandwidth_bytes_per_s"]
        ),
        mini_batch=case["mini_batch"],
        rules=GraphRules(micro_batch_sizes=case["micro_batch_sizes"]),
    )


def _check_proof(problem: GraphProblem, found: PipelineBound) -> None:
    """Search the chains that a bound rests on once more: there is none that takes one tick less."""
    assert found.method in ("work", "chains")
    if found.method == "work":
        return
    costs = LeastCosts(problem)
    groups = equal_branches(problem.model, costs.kinds, frozenset(found.left_out))
    for options in costs.options:
        search = ChainSearch(costs, groups, options, problem.devices, found.value, problem.memory_bytes)
        assert search.least(found.value - 1, problem.memory_bytes, 10**7)[0] == NONE


def _ratio(problem: GraphProblem) -> float | None:
    """Return optimum / bound of a small problem, None if there is no plan."""
    plan = ExhaustiveSearch(problem).best()
    if plan is None:
        return None
    lower = iteration_bound(problem, FAR)
    assert lower.value <= plan.iteration
    assert iteration_bound(problem, plan.iteration).value <= plan.iteration
    _check_proof(problem, lower)
    return plan.iteration / lower.value


def test_never_above_the_optimum() -> None:
    """Random models with memories, latencies, sizes by stage and kFkB; most bounds are close."""
    ratios = sorted(
        ratio for seed in range(150) if (ratio := _ratio(graph_problem(*random_graph_case(seed)))) is not None
    )
    assert len(ratios) > 80
    assert ratios[len(ratios) // 2] < 1.2


def test_never_above_the_optimum_with_two_configurations() -> None:
    """Layers may keep less and take longer: each is counted at its best in every respect."""
    found = [_ratio(graph_problem(*random_graph_case(seed, configurations=2))) for seed in range(60)]
    assert sum(ratio is not None for ratio in found) > 30


def test_never_above_the_optimum_of_lines() -> None:
    """In a line, all layers of the stages before count: often a better bound, and never above the optimum."""
    better = 0
    for seed in range(80):
        document, asked = random_graph_case(seed)
        problem = graph_problem(document, {**asked, "sequential": True})
        if _ratio(problem) is not None:
            free = replace(problem, rules=replace(problem.rules, sequential=False))
            assert iteration_bound(free, FAR).value <= iteration_bound(problem, FAR).value
            better += iteration_bound(free, FAR).value < iteration_bound(problem, FAR).value
    assert better > 5


@pytest.mark.slow
def test_never_above_the_optimum_of_many() -> None:
    """The same for hundreds, of up to six layers too, in one configuration or two, and in lines."""
    for seed in range(10_000, 10_200):
        _ratio(graph_problem(*random_graph_case(seed)))
        _ratio(graph_problem(*random_graph_case(seed, configurations=2)))
        document, asked = random_graph_case(seed)
        _ratio(graph_problem(document, {**asked, "sequential": True, "per_stage": seed % 2 == 0}))
    for seed in range(20_000, 20_060):
        _ratio(graph_problem(*random_graph_case(seed, most_layers=6)))


def test_few_steps_leave_layers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is what a bound is proved without; less of it, the better the bound."""
    problem = GraphProblem.build(
        multi_branch_model("dlrm", dense=3, sparse=3, layers=2, seed=1),
        machine=Machine.of_devices(4, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=12_500_000_000),
        mini_batch=128,
    )
    found = []
    for steps in (10**6, 3_000, 300, 3):
        monkeypatch.setattr(bound_module, "_MOST_STEPS", steps)
        monkeypatch.setattr(bound_module, "_RAISING_STEPS", 10 * steps)
        found.append(iteration_bound(problem, FAR))
        _check_proof(problem, found[-1])
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True)
    assert not found[0].left_out
    assert found[2].left_out
    assert len(found[3].left_out) >= len(found[1].left_out) or found[3].method == "work"


@pytest.mark.parametrize("family", ["mmt", "dlrm", "candle-uno"])
def test_threads_do_not_change_it(family: str) -> None:
    """Bound and layers left out are the same on one thread and on three."""
    model = multi_branch_model(family, layers=3, seed=2)
    for devices in (2, 4):
        problem = GraphProblem.build(
            model,
            machine=Machine.of_devices(devices, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=12_500_000_000),
            mini_batch=64 * devices,
        )
        assert iteration_bound(problem, FAR) == iteration_bound(problem, FAR, threads=3)


def test_sums_that_may_not_fit_leave_the_work() -> None:
    """Ticks near the end of 64 bits are not added up; a search that is stopped leaves the work, too."""
    problem = graph_problem(*random_graph_case(1))
    assert iteration_bound(problem, 2**60).method == "work"
    assert iteration_bound(problem, FAR, lambda: True).method == "work"


def test_memory_is_never_above_the_least(shared_reference: Path) -> None:
    """No plan of a random model fits into a byte less; of the six models, no more than the exact least."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["models"]:
        problem = _reference(case)
        assert memory_bound(problem).value <= case["least_memory_bytes"]
        assert ExhaustiveSearch(on_other_devices(problem, memory_bytes=memory_bound(problem).value - 1)).best() is None
    methods = set()
    for seed in range(120):
        problem = graph_problem(*random_graph_case(seed, configurations=1 + seed % 2))
        found = memory_bound(problem)
        assert ExhaustiveSearch(on_other_devices(problem, memory_bytes=found.value - 1)).best() is None
        methods.add(found.method)
    assert methods == {"layer", "chains"}


def test_models_of_the_reference(shared_reference: Path) -> None:
    """Below the optimum of the six models, by no more than a half."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["models"]:
        problem = _reference(case)
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
        multi_branch_model(family, **sizes),
        machine=Machine.of_devices(4, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=12_500_000_000),
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
        machine=Machine.of_devices(16, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=12_500_000_000),
        mini_batch=32,
    )
    layer = problem.choices[0][0].micro_batches[4]
    work = 8 * 120 * (layer.forward + layer.backward)
    found = iteration_bound(problem, FAR)
    assert found.method == "chains"
    assert found.value > 1.03 * work / 16
