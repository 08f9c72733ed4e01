"""What plans for devices within devices take, worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from mtpp.errors import InconsistentBound, InputError
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.training.model import Configuration, Edge, Layer, TrainingModel
from mtpp.training.nested_plan import NestedPlan, Superstage, all_superstages
from mtpp.training.nested_problem import NestedProblem, layer_parameter_bytes
from mtpp.training.plan import LayerStage, TimeBound

TICKS = 10**12


def model() -> TrainingModel:
    """Return three layers in a row; the last can be spread over two devices, with some of its parameters on both."""
    split = Configuration("split", 9, 5, 1, 2, forward_sync_bytes={"b": 2})
    layers = [
        Layer("a", "a", {1: [Configuration("plain", 10, 6, 3, 20)]}),
        Layer("b", "b", {1: [Configuration("plain", 12, 4, 5, 10)]}),
        Layer("c", "c", {1: [Configuration("plain", 14, 8, 2, 5)], 2: [split]}),
    ]
    return TrainingModel("three", "ps", layers, [Edge("a", "b", 3), Edge("b", "c", 7)])


def problem(*levels: Level, **rest: Any) -> NestedProblem:
    """Return what to plan; two levels by default, a byte taking 1/2 tick inside and 2 ticks between machines."""
    chosen = levels or (Level(3, Link(2 * TICKS)), Level(3, Link(TICKS // 2)))
    return NestedProblem.build(
        model(), Machine.of_levels(chosen, rest.pop("memory_bytes", 200)), **{"micro_batches": 20, **rest}
    )


def plan(asked: NestedProblem, *pipeline: Superstage) -> NestedPlan:
    """Return a plan with the bound that says nothing."""
    return NestedPlan(asked, "by hand", pipeline, TimeBound(Fraction(0), "work", "exact"), "finished")


def test_parameters_of_a_layer_go_once() -> None:
    """Outer levels take the fewest bytes that any configuration holds in all."""
    assert [layer_parameter_bytes(layer) for layer in model().layers] == [6, 4, 8]
    asked = problem()
    assert asked.outer[0].weight_ticks == [4 * 2 * 6, 4 * 2 * 4, 4 * 2 * 8]
    assert asked.outer[0].edge_ticks == [2 * 2 * 3, 2 * 2 * 7]
    assert asked.level_one.edge_ticks == [3, 7]


def test_two_levels_by_hand() -> None:
    """Two machines share a and b, each with two devices on a and one on b; a third runs c on two devices."""
    first = Superstage(2, (LayerStage((0,), 2, 1, (0,)), LayerStage((1,), 1, 1, (0,))))
    found = plan(problem(), first, Superstage(1, (LayerStage((2,), 1, 2, (0,)),)))
    assert found.degrees_sum == 2 * (2 + 1) + 1
    assert found.replicas == [4, 2, 1]
    assert found.devices_used == 4 + 2 + 2
    a, b, c = found.figures
    # a: (10 + 3) / 2 + 1/4 · 12, halved by the second machine; ⌈⌈7 / 2⌉ / 2⌉ in flight.
    assert (a.compute, a.edges, a.gradients) == (Fraction(10, 4), Fraction(3, 4), Fraction(3, 2))
    assert (a.in_flight, a.memory_bytes) == (2, 3 * 2 + 20)
    # b: (12 + 3 + 7) / 2; four in flight in the machine, less the two of a.
    assert (b.compute, b.edges, b.gradients) == (6, 5, 0)
    assert (b.in_flight, b.memory_bytes) == (2, 5 * 2 + 10)
    # c: both edges into it cost what they cost inside, and 2 bytes that both devices have to be given.
    assert (c.time, c.edges, c.in_flight, c.memory_bytes) == (9 + 7 + 2, 9, 1, 3)
    left, right = found.superstages
    assert (left.level, left.first, left.last, left.replicas) == (2, 0, 1, 2)
    # Between machines: the edge b → c takes 28 / 2, the parameters of a and b 1/4 · 80.
    assert (left.edges, left.gradients, left.time) == (14, 20, 34)
    assert (right.edges, right.gradients) == (28, 0)
    assert found.time_per_sample == 34
    assert list(all_superstages(found.superstages)) == [left, right]


def test_three_levels_divide_by_all_degrees_around() -> None:
    """A superstage's links are divided by the degrees around it too, and so are micro-batches in flight."""
    asked = problem(Level(2, Link(2 * TICKS)), Level(2, Link(TICKS // 2)), Level(2, Link(TICKS // 4)))
    inner = Superstage(2, (LayerStage((0, 1, 2), 2, 1, (0, 0, 0)),))
    found = plan(asked, Superstage(2, (inner,)))
    assert found.replicas == [8]
    assert found.figures[0].compute == Fraction(36, 8)
    assert found.figures[0].gradients == Fraction(1, 4) * 2 * (6 + 4 + 8) / 4
    assert found.figures[0].in_flight == 1
    outermost = found.superstages[0]
    assert (outermost.level, outermost.gradients) == (3, Fraction(1, 4) * 16 * 18)
    assert (outermost.inside[0].level, outermost.inside[0].replicas) == (2, 4)
    assert outermost.inside[0].gradients == Fraction(1, 4) * 8 * 18 / 2
    assert found.time_per_sample == outermost.time


def test_impossible_questions_and_bounds_are_refused() -> None:
    """The program's convention with several levels, tensor parallelism beyond level 1, and bounds above the plan."""
    with pytest.raises(InputError, match="no rule for several levels"):
        problem(convention="program")
    assert problem(Level(4, Link(TICKS)), convention="program").level_one.convention == "program"
    only_split = Layer("c", "c", {4: [Configuration("split", 9, 5, 1, 2)]})
    with pytest.raises(InputError, match="t = 2, the number of devices"):
        NestedProblem.build(
            TrainingModel("one", "ps", [only_split], []),
            Machine.of_levels((Level(2, Link(TICKS)), Level(4, Link(TICKS))), 9),
            micro_batches=4,
        )
    whole = (Superstage(1, (LayerStage((0, 1, 2), 1, 1, (0, 0, 0)),)),)
    with pytest.raises(InconsistentBound):
        NestedPlan(problem(), "by hand", whole, TimeBound(Fraction(37), "work", "exact"), "finished")
