"""Search for stage graphs: close to the optimum of small models, and to the bound of the paper's models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
from graph_plan_oracles import random_graph_case
from nested_models import graph_problem, simulated_ticks
from seeds import ALL_SEEDS

from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.errors import Deadlock
from mtpp.host.deadline import Deadline
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits, PlanLimits
from mtpp.solvers.planners.graphpipe import annealed_pipelines
from mtpp.solvers.planners.graphpipe.bound import iteration_bound
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.exhaustive import ExhaustiveSearch
from mtpp.solvers.planners.graphpipe.kernels import stage_annealing
from mtpp.solvers.planners.graphpipe.search import StageGraphSearch
from mtpp.solvers.planners.piper.planner import plan as piper
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.plan import TrainingPlan, chosen_of
from mtpp.training.problem import PlanningProblem
from mtpp.training.stage_costs import ScheduledStage

BATCHES = {
    "mmt": {4: 64, 8: 128, 16: 256, 32: 512},
    "dlrm": {4: 256, 8: 512, 16: 1024, 32: 2048},
    "candle-uno": {4: 4096, 8: 8192, 16: 16384, 32: 32768},
}
"""Mini-batches by devices (Jeon et al. 2025, appendix A.2)."""


def _problem(model_of: str, devices: int, **rules: object) -> GraphProblem:
    return GraphProblem.build(
        multi_branch_model(model_of),
        machine=Machine.of_devices(devices, memory_bytes=16 * 2**30, bandwidth_bytes_per_s=12_500_000_000),
        mini_batch=BATCHES[model_of][devices],
        rules=GraphRules(**rules),
    )


def _best(problem: GraphProblem) -> GraphPipeline:
    plan = StageGraphSearch(problem).best()
    assert plan is not None
    assert simulated_ticks(problem, plan) == plan.iteration
    return plan


@cache
def _best_for(model_of: str, devices: int, **rules: object) -> tuple[GraphProblem, GraphPipeline]:
    """Return a problem of the paper's models with its plan, which several tests look at."""
    problem = _problem(model_of, devices, **rules)
    return problem, _best(problem)


@pytest.mark.parametrize(
    ("devices", "ratio"), [(4, 1.08), (8, 1.08), (16, 1.10), pytest.param(32, 1.20, marks=pytest.mark.slow)]
)
def test_multi_modal_transformers_are_close_to_the_bound(devices: int, ratio: float) -> None:
    """Four branches of eight layers."""
    problem, plan = _best_for("mmt", devices)
    assert plan.iteration <= ratio * iteration_bound(problem, plan.iteration).value


def test_an_ended_search_returns_a_plan_after_few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the first plan is left out, however many rules and orders there are."""
    problem = _problem("mmt", 32, per_stage=True, intervals=(1, 2, 4))
    simulated, time = [], PipelineCandidate.time

    def counted(candidate: PipelineCandidate, in_flight: Sequence[int]) -> int:
        simulated.append(candidate)
        return time(candidate, in_flight)

    monkeypatch.setattr(PipelineCandidate, "time", counted)
    plan = StageGraphSearch(problem, Limits(interrupted=lambda: True)).best()
    assert plan is not None
    assert simulated_ticks(problem, plan) == plan.iteration
    assert len(simulated) < 50


def test_multi_modal_transformers_gain_over_a_line() -> None:
    """Eight devices: a tenth at least."""
    line = _best_for("mmt", 8, sequential=True)[1]
    assert line.iteration >= 1.1 * _best_for("mmt", 8)[1].iteration


@pytest.mark.parametrize(
    ("family", "devices"),
    [
        *product(BATCHES, (4, 8)),
        *(pytest.param(family, 16, marks=pytest.mark.slow) for family in BATCHES),
        *(pytest.param(family, 32, marks=pytest.mark.slow) for family in (BATCHES if ALL_SEEDS else ())),
    ],
)
def test_no_slower_than_stricter_rules(family: str, devices: int) -> None:
    """One line, the fewest in flight, both: the plan without them is at least as fast; and not far from the bound."""
    problem, plan = _best_for(family, devices)
    assert plan.iteration <= 1.5 * iteration_bound(problem, plan.iteration).value
    for rules in ({"sequential": True}, {"in_flight": "least"}, {"sequential": True, "in_flight": "least"}):
        assert plan.iteration <= _best_for(family, devices, **rules)[1].iteration


@pytest.mark.slow
@pytest.mark.parametrize("devices", [4, 16])
@pytest.mark.parametrize("family", BATCHES)
def test_no_slower_than_the_stages_of_piper(family: str, devices: int) -> None:
    """Stages of the planner piper, in a line, with the fewest and with the most in flight that memory holds."""
    problem, plan = _best_for(family, devices)
    sizes = [size for size in problem.sizes if all(problem.layer_ways(v, size) for v in range(len(problem.choices)))]
    for samples in sizes:
        line = _piper_stages(problem, samples)
        if line is not None:
            for few in (True, False):
                time = _time_in_a_line(problem, line, few=few)
                assert time is None or plan.iteration <= time


def _piper_stages(problem: GraphProblem, samples: int) -> list[ScheduledStage] | None:
    """Return Piper's stages for micro-batches of so many samples on a device, in a pipeline of the mini-batch."""
    layers = [
        Layer(layer.id, layer.name, {1: [_of_samples(one, samples) for one in layer.configurations[1]]})
        for layer in problem.model.layers
    ]
    edges = [Edge(one.source, one.target, one.communication_bytes * samples) for one in problem.model.edges]
    model = TrainingModel("m", problem.model.time_unit, layers, edges)
    planning = PlanningProblem(
        model,
        machine=Machine.of_devices(
            problem.devices,
            memory_bytes=problem.memory_bytes,
            bandwidth_bytes_per_s=problem.costs.link.bandwidth_bytes_per_s,
        ),
        micro_batches=problem.mini_batch // samples,
    )
    found = piper(planning, PlanLimits(deadline=Deadline(20.0)))
    if not isinstance(found, TrainingPlan):
        return None
    stages = []
    for stage in found.stages:
        names = [one.configuration.id for one in chosen_of(planning, stage)]
        chosen = {
            layer: next(one for one in problem.choices[layer] if one.id == name)
            for layer, name in zip(stage.layers, names, strict=True)
        }
        stages.append(ScheduledStage(chosen, stage.data_parallel, stage.data_parallel * samples, 1))
    return stages


