"""Search for stage graphs: close to the optimum of small models, and to the bound of the paper's models."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from graph_plan_oracles import random_graph_case

from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.solvers.planners.graphpipe.bound import iteration_bound
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline
from mtpp.solvers.planners.graphpipe.exhaustive import ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.search import search_stage_graphs
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.graph_problem import GraphProblem, GraphRules


def _simulated(problem: GraphProblem, plan: GraphPipeline) -> int:
    """Return the iteration of a plan by the simulation of its stage graph; memory and devices suffice."""
    stages = [one.scheduled(problem, count) for one, count in zip(plan.stages, plan.in_flight, strict=True)]
    assert all(problem.costs.memory_bytes(stage) <= problem.memory_bytes for stage in stages)
    assert sum(stage.data_parallel for stage in stages) <= problem.devices
    assert sorted(layer for stage in stages for layer in stage.configurations) == list(range(len(problem.model.layers)))
    return simulate(problem.costs.stage_graph(stages, [str(s) for s in range(len(stages))])).iteration


def _problem(model_of: str, devices: int, mini_batch: int, **rules: str) -> GraphProblem:
    return GraphProblem.build(
        multi_branch_model(model_of),
        devices=devices,
        memory_bytes=16 * 2**30,
        bandwidth_bytes_per_s=12_500_000_000,
        mini_batch=mini_batch,
        rules=GraphRules(**rules),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("devices", "mini_batch", "ratio"), [(4, 64, 1.08), (8, 128, 1.08), (16, 256, 1.10), (32, 512, 1.20)]
)
def test_multi_modal_transformers_are_close_to_the_bound(devices: int, mini_batch: int, ratio: float) -> None:
    """Four branches of eight layers (Jeon et al. 2025, appendix A.2); fewest in flight are never better."""
    problem = _problem("mmt", devices, mini_batch)
    plan = search_stage_graphs(problem)
    assert plan is not None
    assert _simulated(problem, plan) == plan.iteration
    assert plan.iteration <= ratio * iteration_bound(problem, plan.iteration).value
    least = search_stage_graphs(replace(problem, rules=replace(problem.rules, in_flight="least")))
    assert least is not None
    assert plan.iteration <= least.iteration


@pytest.mark.parametrize(("family", "mini_batch"), [("dlrm", 512), ("candle-uno", 8192)])
def test_other_models_of_the_paper(family: str, mini_batch: int) -> None:
    """Eight devices: a plan that is what it says."""
    problem = _problem(family, 8, mini_batch)
    plan = search_stage_graphs(problem)
    assert plan is not None
    assert _simulated(problem, plan) == plan.iteration


def test_small_models_against_the_optimum() -> None:
    """Never better than all stage graphs, mostly as good; a plan wherever there is one with memory to spare."""
    equal = compared = 0
    for seed in range(120):
        document, asked = random_graph_case(seed)
        model = training_model_from_document(parse_json(json.dumps(document).encode(), "m"), "m")
        problem = GraphProblem.build(
            model,
            devices=asked["devices"],
            memory_bytes=asked["memory_bytes"],
            bandwidth_bytes_per_s=asked["bandwidth"],
            mini_batch=asked["mini_batch"],
            latency_ticks=asked["latency"],
        )
        best, found = ExhaustiveSearch(problem).best(), search_stage_graphs(problem)
        if best is None:
            assert found is None
        elif found is not None:
            assert found.iteration >= best.iteration
            assert _simulated(problem, found) == found.iteration
            compared += 1
            equal += found.iteration == best.iteration
    assert compared > 70
    assert equal > 0.8 * compared
