"""Plans of ``mtpp.GraphPipe``: results in Python, against the reference and brute force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graph_plan_oracles import best_iteration, random_graph_case
from planning import plan_with
from refusals import refusal

import mtpp
from mtpp.api.training.plan_results import GraphPlanResult
from mtpp.datasets.multi_branch_training import multi_branch_model
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine

SYSTEM: dict[str, Any] = {"devices": 4, "memory": "16GiB", "bandwidth": "12.5GB/s", "batch_size": 64}

ASKED: dict[str, dict[str, Any]] = {
    "optimum_ticks": {},
    "optimum_least_in_flight_ticks": {"in_flight": "least"},
    "sequential_optimum_ticks": {"sequential": True},
    "sequential_least_in_flight_ticks": {"sequential": True, "in_flight": "least"},
    "per_stage_optimum_ticks": {"per_stage_micro_batch": True},
}


def _reference() -> list[dict[str, Any]]:
    path = Path(__file__).parents[3] / "shared" / "reference" / "graphpipe.json"
    if not path.exists():
        pytest.skip("no shared data")
    cases: list[dict[str, Any]] = json.loads(path.read_text())["models"]
    return cases


@pytest.mark.slow
def test_models_of_the_reference_are_planned_optimally() -> None:
    """Every optimum, proven; and the least memory."""
    for case in _reference():
        system = {
            "devices": case["devices"],
            "bandwidth": case["bandwidth_bytes_per_s"],
            "batch_size": case["mini_batch"],
        }
        for key, rules in ASKED.items():
            if key in case:
                plan = plan_with(case["model"], planner="graphpipe", memory=case["memory_bytes"], **system, **rules)
                assert isinstance(plan, GraphPlanResult)
                assert (plan.plan.iteration, plan.optimal, plan.ratio) == (case[key], True, 1.0)
                assert mtpp.verify(plan, case["model"]).passed
        least = case["least_memory_bytes"]
        plan_with(case["model"], planner="graphpipe", memory=least, **system)
        with pytest.raises(mtpp.Infeasible, match="would do"):
            plan_with(case["model"], planner="graphpipe", memory=least - 1, **system)


def test_keywords_of_other_planners_are_refused() -> None:
    """A planner has no keyword of another one; the former keywords of the function say where they are now."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'tensor_parallel'"):
        mtpp.GraphPipe(tensor_parallel=False)  # type: ignore[call-arg]
    for former, form in (({}, "Piper"), ({"planner": "graphpipe"}, "GraphPipe")):
        with pytest.raises(TypeError, match=rf"belongs to a planner: write planner=mtpp\.{form}\(batch_size=…\)"):
            mtpp.plan_training(multi_branch_model("mmt"), **former, **SYSTEM)
    with pytest.raises(TypeError, match=r"write planner=mtpp\.Pfeife\(micro_batches=…\)"):
        mtpp.plan_training(multi_branch_model("mmt"), planner="pfeife", micro_batches=8)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'batch'"):
        mtpp.sweep_training(multi_branch_model("mmt"), devices=2, batch=8)
    with pytest.raises(mtpp.InputError, match=r"planner: 'pfeife' is no planner .*; write planner=mtpp\.Pfeife"):
        mtpp.plan_training(multi_branch_model("mmt"), planner="pfeife")  # type: ignore[call-overload]
    levels = Machine.of_levels((Level(2, Link(10**9)), Level(2, Link(10**9))))
    with pytest.raises(mtpp.InputError, match=r"^topology: has no effect on the planner graphpipe"):
        mtpp.plan_training(multi_branch_model("mmt"), planner=mtpp.GraphPipe(), topology=levels)


def test_times_of_a_table_have_the_unit_of_the_longest() -> None:
    """A synchronisation of 8 ms beside passes below one."""
    system = {**SYSTEM, "devices": 32, "batch_size": 512}
    plan = plan_with(multi_branch_model("mmt"), planner="graphpipe", **system)
    assert max(stage.backward_s for stage in plan.stages) < 1e-3 < plan.stages[0].synchronisation_s
    assert "(times in ms)" in repr(plan)


