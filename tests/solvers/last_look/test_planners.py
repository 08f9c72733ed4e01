"""Last looks at training plans: a planner's result is held against its own stages, and against its problem."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from looped_oracles import random_line
from machines import on_other_devices
from nested_models import ladder_problem, nested_problem, random_question
from training_models import four_layers

from mtpp.errors import InconsistentResult, InputError
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.machine.machine import Machine
from mtpp.solvers.last_look.graph_plans import look_at_graph_plan
from mtpp.solvers.last_look.line_plans import look_at_line_plan, look_at_nested_plan
from mtpp.solvers.last_look.replayed_schedule import replayed_iteration
from mtpp.solvers.last_look.split_plans import look_at_split_plan
from mtpp.solvers.limits import Limits, PlanLimits
from mtpp.solvers.planners import registry
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, PLANNERS, SPLIT_PLANNERS
from mtpp.solvers.planners.simulation.simulate import simulate_schedule
from mtpp.training.graph_plan import GraphPlan, NoGraphPlan
from mtpp.training.model import LinePlace
from mtpp.training.nested_plan import NestedPlan
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem, SplitRules
from mtpp.training.pfeife.timed_schedule import Handover, TimedSchedule, neighbour_handovers
from mtpp.training.plan import NoPlan, TimeBound, TrainingPlan
from mtpp.training.problem import PlanningProblem, Schemes


def line_plan() -> tuple[PlanningProblem, TrainingPlan]:
    """Return a plan of several stages by piper."""
    problem = PlanningProblem(
        four_layers(),
        machine=Machine.of_devices(3, memory_bytes=200, bandwidth_bytes_per_s=10**12),
        micro_batches=3,
        schemes=Schemes(data_parallel=False),
    )
    found = PLANNERS["piper"].load()(problem, PlanLimits())
    assert isinstance(found, TrainingPlan)
    assert len(found.stages) > 1
    return problem, found


def graph_plan() -> tuple[Any, GraphPlan]:
    """Return a plan by graphpipe."""
    problem = ladder_problem()
    found = GRAPH_PLANNERS["graphpipe"].load()(problem, Limits())
    assert isinstance(found, GraphPlan)
    return problem, found


def split_plan(seed: int = 5, **rules: Any) -> tuple[SplitProblem, SplitPlan]:
    """Return a plan by pfeife."""
    line = random_line(random.Random(seed), 8)
    problem = SplitProblem.build(
        line,
        machine=Machine.of_devices(2, bandwidth_bytes_per_s=1),
        micro_batches=3,
        rules=SplitRules(loops=(1, 2), **rules),
    )
    found = SPLIT_PLANNERS["pfeife"].load()(problem, Limits())
    assert isinstance(found, SplitPlan)
    return problem, found


def test_stages_of_piper_are_held_to_everything() -> None:
    """Layers twice, missing or out of order, too many devices, foreign degrees and configurations are errors."""
    problem, found = line_plan()
    found = replace(found, lower=TimeBound(Fraction(0), "work", Tier.EXACT))
    first, *others = found.stages
    for changed, said in (
        (replace(found, stages=list(reversed(found.stages))), "before"),
        (replace(found, stages=others), "layers, and the model 4"),
        (replace(found, stages=[first, first, *others]), "in stages 0 and 1"),
        (replace(found, stages=[replace(first, data_parallel=9), *others]), "not allowed"),
        (replace(found, stages=[replace(first, chosen=[-1] * len(first.layers)), *others]), "that it has not"),
    ):
        with pytest.raises(InconsistentResult, match=said):
            look_at_line_plan(problem, changed)
    for narrower, said in (
        (on_other_devices(problem, devices=found.devices_used - 1), f"uses {found.devices_used} devices"),
        (on_other_devices(problem, memory_bytes=1), "needs .* bytes, and has 1"),
        (replace(problem, micro_batches=found.degrees_sum + 1, exact_micro_batches=True), "sum up to"),
    ):
        with pytest.raises(InconsistentResult, match=said):
            look_at_line_plan(narrower, found)
    none = NoPlan(problem, "piper", True, problem.memory_bytes, StopReason.FINISHED, "too little")
    with pytest.raises(InconsistentResult, match="one was found that takes 200"):
        look_at_line_plan(problem, none)


def test_stages_of_nested_plans_are_held_to_their_levels() -> None:
    """A split that uses more devices of a level than there are is an error, as is any of its stages' faults."""
    looked = 0
    for seed in range(30):
        model, topology, rest = random_question(seed)
        try:
            problem = nested_problem(model, topology, rest)
        except InputError:
            continue
        planner = PLANNERS["piper"].load_nested()
        assert planner is not None
        found = planner(problem, PlanLimits())
        if not isinstance(found, NestedPlan) or len(topology.levels) == 1:
            continue
        looked += 1
        outermost = [replace(part, data_parallel=99) for part in found.pipeline]  # type: ignore[type-var]
        with pytest.raises(InconsistentResult):
            look_at_nested_plan(problem, replace(found, pipeline=outermost))
        tight = replace(problem, level_one=on_other_devices(problem.level_one, memory_bytes=1))
        if max(one.memory_bytes for one in found.figures) > 1:
            with pytest.raises(InconsistentResult, match="and has 1"):
                look_at_nested_plan(tight, found)
    assert looked > 3


