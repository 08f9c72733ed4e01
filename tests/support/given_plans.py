"""Plans of partitions and of training that tests bring along."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from machines import on_machine

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.plan import LayerStage, TimeBound, TrainingPlan, stage_figures
from mtpp.training.problem import PlanningProblem


def given_plan(graph: CostGraph, stages: list[int]) -> Plan:
    """Return the plan with the stage of each op given, on the reference system."""
    instance = Instance.build(graph, Machine.uniform(max(stages) + 1, load_device()))
    return Plan(
        graph,
        instance,
        Partition.from_stages(instance, stages),
        simple_bound(instance),
        "given",
        "given",
        0,
        1,
        "finished",
    )


MIB = 2**20


def chain_model(layers: int = 6) -> TrainingModel:
    """Return equal layers in a row: 30 ms each, 16 ms on two devices, a third more with recomputation."""

    def configurations(i: int, t: int) -> list[Configuration]:
        before = {f"layer {i - 1}": MIB} if i and t > 1 else {}
        after = {f"layer {i + 1}": MIB} if i + 1 < layers and t > 1 else {}
        time, size = (30, 100 * MIB) if t == 1 else (16, 50 * MIB)
        return [
            Configuration("vanilla", time, size, 40 * MIB // t, 400 * MIB // t, before, after),
            Configuration("recompute", time + time // 3, size, MIB, 440 * MIB // t, before, after, recomputes=True),
        ]

    return TrainingModel(
        "chain",
        "ms",
        [Layer(f"layer {i}", f"layer {i}", {t: configurations(i, t) for t in (1, 2)}) for i in range(layers)],
        [Edge(f"layer {i}", f"layer {i + 1}", 4 * MIB) for i in range(layers - 1)],
        {"devices": 8, "memory_bytes": 16 * 10**9, "micro_batches": 64},
    )


def chain_problem(**changes: Any) -> PlanningProblem:
    """Return the problem of planning it for 8 devices of 2 GiB at 25 GB/s, with N = 64."""
    settings = {"devices": 8, "memory_bytes": 2**31, "bandwidth_bytes_per_s": 25 * 10**9, "micro_batches": 64}
    return PlanningProblem(chain_model(), **on_machine(**{**settings, **changes}))


def chain_stages() -> list[LayerStage]:
    """Return three stages: two copies of three layers, one of which recomputes; two layers on two; one alone."""
    return [LayerStage([0, 1, 2], 2, 1, [0, 1, 0]), LayerStage([3, 4], 1, 2, [0, 0]), LayerStage([5], 1, 1, [0])]


def given_training_plan(
    problem: PlanningProblem | None = None,
    stages: Sequence[LayerStage] | None = None,
    *,
    lower: Fraction | None = None,
    stopped: str = "finished",
    notes: Sequence[str] = (),
) -> TrainingPlan:
    """Return a plan of the chain; without a bound given it claims to be optimal."""
    problem = problem or chain_problem()
    stages = stages or chain_stages()
    time = max(figures.time for figures in stage_figures(problem, stages))
    bound = TimeBound(time if lower is None else lower, "given", "exact", {})
    return TrainingPlan(problem, "piper", stages, bound, stopped, notes)
