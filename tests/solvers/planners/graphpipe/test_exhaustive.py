"""Every stage graph of a small model: optima of the reference, and of an oracle that simulates all plans by events."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_plan_oracles import best_iteration, random_graph_case
from machines import on_machine
from nested_models import graph_problem, simulated_ticks
from seeds import sampled

from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.machine.machine import Machine
from mtpp.solvers.planners.graphpipe import stage_options
from mtpp.solvers.planners.graphpipe.candidate import PipelineCandidate
from mtpp.solvers.planners.graphpipe.exhaustive import ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.kernels.path_bound import path_bound
from mtpp.solvers.planners.graphpipe.search import StageGraphSearch
from mtpp.solvers.planners.simulation.kernels.pipeline_iteration import pipeline_iteration
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel


def _model(document: Any) -> TrainingModel:
    return training_model_from_document(parse_json(json.dumps(document).encode(), "m"), "m")


RULES: dict[str, dict[str, Any]] = {
    "optimum_ticks": {},
    "optimum_least_in_flight_ticks": {"in_flight": "least"},
    "sequential_optimum_ticks": {"sequential": True},
    "sequential_least_in_flight_ticks": {"sequential": True, "in_flight": "least"},
    "per_stage_optimum_ticks": {"per_stage": True},
}


@pytest.mark.parametrize("number", range(6))
def test_optima_of_the_reference(number: int, shared_reference: Path) -> None:
    """Any stage graph, one line, sizes by stage, fewest in flight; and the least memory that will do."""
    case = json.loads((shared_reference / "graphpipe.json").read_text())["models"][number]
    system = {
        "devices": case["devices"],
        "bandwidth_bytes_per_s": case["bandwidth_bytes_per_s"],
        "mini_batch": case["mini_batch"],
    }
    model, sizes = _model(case["model"]), case["micro_batch_sizes"]
    for key, rules in RULES.items():
        if key not in case:
            continue
        asked = GraphRules(micro_batch_sizes=sizes, **rules)
        problem = GraphProblem.build(model, rules=asked, **on_machine(memory_bytes=case["memory_bytes"], **system))
        plan = ExhaustiveSearch(problem).best()
        assert plan is not None
        assert plan.iteration == case[key] == simulated_ticks(problem, plan), key
    for memory, fits in ((case["least_memory_bytes"], True), (case["least_memory_bytes"] - 1, False)):
        asked = GraphRules(micro_batch_sizes=sizes)
        problem = GraphProblem.build(model, rules=asked, **on_machine(memory_bytes=memory, **system))
        assert (ExhaustiveSearch(problem).best() is not None) == fits


def test_stages_that_algorithm_1_cannot_make(shared_reference: Path) -> None:
    """Parts of two branches in one stage, and lines: the optimum over all stage graphs."""
    for case in json.loads((shared_reference / "graphpipe.json").read_text())["beyond_algorithm_1"]["cases"]:
        problem = GraphProblem.build(
            _model(case["model"]),
            machine=Machine.of_devices(case["devices"], memory_bytes=10**12, bandwidth_bytes_per_s=10**12),
            mini_batch=case["mini_batch"],
        )
        plan = ExhaustiveSearch(problem).best()
        assert plan is not None
        assert plan.iteration == case["all_stage_graphs"] == simulated_ticks(problem, plan)


def _compare(seed: int) -> bool:
    document, asked = random_graph_case(seed)
    problem = graph_problem(document, asked)
    plan, expected = ExhaustiveSearch(problem).best(), best_iteration(document, asked)
    assert (None if plan is None else plan.iteration) == expected, seed
    if plan is not None:
        assert simulated_ticks(problem, plan) == plan.iteration
    return plan is not None


@pytest.mark.parametrize("seeds", [range(25), pytest.param(sampled(range(1_000, 1_250), 125), marks=pytest.mark.slow)])
def test_random_models_against_all_plans(seeds: range) -> None:
    """Memory, latency, lines, sizes by stage and kFkB: the same optimum, or no plan in both."""
    planned = [_compare(seed) for seed in seeds]
    assert 10 * len(seeds) // 25 < sum(planned) < len(seeds)


def test_the_bound_of_a_pipeline_is_never_above_its_iteration() -> None:
    """Random stage graphs of any times, sizes and numbers in flight; equal for equal stages and free transfers."""
    draw = np.random.default_rng(3)
    ended = 0
    for _ in range(2_000):
        count = int(draw.integers(1, 6))
        sizes = 2 ** draw.integers(0, 3, count)
        costs = np.zeros((count, 4), dtype=np.int64)
        costs[:, :3] = draw.integers(0, 9, (count, 3))
        costs[:, 3] = 8 // sizes
        ends = np.array([(a, b) for a in range(count) for b in range(a + 1, count) if draw.random() < 0.5])
        ends = ends.reshape(-1, 2).astype(np.int64)
        ticks = draw.integers(0, 5, ends.shape)
        shape = np.stack([sizes, np.ones_like(sizes)], axis=1)
        time = pipeline_iteration(costs, shape, draw.integers(1, 9, count), ends, ticks)
        if time >= 0:
            ended += 1
            assert path_bound(costs, ends, ticks) <= time
    assert ended > 1_000


def test_what_tensors_cost_to_share_is_no_reason_to_drop_a_configuration() -> None:
    """A slower configuration that takes its tensor without more bytes is the better one."""
    first = Layer(0, "a", {1: [Configuration("plain", 30, 0, 1, 1)]})
    shares = Configuration("shares", 30, 0, 1, 1, forward_sync_bytes={0: 50})
    second = Layer(1, "b", {1: [shares, Configuration("plain", 33, 0, 1, 1)]})
    model = TrainingModel("m", "ps", [first, second], [Edge(0, 1, 1)])
    problem = GraphProblem.build(
        model,
        machine=Machine.of_devices(2, memory_bytes=10**6, bandwidth_bytes_per_s=10**12),
        mini_batch=8,
        micro_batch_size=1,
        rules=GraphRules(micro_batch_sizes=[1]),
    )
    plan = ExhaustiveSearch(problem).best()
    assert plan is not None
    assert plan.iteration == 296
    assert simulated_ticks(problem, plan) == 296


def _chain() -> GraphProblem:
    layers = [Layer(i, str(i), {1: [Configuration("plain", 100 + i, 0, 1, 1)]}) for i in range(5)]
    edges = [Edge(i, i + 1, 90) for i in range(4)]
    return GraphProblem.build(
        TrainingModel("m", "ns", layers, edges),
        machine=Machine.of_devices(4, memory_bytes=10**6, bandwidth_bytes_per_s=10**9),
        mini_batch=512,
        micro_batch_size=1,
        rules=GraphRules(micro_batch_sizes=[1], data_parallel=False),
    )


def test_a_search_that_is_ended_says_that_it_is_not_complete() -> None:
    """It looks at next to nothing."""
    search = ExhaustiveSearch(_chain(), ended=lambda: True)
    search.best()
    assert not search.complete


def test_too_many_mixes_of_configurations_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight layers of eight ways to run, each of which is the best in some respect: 8⁸ mixes of all layers."""
    draw = random.Random(5)

    def ways() -> list[Configuration]:
        return [
            Configuration(str(i), 100 + 17 * i + draw.randint(0, 9), draw.randint(0, 999), 4000 // (i + 1), 60 - i)
            for i in range(8)
        ]

    layers = [Layer(v, str(v), {1: ways()}) for v in range(8)]
    model = TrainingModel("m", "us", layers, [Edge(v, v + 1, 4) for v in range(7)])
    problem = GraphProblem.build(
        model,
        machine=Machine.of_devices(4, memory_bytes=10**9, bandwidth_bytes_per_s=10**9),
        mini_batch=8,
        micro_batch_size=1,
    )
    monkeypatch.setattr(stage_options, "_MOST_COMPARED", 100_000)
    search = ExhaustiveSearch(problem)
    search.best()
    assert not search.complete
    known = StageGraphSearch(problem).best()
    assert search.best(known) is known


def test_numbers_in_flight_follow_round_trips() -> None:
    """Transfers take as long as passes: as many in flight as hide them, and J is reached."""
    problem = _chain()
    found = StageGraphSearch(problem).best()
    assert found is not None
    assert found.iteration == PipelineCandidate(problem, found.stages).bound
    assert max(found.in_flight) < 64