def test_stages_of_graphs_are_simulated_once_more() -> None:
    """An iteration that is another, layers missing, devices, memory and sizes that no layer lists are errors."""
    problem, found = graph_plan()
    with pytest.raises(InconsistentResult, match=f"is {found.iteration + 1} ticks, and simulated it takes"):
        look_at_graph_plan(problem, replace(found, iteration=found.iteration + 1))
    with pytest.raises(InconsistentResult, match="layers, and the model"):
        look_at_graph_plan(problem, replace(found, stages=found.stages[1:]))
    with pytest.raises(InconsistentResult, match="bytes, and has 1"):
        look_at_graph_plan(on_other_devices(problem, memory_bytes=1), found)
    with pytest.raises(InconsistentResult, match="devices, and there are 1"):
        look_at_graph_plan(on_other_devices(problem, devices=1), found)
    foreign = replace(found.stages[0], configurations={**found.stages[0].configurations})
    layer, one = next(iter(foreign.configurations.items()))
    foreign.configurations[layer] = replace(one, id="none of its own")  # type: ignore[index]
    with pytest.raises(InconsistentResult, match="'none of its own'"):
        look_at_graph_plan(problem, replace(found, stages=[foreign, *found.stages[1:]]))
    bound = LowerBound(found.iteration, "work", Tier.EXACT)
    with pytest.raises(InconsistentResult, match="no plan is said to fit"):
        look_at_graph_plan(problem, NoGraphPlan(problem, found.stages, bound, StopReason.FINISHED))


def test_splits_are_replayed_once_more() -> None:
    """An iteration that is another, an order that is none, cuts elsewhere, memory and other ops are errors."""
    problem, found = split_plan()
    with pytest.raises(InconsistentResult, match=f"is {found.iteration + 1} ticks, and replayed it takes"):
        look_at_split_plan(problem, replace(found, iteration=found.iteration + 1))
    with pytest.raises(InconsistentResult, match="cuts 8 ops"):
        look_at_split_plan(problem, replace(found, split=[0, *found.split]))
    backwards = found.problem.reordered([LinePlace(p) for p in range(7, -1, -1)])
    with pytest.raises(InconsistentResult, match=r"along its order of ops, not behind 'v\d'"):
        look_at_split_plan(problem, replace(found, problem=backwards))
    with pytest.raises(InconsistentResult, match=r"device \d of the plan needs \d+ bytes, and has 1"):
        look_at_split_plan(on_other_devices(problem, memory_bytes=[1, 1]), found)
    with pytest.raises(InconsistentResult, match="not of 2 and 4"):
        look_at_split_plan(replace(problem, micro_batches=4), found)
    other = replace(problem, line=random_line(random.Random(1), 7))
    with pytest.raises(InconsistentResult, match="not those of the model"):
        look_at_split_plan(other, found)
    none = NoSplitPlan(
        on_other_devices(problem, memory_bytes=[10**6] * 2),
        found.schedule,
        found.looped,
        found.split,
        LowerBound(1, "shares", Tier.EXACT),
        StopReason.INFEASIBLE,
    )
    with pytest.raises(InconsistentResult, match="no plan is said to fit into 1000000 bytes"):
        look_at_split_plan(none.problem, none)


