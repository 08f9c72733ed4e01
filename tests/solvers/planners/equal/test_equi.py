"""Equal division finds the best plan of its family, as trying every member one by one does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from machines import on_other_devices
from training_models import random_model, random_problem
from training_oracles import best_time, is_plan, time_of

from mtpp.formats.training.models import read_training_model
from mtpp.host.deadline import Deadline
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.equal import equi, pipedream_2bw
from mtpp.solvers.planners.equal.equi import divisions, kind_of, plan, repeated_layers
from mtpp.solvers.planners.topological_orders import topological_orders
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes
from mtpp.units import PICOSECONDS


def family(problem: PlanningProblem) -> Iterator[list[LayerStage]]:
    """Yield every pipeline of equal groups, in memory or not; without anything around repeated layers."""
    n = len(problem.model.layers)
    for order in topological_orders(problem.model):
        for w in range(1, n + 1):
            ends = [i * (n // w) + max(0, i - (w - n % w)) for i in range(w + 1)]
            groups = [order[a:b] for a, b in pairwise(ends)]
            for t in problem.degrees:
                by_layer = problem.choices[problem.degrees.index(t)]
                for d in problem.data_degrees:
                    for recompute in (False, True) if all(by_layer) else ():
                        yield from configured(by_layer, groups, d, t, recompute)


def configured(by_layer: Sequence, groups: list, d: int, t: int, recompute: bool) -> Iterator[list[LayerStage]]:
    """Yield the stages with the fastest of the wanted configurations, and with the leanest."""
    for lean in (False, True):
        stages = []
        for i, group in enumerate(groups):
            chosen = []
            for v in group:
                alike = [c for c, one in enumerate(by_layer[v]) if one.configuration.recomputes == recompute]
                best = []
                for c in alike or range(len(by_layer[v])):
                    one = by_layer[v][c]
                    memory = one.memory_a * (len(groups) - i) + one.memory_b
                    best.append(((memory, one.compute_ticks) if lean else (one.compute_ticks, memory), c))
                chosen.append(min(best)[1])
            stages.append(LayerStage(group, d, t, chosen))
        yield stages


def result(problem: PlanningProblem) -> TrainingPlan | NoPlan:
    """Return what equal division makes of it."""
    return equi.plan(problem, PlanLimits())


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_best_of_its_family(first: int) -> None:
    """The plan is valid and as fast as the best of all members; where there is none, none is found."""
    some = 0
    for seed in range(first, first + 40):
        problem = random_problem(seed)
        best = min((time_of(problem, stages) for stages in family(problem) if is_plan(problem, stages)), default=None)
        found = result(problem)
        if best is None:
            assert isinstance(found, NoPlan)
            assert found.reason
        else:
            assert isinstance(found, TrainingPlan)
            assert is_plan(problem, found.stages)
            assert found.time_per_sample == best
            some += 1
    assert some > 10


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_among_all_plans(first: int) -> None:
    """The plan is no better than the best of all there are, and what is proven to be impossible is."""
    for seed in range(first, first + 40):
        problem = random_problem(seed, 3)
        best = best_time(problem)
        found = result(problem)
        if isinstance(found, NoPlan):
            assert not (found.proven and best is not None)
        else:
            assert best is not None
            assert found.lower.value <= best <= found.time_per_sample


def test_least_memory() -> None:
    """With the memory that is said to be the least there is a plan, with one byte less there is none."""
    some = 0
    for seed in range(60):
        problem = on_other_devices(random_problem(seed, 5), memory_bytes=1)
        found = result(problem)
        assert isinstance(found, NoPlan)
        if found.least_memory_bytes is None:
            assert isinstance(result(on_other_devices(problem, memory_bytes=10**6)), NoPlan)
        else:
            some += 1
            assert isinstance(result(on_other_devices(problem, memory_bytes=found.least_memory_bytes)), TrainingPlan)
            less = result(on_other_devices(problem, memory_bytes=found.least_memory_bytes - 1))
            assert isinstance(less, NoPlan)
            assert less.least_memory_bytes == found.least_memory_bytes
    assert some > 20


def test_without_tensor_parallelism() -> None:
    """PipeDream-2BW is equal division with t = 1, and its bound holds for plans with more as well."""
    differ = 0
    for seed in range(40):
        problem = on_other_devices(random_problem(seed, 4), memory_bytes=10**6)
        alone = pipedream_2bw.plan(problem, PlanLimits())
        if not all(1 in layer.configurations for layer in problem.model.layers):
            assert isinstance(alone, NoPlan)
            continue
        schemes = replace(problem.schemes, tensor_parallel=False)
        without = result(rebuilt(problem, schemes))
        assert isinstance(alone, TrainingPlan) == isinstance(without, TrainingPlan)
        if isinstance(alone, TrainingPlan) and isinstance(without, TrainingPlan):
            assert alone.planner == "pipedream-2bw"
            assert {stage.tensor_parallel for stage in alone.stages} == {1}
            assert alone.time_per_sample == without.time_per_sample
            with_all = result(problem)
            assert isinstance(with_all, TrainingPlan)
            assert with_all.lower == alone.lower
            assert with_all.time_per_sample <= alone.time_per_sample
            differ += with_all.time_per_sample < alone.time_per_sample
    assert differ


def rebuilt(problem: PlanningProblem, schemes: Schemes) -> PlanningProblem:
    """Return the problem with other schemes."""
    return PlanningProblem(
        problem.model,
        machine=Machine.of_devices(
            problem.devices, memory_bytes=problem.memory_bytes, bandwidth_bytes_per_s=problem.link.bandwidth_bytes_per_s
        ),
        micro_batches=problem.micro_batches,
        exact_micro_batches=problem.exact_micro_batches,
        convention=problem.convention,
        schemes=schemes,
    )


def test_scaled_costs() -> None:
    """Costs ten times as large, over a network ten times as slow, give a plan ten times as slow."""
    problem = on_other_devices(random_problem(3, 6), memory_bytes=10**6, bandwidth_bytes_per_s=10**12)
    problem = rebuilt(problem, problem.schemes)
    layers = [
        replace(
            layer,
            configurations={
                t: [replace(one, time_per_sample=10 * one.time_per_sample) for one in here]
                for t, here in layer.configurations.items()
            },
        )
        for layer in problem.model.layers
    ]
    slower = rebuilt(
        on_other_devices(
            replace(problem, model=replace(problem.model, layers=layers)),
            bandwidth_bytes_per_s=problem.link.bandwidth_bytes_per_s // 10,
        ),
        problem.schemes,
    )
    fast, slow = result(problem), result(slower)
    assert isinstance(fast, TrainingPlan)
    assert isinstance(slow, TrainingPlan)
    assert slow.time_per_sample == 10 * fast.time_per_sample
    assert slow.time_per_sample > Fraction(0)


def test_no_time() -> None:
    """At the time limit there is no plan, and nothing is claimed about it."""
    found = equi.plan(random_problem(3, 6), PlanLimits(deadline=Deadline(0)))
    assert isinstance(found, NoPlan)
    assert (found.proven, found.least_memory_bytes, found.stopped) == (False, None, "time-limit")


def model_of(names: list[str], ends: list[tuple[int, int]]) -> TrainingModel:
    """Return a model of layers with these names."""
    run = {1: [Configuration("only", 1, 0, 0, 0)]}
    return TrainingModel(
        "model", "ps", [Layer(v, name, run) for v, name in enumerate(names)], [Edge(u, v, 0) for u, v in ends]
    )


def transformer() -> TrainingModel:
    """Return an embedding of tokens, a mask that every block reads, five blocks, and a pooler."""
    names = ["tokens", "Embedding", "mask", *(f"Block #{i}" for i in range(3, 8)), "Pooler"]
    return model_of(names, [(0, 1), (1, 3), *((2, v) for v in range(3, 8)), *((v, v + 1) for v in range(3, 7)), (7, 8)])


def all_divisions(model: TrainingModel, most: int = 100) -> set[tuple[int, ...]]:
    """Return the stage of each layer in every division."""
    return {tuple(division.stage_of.tolist()) for division in divisions(model, most)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ParallelTransformerLayer #12", "ParallelTransformerLayer"),
        ("ParallelTransformerLayer", "ParallelTransformerLayer"),
        ("encoder.layer.3.attention", "encoder.layer.#.attention"),
        ("node17", "node"),
        ("17", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    """Numbers do not tell layers apart."""
    assert kind_of(name) == kind


def test_what_is_around_repeated_layers() -> None:
    """Those before go with the first group and those after with the last, or apart, the mask either way."""
    found = repeated_layers(transformer())
    assert found is not None
    assert (found.kind, found.layers, found.feeds) == ("Block", [3, 4, 5, 6, 7], [2])
    assert all_divisions(transformer(), 4) == {
        (0,) * 9,
        (0, 0, 0, 0, 0, 1, 1, 1, 1),
        (0, 0, 0, 0, 1, 1, 2, 2, 2),
        (0, 0, 0, 0, 1, 2, 3, 3, 3),
        (0, 0, 0, 1, 1, 1, 1, 1, 2),
        (0, 0, 1, 1, 1, 1, 1, 1, 2),
        (0, 0, 0, 1, 1, 2, 2, 2, 3),
        (0, 0, 1, 1, 1, 2, 2, 2, 3),
    }


def test_layers_between_repeated_ones() -> None:
    """A layer between two repeated ones goes with the one before it."""
    names = ["Attention 0", "Linear A", "Attention 1", "Linear B", "Attention 2"]
    model = model_of(names, [(0, 1), (1, 2), (2, 3), (3, 4)])
    found = repeated_layers(model)
    assert found is not None
    assert found.layers == [0, 2, 4]
    assert all_divisions(model) == {(0, 0, 0, 0, 0), (0, 0, 1, 1, 1), (0, 0, 1, 1, 2)}


def test_no_repeated_layers() -> None:
    """Layers side by side are no repetition, whatever their names; nor are two, or fewer than there are of others."""
    fork = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5)]
    assert repeated_layers(model_of([*(f"node{v}" for v in range(4)), "node4", "end"], fork)) is None
    wide = [(v, 4) for v in range(4)] + [(4, 5), (5, 6)]
    assert repeated_layers(model_of([*(f"node{v}" for v in range(4)), "top1", "top2", "top3"], wide)) is None
    assert repeated_layers(model_of(["node1", "node2", "node3", "node4"], [(0, 1), (0, 2), (1, 3), (2, 3)])) is None
    assert repeated_layers(model_of(["node1", "node2", "end"], [(0, 1), (1, 2)])) is None


@pytest.mark.parametrize("seed", range(20))
def test_equal_groups_along_orders(seed: int) -> None:
    """Groups differ by one layer at most, larger ones come last, edges lead on, and none comes twice."""
    model = random_model(seed, 4 + seed % 9)
    found = [(d.stages, d.stage_of.tolist()) for d in divisions(model, 6)]
    assert len({tuple(stage_of) for _, stage_of in found}) == len(found)
    assert {stages for stages, _ in found} == set(range(1, min(6, len(model.layers)) + 1))
    for stages, stage_of in found:
        sizes = [stage_of.count(i) for i in range(stages)]
        assert sizes == sorted(sizes)
        assert sum(sizes) == len(model.layers)
        assert sizes[-1] - sizes[0] <= 1
        assert all(stage_of[u] <= stage_of[v] for u, v in model.ends)


@pytest.mark.parametrize(("name", "micro_batches"), [("gnmt", 256), ("resnet", 7680)])
@pytest.mark.parametrize("convention", ["program", "paper"])
def test_published_rows(
    name: str, micro_batches: int, convention: str, shared_data: Path, shared_reference: Path
) -> None:
    """As fast as the published numbers up to their last digit, and infeasible in no row that has one."""
    text = (shared_reference / "piper.json").read_text(encoding="utf-8")
    model, _ = read_training_model(str(shared_data / "piper" / f"{name}.json"), "ms")
    rows = json.loads(text, parse_float=Decimal)[name][convention]
    for row in (row for row in rows if row["equi_tps"] is not None):
        problem = PlanningProblem(
            model,
            machine=Machine.of_devices(
                row["devices"], memory_bytes=int(row["memory_gib"] * 2**30), bandwidth_bytes_per_s=25 * 2**30 * 1000
            ),
            micro_batches=micro_batches,
            convention=convention,
        )
        found = plan(problem, PlanLimits())
        assert isinstance(found, TrainingPlan)
        half_a_digit = Fraction(10) ** row["equi_tps"].as_tuple().exponent / 2
        assert found.time_per_sample / PICOSECONDS["ms"] <= Fraction(row["equi_tps"]) + half_a_digit
