"""Names in plans and tables: those that there are, and only on results that are such as they say."""

from __future__ import annotations

from typing import Any

import pytest
from graph_strategies import chain, random_graph
from plan_documents import SHA256, graph_document
from training_models import random_problem

from mtpp.checker import names
from mtpp.checker.plan import verify_plan
from mtpp.checker.training.plan import verify_training_plan
from mtpp.checker.unchecked import unchecked_plan
from mtpp.errors import Infeasible, InputError
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.results.document_text import document_text
from mtpp.formats.results.training_plan import training_plan_document
from mtpp.host.stop_reason import StopReason
from mtpp.inference.graph import CostGraph, Op
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device
from mtpp.names import PARTITIONER_ALIASES
from mtpp.solvers.bounds.registry import BOUNDS
from mtpp.solvers.limits import PlanLimits, SearchLimits
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, PLANNERS, SPLIT_PLANNERS
from mtpp.solvers.registry import PARTITIONERS
from mtpp.solvers.solve import solve
from mtpp.solvers.variants import parse_variant
from mtpp.training.plan import NoPlan


def plan_of(graph: CostGraph, algorithm: str, k: int = 3) -> dict[str, Any]:
    """Return the plan of an algorithm, as read back."""
    plan = solve(Instance.build(graph, Machine.uniform(k, load_device())), graph, SearchLimits(50), algorithm=algorithm)
    written = plan.to_document(file={"sha256": SHA256}, dims={}, elapsed_s=0.1)
    return parse_json(dump_json(written).encode(), "plan")  # type: ignore[no-any-return]


def faults(plan: dict[str, Any], graph: CostGraph) -> list[str]:
    """Return what is wrong with the names of a plan."""
    report = verify_plan(plan, graph_document(graph), graph_sha256=SHA256, model_given=True)
    return [check.detail for check in report.checks if check.name == names.FOUND_BY]


def test_names_are_those_of_the_program() -> None:
    """The verifier has a list of its own, which is the program's."""
    assert set(names.ALGORITHMS) == {*PARTITIONERS, *PARTITIONER_ALIASES}
    assert set(names.BOUNDS) == set(BOUNDS)
    assert set(names.PLANNERS) == set(PLANNERS)
    assert {*GRAPH_PLANNERS, *SPLIT_PLANNERS} == {"graphpipe", "pfeife"}
    ends = {str(end) for end in StopReason} - {StopReason.FAILED}  # of a cell without a result
    assert {*names.PLAN_ENDS, *names.ROW_ENDS} == ends


@pytest.mark.parametrize("algorithm", PARTITIONERS)
def test_plans_of_every_algorithm_pass(algorithm: str) -> None:
    """On graphs of any shape: what an algorithm promises of its partitions holds."""
    for seed in range(12):
        graph = random_graph(seed, 9, time_unit="ps")
        try:
            assert faults(plan_of(graph, algorithm), graph) == []
        except (Infeasible, InputError):  # of rules that go by the memory of devices
            continue


@pytest.mark.parametrize("base", [*PARTITIONERS, *PARTITIONER_ALIASES, "magic", "given", "mla-"])
def test_numbers_in_names_are_those_of_the_program(base: str) -> None:
    """An algorithm that takes no number of evaluations, or no such one, has no name with it."""
    graph = chain([5, 3, 4, 2], [1, 1, 1], "ps")
    plan = plan_of(graph, "auto")
    for ending in ("-1", "-7", "-100", "-0", "-01", "-5-4", "-", "-1000000000000"):
        name = base + ending
        try:
            parse_variant(name)
        except InputError:
            assert faults(plan | {"algorithm": name}, graph) == [f"no algorithm is called {name!r}"]
        else:
            assert faults(plan | {"algorithm": name}, graph) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"algorithm": "magic"}, "no algorithm is called 'magic'"),
        ({"algorithm": "exact"}, "no algorithm is called 'exact'"),
        ({"found_by": "magic"}, "no algorithm is called 'magic'"),
        ({"algorithm": "given"}, "the algorithm is given, and the partition was found by"),
        ({"found_by": "given"}, "the algorithm is auto, and the partition was found by given"),
        ({"algorithm": "slice", "found_by": "anneal"}, "slice cuts the graph's own order"),
        ({"stopped": "because"}, "no reason why a search ends"),
        ({"stopped": "infeasible"}, "it ended without a plan"),
        ({"stopped": "optimal", "optimal": False}, "does not say optimal"),
    ],
    ids=str,
)
def test_a_wrong_name_is_false(change: dict[str, Any], said: str) -> None:
    """Whatever else holds."""
    graph = chain([5, 3, 4, 2], [1, 1, 1], "ps")
    plan = plan_of(graph, "auto")
    assert faults(plan, graph) == []
    (found,) = faults(plan | change, graph)
    assert said in found


def test_names_are_held_to_where_the_model_is_not_found() -> None:
    """Of plans whose model nobody has, names are what can be told."""
    plan = plan_of(chain([5, 3, 4, 2], [1, 1, 1], "ps"), "auto")
    assert unchecked_plan(plan, "not here").verdict == "unchecked"
    assert unchecked_plan(plan | {"algorithm": "magic"}, "not here").named("false") == [names.FOUND_BY]


def test_stages_of_slice_are_runs_of_the_order() -> None:
    """A partition that no cut of the file's order has is not by slice."""
    ops = [Op(name, 4) for name in "abc"]
    graph = CostGraph.build(name="apart", time_unit="ps", ops=ops, tensors=[])
    plan = plan_of(graph, "auto", k=2)
    plan |= {"algorithm": "slice", "found_by": "slice", "assignment": {"a": 0, "b": 1, "c": 0}}
    assert faults(plan, graph) == ["slice cuts the graph's own order, and the stages are no runs of it"]
    assert faults(plan | {"assignment": {"a": 0, "b": 1, "c": 1}}, graph) == []


@pytest.mark.parametrize("planner", PLANNERS)
def test_plans_of_every_planner_pass(planner: str) -> None:
    """Under its own name, and under no name that stands for something else."""
    passed = 0
    for seed in range(40):
        problem = random_problem(seed, most_layers=5, most_devices=4)
        result = PLANNERS[planner].load()(problem, PlanLimits())
        if isinstance(result, NoPlan):
            continue
        written = training_plan_document(
            result, file={"sha256": SHA256}, knapsack="exact", heuristic_differs=[], elapsed_s=0.1
        )
        plan = parse_json(document_text(written).encode(), "plan")

        def found(document: Any, model: Any = problem.model) -> list[str]:
            report = verify_training_plan(document, model, SHA256)
            return [check.detail for check in report.checks if check.name == names.FOUND_BY]

        assert found(plan) == []
        assert found({**plan, "planner": "oracle"}) == ["no planner is called 'oracle'"]
        stages = plan["stages"]
        if len({(row["data_parallel"], row["tensor_parallel"]) for row in stages}) > 1:
            for other in ("equi", "pipedream-2bw"):
                assert "makes equal stages" in found({**plan, "planner": other})[0]
        if any(row["tensor_parallel"] > 1 for row in stages) and planner == "equi":
            assert "no tensor parallelism" in found({**plan, "planner": "pipedream-2bw"})[0]
        passed += 1
    assert passed > 5
