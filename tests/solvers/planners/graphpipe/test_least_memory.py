"""Memory that would do where no plan is found to fit: with as much, a plan is found."""

from __future__ import annotations

import random

import pytest

from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.planner import plan
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem, GraphRules
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel


def _model(seed: int) -> TrainingModel:
    pick = random.Random(seed).randint

    def configuration(name: str, *, recomputes: bool) -> Configuration:
        kept = pick(0, 10) if recomputes else pick(1, 40)
        return Configuration(name, pick(1, 60), pick(0, 50), kept, pick(0, 60), recomputes=recomputes)

    layers = [
        Layer(v, str(v), {1: [configuration("plain", recomputes=False), configuration("lean", recomputes=True)]})
        for v in range(pick(9, 12))
    ]
    count = len(layers)
    pairs = [(u, v) for u in range(count) for v in range(u + 1, count) if pick(0, 9) < (6 if v == u + 1 else 1)]
    return TrainingModel("m", "ns", layers, [Edge(u, v, pick(0, 30)) for u, v in pairs])


def _planned(seed: int, memory_bytes: int, rules: dict[str, object]) -> GraphPlan | NoGraphPlan:
    problem = GraphProblem.build(
        _model(seed),
        machine=Machine.of_devices(3, memory_bytes=memory_bytes, bandwidth_bytes_per_s=10**9),
        mini_batch=4,
        micro_batch_size=1,
        rules=GraphRules(**rules),
    )
    return plan(problem, Limits())


@pytest.mark.parametrize("rules", [{}, {"in_flight": "least"}])
@pytest.mark.slow
def test_the_memory_that_would_do_does(rules: dict[str, object]) -> None:
    """Models of too many layers to look at all plans; a search with a tight memory may miss what fits into it."""
    for seed in range(4):
        none = _planned(seed, 1, rules)
        assert isinstance(none, NoGraphPlan)
        assert none.least_memory_bytes is not None
        for more in (0, none.least_memory_bytes // 20):
            found = _planned(seed, none.least_memory_bytes + more, rules)
            assert isinstance(found, GraphPlan)
            assert max(found.memory_bytes) <= none.least_memory_bytes + more