def test_numbers_and_texts_name_layers_apart() -> None:
    """A plan along another order of layers 1 and "1" has the ops of its model."""
    problem, _ = split_plan()
    names = [1, "1", *problem.line.names[2:]]
    line = replace(problem.line, names=names, costs=replace(problem.line.costs, tensors=[]))
    given = replace(problem, line=line)
    assert line.costs.forward[0] != line.costs.forward[1]
    other = given.reordered([LinePlace(p) for p in (1, 0, *range(2, 8))])
    found = SPLIT_PLANNERS["pfeife"].load()(other, Limits())
    look_at_split_plan(given, found)
    with pytest.raises(InconsistentResult, match="not those of the model"):
        look_at_split_plan(replace(given, line=replace(line, names=[1, 2, *names[2:]])), found)


@pytest.mark.parametrize("transport", ["neighbours", "direct"])
@pytest.mark.parametrize("name", [None, "zero-bubble", "interleaved"])
@pytest.mark.parametrize("seed", range(4))
def test_replays_are_what_simulations_are(seed: int, name: str | None, transport: str) -> None:
    """The replay in plain Python takes as long as the simulation, in wholes or halves, however tensors travel."""
    rules: dict[str, Any] = {"transport": transport}
    if name is not None:
        rules["schedule"] = (name, named_schedule(name, 2, 3, 2 if name == "interleaved" else 1))
    _, found = split_plan(seed, **rules)
    times = found.stage_ticks
    handovers = (
        [Handover(*one) for one in found.straight_handovers]
        if transport == "direct"
        else neighbour_handovers([ticks for *_, ticks in times[:-1]])
    )
    timed = TimedSchedule(
        "x",
        "ps",
        1,
        found.schedule,
        forward_ticks=[forward for forward, _, _ in times],
        backward_ticks=[backward for _, backward, _ in times],
        handovers=handovers,
    )
    ends = [(one.source, one.target, one.ticks) for one in handovers]
    replayed = replayed_iteration(found.schedule, [(f, g) for f, g, _ in times], ends)
    assert replayed == simulate_schedule(timed).iteration == found.iteration


def test_passes_that_wait_for_each_other_are_a_contradiction() -> None:
    """A plan whose passes never end is no plan."""
    problem, _ = split_plan()
    waiting = LoopedSchedule(2, 4, 2, 2, (4, 0)).schedule
    four = replace(problem, micro_batches=4)
    bound = LowerBound(0, "loads", Tier.EXACT)
    stuck = SplitPlan(four, waiting, None, None, [0, 2, 4, 6, 8], 100, bound, bound, [], StopReason.FINISHED)
    with pytest.raises(InconsistentResult, match="never ends"):
        look_at_split_plan(four, stuck)


@pytest.mark.parametrize("kind", ["line", "nested", "graph", "split"])
def test_planners_by_name_end_with_a_last_look(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Whatever a planner's module returns is looked at."""
    seen: list[Any] = []
    named: dict[str, Any] = {"graph": GRAPH_PLANNERS["graphpipe"], "split": SPLIT_PLANNERS["pfeife"]}
    entry = named.get(kind, PLANNERS["piper"])
    module = {"split": "split_plans", "graph": "graph_plans"}.get(kind, "line_plans")
    look = {"nested": "look_at_nested_plan"}.get(kind, f"look_at_{kind}_plan")
    monkeypatch.setattr(f"mtpp.solvers.last_look.{module}.{look}", lambda problem, found: seen.append(found))
    fake = SimpleNamespace(plan=lambda problem, limits: "result", plan_nested=lambda problem, limits: "result")
    monkeypatch.setattr(registry, "import_module", lambda name: fake)
    planner: Callable[[Any, Any], Any] = entry.load_nested() if kind == "nested" else entry.load()
    assert planner(None, None) == "result"
    assert seen == ["result"]
