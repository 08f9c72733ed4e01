"""Small models to be trained, drawn at random, and all plans there are for them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from mtpp.planning_problem import PlanningProblem, Schemes
from mtpp.training_model import Configuration, Edge, Layer, TrainingModel
from mtpp.training_plan import Stage, stage_figures


def random_model(seed: int, layers: int, *, degrees: Sequence[int] = (1, 2), choices: int = 2) -> TrainingModel:
    """Draw a model with edges from earlier to later layers; t = 1 is there for every layer, other degrees for some."""
    draw = random.Random(seed)
    edges = [
        Edge(u, v, draw.randrange(30)) for v in range(layers) for u in range(v) if draw.random() < (0.9, 0.3)[u < v - 1]
    ]

    def configuration(layer: int, number: int) -> Configuration:
        return Configuration(
            id=f"c{number}",
            time_per_sample=draw.randrange(100),
            parameter_bytes=draw.randrange(40),
            memory_a=draw.randrange(20),
            memory_b=draw.randrange(40),
            forward_sync_bytes={edge.source: draw.randrange(9) for edge in edges if edge.target == layer},
            backward_sync_bytes={edge.target: draw.randrange(9) for edge in edges if edge.source == layer},
            recomputes=number % 2 == 1,
        )

    made = []
    for v in range(layers):
        runs = [t for t in degrees if t == 1 or draw.random() < 0.7]
        by_degree = {t: [configuration(v, c) for c in range(1 + draw.randrange(choices))] for t in runs}
        made.append(Layer(v, f"layer {v}", by_degree))
    return TrainingModel.build(f"random-{seed}", "ps", made, edges)


def random_problem(seed: int, layers: int, *, degrees: Sequence[int] = (1, 2), choices: int = 2) -> PlanningProblem:
    """Draw a model and what is asked of it; conventions and schemes vary, and memory is short now and then."""
    model = random_model(seed, layers, degrees=degrees, choices=choices)
    draw = random.Random(seed + 10**6)
    return PlanningProblem.build(
        model,
        devices=draw.randint(1, 5),
        memory_bytes=draw.choice((60, 120, 250, 10**6)),
        bandwidth_bytes_per_s=10**12,
        micro_batches=draw.randint(1, 6),
        exact_micro_batches=draw.random() < 0.2,
        convention=draw.choice(("paper", "program")),
        schemes=Schemes(*(draw.random() < 0.8 for _ in range(3))),
    )


def pipelines(problem: PlanningProblem) -> Iterator[list[list[int]]]:
    """Yield every way to lay the layers into stages so that edges lead on."""
    n = len(problem.model.layers)
    for stage_of in product(range(n), repeat=n):
        count = max(stage_of) + 1
        if set(stage_of) == set(range(count)) and all(stage_of[u] <= stage_of[v] for u, v in problem.model.ends):
            yield [[v for v in range(n) if stage_of[v] == i] for i in range(count)]


def configured(problem: PlanningProblem, groups: list[list[int]], d: Sequence[int], t: Sequence[int]) -> Iterator[list]:
    """Yield the stages for given layers and degrees, with every choice of configurations."""
    by_layer = [problem.choices[problem.degrees.index(degree)] for degree in t]
    options = [product(*(range(len(by_layer[i][v])) for v in group)) for i, group in enumerate(groups)]
    for chosen in product(*options):
        yield [Stage(group, d[i], t[i], chosen[i]) for i, group in enumerate(groups)]


def is_plan(problem: PlanningProblem, stages: Sequence[Stage]) -> bool:
    """Tell whether stages keep to devices, micro-batches and memory."""
    degrees = sum(stage.data_parallel for stage in stages)
    return (
        sum(stage.data_parallel * stage.tensor_parallel for stage in stages) <= problem.devices
        and degrees <= problem.micro_batches
        and (degrees == problem.micro_batches or not problem.exact_micro_batches)
        and all(stage.data_parallel in problem.data_degrees for stage in stages)
        and all(figures.memory_bytes <= problem.memory_bytes for figures in stage_figures(problem, stages))
    )


def all_plans(problem: PlanningProblem) -> Iterator[list[Stage]]:
    """Yield every plan; for some three layers and five devices."""
    for groups in pipelines(problem):
        count = len(groups)
        for d in product(problem.data_degrees, repeat=count):
            if sum(d) > problem.micro_batches:
                continue
            for t in product(problem.degrees, repeat=count):
                if sum(map(int.__mul__, d, t)) > problem.devices:
                    continue
                for stages in configured(problem, groups, d, t):
                    if is_plan(problem, stages):
                        yield stages


def time_of(problem: PlanningProblem, stages: Sequence[Stage]) -> Fraction:
    """Return the time per sample of a plan."""
    return max(figures.time for figures in stage_figures(problem, stages))
