"""Equal division finds the best plan of its family, as trying every member one by one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from training_models import random_problem
from training_oracles import best_time, is_plan, time_of

from mtpp.host.deadline import Deadline
from mtpp.solvers.planners.equal import equi, pipedream_2bw
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.topological_orders import topological_orders
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes


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
        problem = replace(random_problem(seed, 5), memory_bytes=1)
        found = result(problem)
        assert isinstance(found, NoPlan)
        if found.least_memory_bytes is None:
            assert isinstance(result(replace(problem, memory_bytes=10**6)), NoPlan)
        else:
            some += 1
            assert isinstance(result(replace(problem, memory_bytes=found.least_memory_bytes)), TrainingPlan)
            less = result(replace(problem, memory_bytes=found.least_memory_bytes - 1))
            assert isinstance(less, NoPlan)
            assert less.least_memory_bytes == found.least_memory_bytes
    assert some > 20


def test_without_tensor_parallelism() -> None:
    """PipeDream-2BW is equal division with t = 1, and its bound holds for plans with more as well."""
    differ = 0
    for seed in range(40):
        problem = replace(random_problem(seed, 4), memory_bytes=10**6)
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
        devices=problem.devices,
        memory_bytes=problem.memory_bytes,
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s,
        micro_batches=problem.micro_batches,
        exact_micro_batches=problem.exact_micro_batches,
        convention=problem.convention,
        schemes=schemes,
    )


def test_scaled_costs() -> None:
    """Costs ten times as large, over a network ten times as slow, give a plan ten times as slow."""
    problem = replace(random_problem(3, 6), memory_bytes=10**6, bandwidth_bytes_per_s=10**12)
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
        replace(
            problem,
            model=replace(problem.model, layers=layers),
            bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s // 10,
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