def test_stages_side_by_side_are_in_the_order_of_the_file() -> None:
    """By depth, then by their first layer; a line keeps its own order."""
    model = multi_branch_model("dlrm")
    place = {layer.name: i for i, layer in enumerate(model.layers)}
    plan = plan_with(model, planner="graphpipe", **{**SYSTEM, "devices": 16, "batch_size": 1024})
    depth: list[int] = []
    for stage in plan.stages:
        depth.append(max((depth[before] + 1 for before in stage.after), default=0))
    first = [min(place[name] for name in stage.layers) for stage in plan.stages]
    assert list(zip(depth, first, strict=True)) == sorted(zip(depth, first, strict=True))
    assert mtpp.simulate(plan).iteration_s == plan.iteration_s


@pytest.mark.slow
def test_random_models_against_brute_force() -> None:
    """All stage graphs, degrees, sizes and numbers in flight."""
    found = 0
    for seed in range(25):
        document, asked = random_graph_case(seed + 500)
        arguments: dict[str, Any] = {
            "devices": asked["devices"],
            "memory": asked["memory_bytes"],
            "bandwidth": asked["bandwidth"],
            "batch_size": asked["mini_batch"],
            "latency": asked["latency"],
            "micro_batch_sizes": asked["sizes"],
            "per_stage_micro_batch": asked["per_stage"],
            "kfkb": asked["intervals"],
            "in_flight": "least" if asked["least"] else "any",
            "sequential": asked["sequential"],
        }
        best = best_iteration(document, asked)
        if best is None:
            with pytest.raises(mtpp.Infeasible):
                plan_with(document, planner="graphpipe", **arguments)
            continue
        plan = plan_with(document, planner="graphpipe", **arguments)
        assert isinstance(plan, GraphPlanResult)
        assert (plan.plan.iteration, plan.optimal) == (best, True)
        found += 1
    assert found > 10


def test_result_in_python(tmp_path: Path) -> None:
    """Attributes, the shown table, the saved document, verified and simulated."""
    model = multi_branch_model("mmt", branches=2)
    plan = plan_with(model, planner="graphpipe", **SYSTEM)
    assert isinstance(plan, GraphPlanResult)
    assert plan.iteration_s == plan.plan.iteration / 10**12
    assert plan.lower_bound_s <= plan.iteration_s
    assert plan.samples_per_s == pytest.approx(64 / plan.iteration_s)
    assert plan.devices_used == sum(stage.data_parallel for stage in plan.stages) <= 4
    assert sorted(name for stage in plan.stages for name in stage.layers) == sorted(one.name for one in model.layers)
    assert all(before < index for index, stage in enumerate(plan.stages) for before in stage.after)
    assert plan.depth <= len(plan.stages)
    assert "planned by graphpipe" in repr(plan)
    assert "<table" in plan._repr_html_()
    plan.save(tmp_path / "plan.json")
    saved = json.loads((tmp_path / "plan.json").read_text())
    assert saved == plan.document()
    assert mtpp.verify(tmp_path / "plan.json", model).passed
    assert mtpp.simulate(plan).iteration_ticks == plan.plan.iteration
    assert mtpp.simulate(saved, model=model).iteration_s == plan.iteration_s


def test_chains_take_as_long_as_one_line() -> None:
    """Whatever is asked for."""
    configuration = {"id": "plain", "parameter_bytes": 50, "memory_bytes_per_micro_batch": 4, "memory_bytes": 16}
    layers = [
        {"name": str(i), "configurations": {"1": [{**configuration, "time": 10 + 7 * (i % 5)}]}} for i in range(14)
    ]
    edges = [{"source": str(i), "target": str(i + 1), "bytes": 500 * (i % 3)} for i in range(13)]
    model = {"format": "mtpp-training-model", "version": 1, "name": "chain", "time_unit": "us", "micro_batch_size": 1}
    model |= {"layers": layers, "edges": edges}
    system = {**SYSTEM, "bandwidth": "1GB/s", "batch_size": 16}
    graph, line = (
        plan_with(model, planner="graphpipe", sequential=sequential, **system) for sequential in (False, True)
    )
    assert isinstance(graph, GraphPlanResult)
    assert isinstance(line, GraphPlanResult)
    assert graph.iteration_s == line.iteration_s


@pytest.mark.parametrize(
    ("name", "value"),
    [("latency", -1), ("latency", "10"), ("micro_batch_sizes", [0]), ("micro_batch_sizes", []), ("in_flight", "most")],
)
def test_wrong_parameters_are_refused_by_name(name: str, value: Any) -> None:
    """An InputError that says which."""
    assert name in str(refusal(plan_with, multi_branch_model("mmt"), planner="graphpipe", **SYSTEM, **{name: value}))
