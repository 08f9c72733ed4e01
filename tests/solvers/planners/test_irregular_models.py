"""Planners on irregular models against brute force: layers that list different sizes, degrees and configurations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from irregular_campaign import CHECKS, check_graphpipe, read_model
from irregular_graph_oracle import OracleTransfer, OracleWay, iteration_of
from irregular_models import irregular_graph_case, irregular_model, permuted
from nested_models import graph_problem
from pipeline_events import simulate_events
from seeds import sampled

from mtpp.errors import InputError
from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.exhaustive import MOST_LAYERS
from mtpp.solvers.planners.graphpipe.planner import plan
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.graph_problem import GraphProblem, GraphRules


@pytest.mark.parametrize("planner", CHECKS)
def test_as_brute_force(planner: str) -> None:
    """The plan is the optimum, bounds are not above it, what is refused has no plan, ``verify`` finds nothing false."""
    came = {CHECKS[planner](seed) for seed in range(100)}
    assert len(came) > 1


def test_layers_that_few_options_can_run_count_in_full_when_chains_are_searched_again() -> None:
    """An option that has no costs of a layer, or takes too long, does not lower what the layer takes at least."""
    assert check_graphpipe(33_566, more=False) == "optimal"


@pytest.mark.slow
@pytest.mark.parametrize("planner", CHECKS)
def test_as_brute_force_of_many(planner: str) -> None:
    """Hundreds more of the kind, thousands with ``MTPP_ALL_SEEDS``; :mod:`irregular_campaign` runs any number."""
    for seed in sampled(range(200_000, 203_000), 150):
        CHECKS[planner](seed)


def test_the_oracle_simulates_as_events_do() -> None:
    """Iterations of random stages are those of a simulation by a clock and a queue of events, deadlocks as well."""
    deadlocks = 0
    for seed in range(300):
        draw = random.Random(seed)
        batch = draw.choice((1, 2, 4, 6))
        sizes = [draw.choice([b for b in (1, 2, 4) if batch % b == 0]) for _ in range(draw.randint(1, 3))]
        ways = [
            OracleWay(b, 1, draw.choice((1, 2)), draw.randint(0, 9), draw.randint(0, 9), 3, 0, 0, ()) for b in sizes
        ]
        counts = [draw.randint(1, batch // b) for b in sizes]
        pairs = [(a, b) for b in range(len(ways)) for a in range(b) if draw.random() < 0.7]
        transfers = [OracleTransfer(a, b, draw.randint(0, 9), draw.randint(0, 9)) for a, b in pairs]
        document = {
            "mini_batch": batch,
            "stages": [
                {
                    "micro_batch": way.b,
                    "k": way.k,
                    "in_flight": count,
                    "forward": way.forward,
                    "backward": way.backward,
                    "synchronisation": way.synchronisation,
                }
                for way, count in zip(ways, counts, strict=True)
            ],
            "transfers": [one._asdict() for one in transfers],
        }
        expected, found = simulate_events(document), iteration_of(batch, ways, counts, transfers)
        deadlocks += found is None
        assert found == (None if expected is None else expected["iteration"])
    assert 0 < deadlocks < 200


def test_large_models_are_planned_whatever_their_layers_list() -> None:
    """Nine to fourteen layers, too many to look at all plans: a plan, or a proof that no stages make up the model."""
    came = {"planned": 0, "hopeless": 0}
    for seed in range(24):
        document = irregular_model(random.Random(seed), most_layers=14)
        try:
            problem = _twelve_devices(document)
        except InputError:
            continue
        if len(problem.model.layers) <= MOST_LAYERS:
            continue
        found = plan(problem, Limits())
        if isinstance(found, NoGraphPlan):
            assert found.hopeless, f"seed {seed}"
            came["hopeless"] += 1
        else:
            assert found.lower.value <= found.iteration
            came["planned"] += 1
    assert came["planned"] > came["hopeless"]


def _twelve_devices(document: dict[str, Any]) -> GraphProblem:
    return GraphProblem.build(
        read_model(document),
        machine=Machine.of_devices(12, memory_bytes=10**9, bandwidth_bytes_per_s=10**12),
        mini_batch=8,
        rules=GraphRules(micro_batch_sizes=(4, 8)),
    )


def test_the_order_in_a_file_does_not_matter() -> None:
    """The optimum of small models is the same for layers and edges in any order."""
    for seed in range(40):
        document, asked = irregular_graph_case(seed)
        try:
            one = plan(graph_problem(document, asked), Limits())
        except InputError:
            continue
        other = plan(graph_problem(permuted(document, seed), asked), Limits())
        assert type(one) is type(other)
        if isinstance(one, GraphPlan) and isinstance(other, GraphPlan):
            assert one.iteration == other.iteration
