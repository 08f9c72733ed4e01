"""Problems of planning: costs in exact ticks, the two conventions, and what may be chosen."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import on_machine
from refusals import refusal

from mtpp.training.model import Configuration, Edge, Layer, ModelPlaces, TrainingModel
from mtpp.training.plan import LayerStage, stage_figures
from mtpp.training.problem import PlanningProblem, Schemes
from mtpp.units import Exact

NUMBERS: dict[str, Any] = {"devices": 4, "memory_bytes": 100, "bandwidth_bytes_per_s": 10**12, "micro_batches": 6}

NONE_FOR_B = "m.json: /nodes/1/TMPCs: layer 'b' has no configuration that may be used;"


def _pair(time: Exact = 10, unit: str = "ps", sync: int = 3) -> TrainingModel:
    """Two layers in a row: the first on one device, the second on one or two, plain or recomputing."""

    def choice(name: str, time: Exact, a: int, b: int, **more: Any) -> Configuration:
        return Configuration(name, time, 9, a, b, recomputes=name == "recompute", **more)

    first = {1: [choice("plain", time, 4, 5), choice("recompute", time * 2, 1, 7)]}
    second = {
        1: [choice("plain", time * 3, 2, 1)],
        2: [choice("wide", time, 2, 0, forward_sync_bytes={"a": sync})],
    }
    layers = [Layer("a", "a", first), Layer("b", "b", second)]
    return TrainingModel("m", unit, layers, [Edge("a", "b", 11)])


def _problem(model: TrainingModel | None = None, **changes: Any) -> PlanningProblem:
    return PlanningProblem(model or _pair(), **on_machine(**NUMBERS | changes))


def _ticks(problem: PlanningProblem) -> list[Any]:
    return [
        (one.compute_ticks, one.weight_ticks, one.sync_in_ticks, one.sync_out_ticks)
        for by_layer in problem.choices
        for choices in by_layer
        for one in choices
    ]


def test_costs_in_ticks() -> None:
    """At a byte per picosecond: compute as it is, 4 w for gradients, 2 c for edges and synchronisation."""
    problem = _problem()
    assert problem.degrees == [1, 2]
    assert _ticks(problem) == [(10, 36, [], [0]), (20, 36, [], [0]), (30, 36, [0], []), (10, 36, [6], [])]
    assert problem.edge_ticks == [22]
    assert [len(choices) for by_layer in problem.choices for choices in by_layer] == [2, 1, 0, 1]
    assert (problem.edges_in, problem.edges_out) == ([[], [0]], [[0], []])


def test_each_cost_is_rounded_up_once() -> None:
    """Parts of a tick count as whole ones: of a time, of what gradients take, of an edge."""
    problem = _problem(_pair(Fraction(1, 3)), bandwidth_bytes_per_s=7 * 10**12)
    assert _ticks(problem) == [(1, 6, [], [0]), (1, 6, [], [0]), (1, 6, [0], []), (1, 6, [1], [])]
    assert problem.edge_ticks == [4]


@given(
    time=st.decimals(min_value=0, max_value=1000, places=15),
    unit=st.sampled_from([("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9), ("ps", 10**12)]),
)
def test_the_unit_of_time_changes_nothing(time: Any, unit: tuple[str, int]) -> None:
    """The same times written in another unit are the same ticks."""
    name, per_s = unit
    seconds = Fraction(time)
    assert _ticks(_problem(_pair(seconds * per_s, name))) == _ticks(_problem(_pair(seconds, "s")))


def test_the_two_conventions() -> None:
    """By hand: d = 3 replicas of work 60 and weights 100, N = 6."""
    paper, program = _problem(), _problem(convention="program")
    assert paper.stage_time(60, 100, 3) == 20 + Fraction(2 * 100, 9)
    assert program.stage_time(60, 100, 3) == 20 + Fraction(2 * 100, 18)
    assert paper.stage_time(60, 100, 1) == program.stage_time(60, 100, 1) == 60


def test_degrees_of_data_parallelism() -> None:
    """Any up to K and N by the paper, only divisors of N by the program, one where it is switched off."""
    assert _problem().data_degrees == [1, 2, 3, 4]
    assert _problem(convention="program").data_degrees == [1, 2, 3]
    assert _problem(micro_batches=3).data_degrees == [1, 2, 3]
    assert _problem(convention="program", micro_batches=7).data_degrees == [1]
    assert _problem(schemes=Schemes(data_parallel=False)).data_degrees == [1]


def test_schemes_leave_choices_out() -> None:
    """No degree above one without tensor parallelism, nothing that recomputes without recomputation."""
    narrow = _problem(schemes=Schemes(tensor_parallel=False))
    assert (narrow.degrees, len(narrow.choices)) == ([1], 1)
    plain = _problem(schemes=Schemes(recompute=False))
    assert [one.configuration.id for one in plain.choices[0][0]] == ["plain"]
    assert _problem(devices=1).degrees == [1]


@pytest.mark.parametrize(
    ("convention", "first", "second"),
    [
        ("paper", (Fraction(10 + 22, 2) + Fraction(36, 4), 3, 17), (10 + 22 + 6, 1, 2)),
        ("program", (Fraction(10 + 22, 2) + Fraction(36, 12), 3, 17), (10 + 22 + 6, 1, 2)),
    ],
)
def test_what_stages_take(convention: str, first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    """By hand: two replicas of the first layer before the second on two devices; s is 3 and then 1."""
    stages = [LayerStage([0], 2, 1, [0]), LayerStage([1], 1, 2, [0])]
    before, after = stage_figures(_problem(convention=convention), stages)
    # In flight: 3 / 2 replicas, rounded up: 2 · 4 + 5 bytes.
    assert (before.time, before.in_flight, before.memory_bytes) == (first[0], 2, 2 * 4 + 5)
    assert (after.time, after.in_flight, after.memory_bytes) == second
    assert (before.compute, before.edges) == (5, 11)
    assert (after.edges, after.gradients) == (28, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"devices": 0}, "devices: must be above zero, not 0"),
        ({"memory_bytes": 0}, "memory: must be above zero, not 0"),
        ({"bandwidth_bytes_per_s": 0}, "bandwidth: must be above zero, not 0"),
        ({"micro_batches": -1}, "max_micro_batches: must be above zero, not -1"),
        ({"convention": "both"}, "unknown convention 'both'; use paper or program"),
        ({"bandwidth_bytes_per_s": 1, "devices": 10**9}, "m.json: the costs are too large: all layers together"),
        ({"devices": 1}, f"{NONE_FOR_B} it needs one for t = 1, the number of devices, or less"),
        (
            {"schemes": Schemes(tensor_parallel=False)},
            f"{NONE_FOR_B} without tensor parallelism it needs one for t = 1",
        ),
        ({"schemes": Schemes(recompute=False)}, f"{NONE_FOR_B} without recomputation it needs one that keeps its"),
    ],
)
def test_what_is_no_problem(changes: dict[str, Any], message: str) -> None:
    """Options are named where they are at fault, and the model's file where that is."""
    layers = [
        Layer("a", "a", {1: [Configuration("plain", 1, 2, 3, 4)]}),
        Layer("b", "b", {2: [Configuration("r", 1, 10**9, 3, 4, recomputes=True)]}),
    ]
    places = ModelPlaces("m.json", "nodes", configurations="TMPCs")
    model = TrainingModel("m", "s", layers, [], places=places)
    assert str(refusal(_problem, model, **changes)).startswith(message)