def _of_samples(one: Configuration, samples: int) -> Configuration:
    costs = one.micro_batches[samples]
    return replace(one, time_per_sample=costs.forward + costs.backward, memory_a=costs.memory_bytes, micro_batches={})


def _time_in_a_line(problem: GraphProblem, stages: list[ScheduledStage], *, few: bool) -> int | None:
    """Return the simulated iteration of stages in a line, None if they do not fit together or into memory."""
    batch, later, line = problem.mini_batch, 0, []
    for stage in reversed(stages):
        if batch % stage.micro_batch:
            return None
        later = min(batch, later + stage.micro_batch)
        counts = range(-(-later // stage.micro_batch), batch // stage.micro_batch + 1)
        fitting = [n for n in counts if problem.costs.memory_bytes(replace(stage, in_flight=n)) <= problem.memory_bytes]
        if not fitting:
            return None
        line.append(replace(stage, in_flight=fitting[0] if few else fitting[-1]))
    line.reverse()
    try:
        return simulate(problem.costs.stage_graph(line, [str(s) for s in range(len(line))], line=True)).iteration
    except Deadlock:
        return None


@pytest.mark.parametrize(
    "rules", [{}, {"in_flight": "least"}, {"sequential": True}, {"per_stage": True}, {"intervals": (1, 2)}]
)
def test_small_models_against_the_optimum(rules: dict[str, object]) -> None:
    """Never better than all stage graphs, mostly as good; a plan wherever there is one with memory to spare."""
    equal = compared = 0
    for seed in range(40):
        document, asked = random_graph_case(seed)
        problem = graph_problem(document, asked, GraphRules(**rules))
        best, found = ExhaustiveSearch(problem).best(), StageGraphSearch(problem).best()
        if best is None:
            assert found is None
        elif found is not None:
            assert found.iteration >= best.iteration
            assert simulated_ticks(problem, found) == found.iteration
            compared += 1
            equal += found.iteration == best.iteration
    assert compared > 20
    assert equal > 0.75 * compared


def test_chains_are_planned_as_one_line() -> None:
    """Any stages of a chain form a line."""
    layers = [Layer(i, str(i), {1: [Configuration("", 100 + 7 * (i % 5), 10, 5 + i % 3, 20)]}) for i in range(12)]
    model = TrainingModel("chain", "us", layers, [Edge(i, i + 1, 1000 * (i % 4)) for i in range(11)])
    for rule in ("any", "least"):
        graph, line = (
            StageGraphSearch(
                GraphProblem.build(
                    model,
                    machine=Machine.of_devices(4, memory_bytes=2000, bandwidth_bytes_per_s=10**9, latency_ps=10**6),
                    mini_batch=16,
                    micro_batch_size=1,
                    rules=GraphRules(sequential=sequential, in_flight=rule),
                )
            ).best()
            for sequential in (False, True)
        )
        assert graph is not None
        assert line is not None
        assert graph.iteration == line.iteration


def test_a_search_that_is_ended_keeps_the_first_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """It anneals and simulates some pipelines in place of thousands."""
    annealed, simulated = [], []
    anneal_one, simulate_one = stage_annealing.anneal_stages, PipelineCandidate.time

    def noted(*arguments: Any) -> tuple[float, int]:
        annealed.append(arguments)
        return anneal_one(*arguments)

    def counted(candidate: PipelineCandidate, in_flight: Sequence[int]) -> int:
        simulated.append(in_flight)
        return simulate_one(candidate, in_flight)

    monkeypatch.setattr(annealed_pipelines, "anneal_stages", noted)
    monkeypatch.setattr(PipelineCandidate, "time", counted)
    problem = _problem("mmt", 4, intervals=(1, 2))
    found = StageGraphSearch(problem, Limits(interrupted=lambda: True)).best()
    assert found is not None
    assert len(annealed) < 5
    assert len(simulated) < 5
    assert simulated_ticks(problem, found) == found.iteration


def _with_jobs(jobs: int) -> Callable[[GraphProblem], GraphPipeline | None]:
    return lambda problem: StageGraphSearch(problem, Limits(jobs=jobs)).best()


def test_threads_do_not_change_the_plan() -> None:
    """One thread and three."""
    problem = _problem("candle-uno", 4)
    one, three = _with_jobs(1)(problem), _with_jobs(3)(problem)
    assert one is not None
    assert three is not None
    assert (one.stages, one.in_flight, one.iteration) == (three.stages, three.in_flight, three.iteration)
