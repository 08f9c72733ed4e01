"""Small problems of planning: random ones for several levels of devices, and some for stage graphs."""

from __future__ import annotations

import json
import random
from typing import Any

from training_models import build_model

from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline
from mtpp.solvers.planners.simulation.simulate import simulate
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.nested_problem import NestedProblem
from mtpp.training.problem import Schemes
from mtpp.units import PICOSECONDS

ONE = ((2,), (3,), (4,))
TWO = ((2, 2), (1, 3), (3, 1), (2, 3), (3, 2), (2, 4))
THREE = ((2, 2, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2))


def nested_problem(model: TrainingModel, machine: Machine, rest: dict[str, Any]) -> NestedProblem:
    """Return the problem of a question; the bytes of each device are in the rest of it."""
    rules = {name: value for name, value in rest.items() if name != "memory_bytes"}
    return NestedProblem.build(model, machine.with_memory(rest["memory_bytes"]), **rules)


def random_question(seed: int, most_layers: int = 4) -> tuple[TrainingModel, Machine, dict[str, Any]]:
    """Return a model, devices, and the rest of what is asked.

    Three levels for one question in four, with few layers; memory is tight, ample or not enough.
    """
    chosen = random.Random(seed)
    shape = chosen.choice(chosen.choice((ONE, TWO, TWO, THREE)))
    layers = {1: most_layers, 2: most_layers - 1, 3: most_layers - 2}[len(shape)]
    model = build_model(chosen.randint, max(1, layers))
    unit = PICOSECONDS["s"] // PICOSECONDS[model.time_unit]
    machine = Machine.of_levels(tuple(Level(count, Link(unit * chosen.choice((7, 3, 2, 1)))) for count in shape))
    leanest = [
        min(one.memory_a + one.memory_b for ones in layer.configurations.values() for one in ones)
        for layer in model.layers
    ]
    return (
        model,
        machine,
        {
            "memory_bytes": max(1, sum(leanest) * chosen.randint(2, 14) // 4),
            "micro_batches": chosen.choice((machine.count, machine.count + 2, chosen.randint(1, machine.count))),
            "exact_micro_batches": chosen.random() < 0.25,
            "schemes": Schemes(chosen.random() < 0.9, True, chosen.random() < 0.9),
        },
    )


def ladder_problem() -> GraphProblem:
    """Return the problem for two devices of 90 bytes."""
    layers = [Layer(i, str(i), {1: [Configuration(str(c), 4 + c, 1, 2 - c, 2) for c in range(2)]}) for i in range(10)]
    edges = [Edge(i, j, 1) for i in range(8) for j in (i + 1, i + 2)]
    return GraphProblem.build(
        TrainingModel("ladder", "ns", layers, edges),
        machine=Machine.of_devices(2, memory_bytes=90, bandwidth_bytes_per_s=10**9),
        mini_batch=4,
        micro_batch_size=1,
    )


def graph_problem(document: dict[str, Any], asked: dict[str, Any], rules: GraphRules | None = None) -> GraphProblem:
    """Return the problem of a drawn case, under its own rules unless others are given."""
    own: dict[str, Any] = {
        "micro_batch_sizes": asked["sizes"], "per_stage": asked["per_stage"], "intervals": asked["intervals"],
        "in_flight": "least" if asked["least"] else "any", "sequential": asked["sequential"],
        **{name: asked[name] for name in ("data_parallel", "recompute") if name in asked},
    }  # fmt: skip
    machine = Machine.of_devices(
        asked["devices"],
        memory_bytes=asked["memory_bytes"],
        bandwidth_bytes_per_s=asked["bandwidth"],
        latency_ps=asked["latency"],
    )
    model = training_model_from_document(parse_json(json.dumps(document).encode(), "m"), "m")
    return GraphProblem.build(model, machine=machine, mini_batch=asked["mini_batch"], rules=rules or GraphRules(**own))


def simulated_ticks(problem: GraphProblem, plan: GraphPipeline) -> int:
    """Return the iteration of a plan by the simulation of its stage graph; memory and devices suffice."""
    stages = [one.scheduled(problem, count) for one, count in zip(plan.stages, plan.in_flight, strict=True)]
    assert all(problem.costs.memory_bytes(stage) <= problem.memory_bytes for stage in stages)
    assert sum(stage.data_parallel for stage in stages) <= problem.devices
    assert sorted(layer for stage in stages for layer in stage.configurations) == list(range(len(problem.model.layers)))
    names = [str(s) for s in range(len(stages))]
    return simulate(problem.costs.stage_graph(stages, names, line=problem.rules.sequential)).iteration
