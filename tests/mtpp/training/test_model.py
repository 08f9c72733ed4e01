"""Models to be trained: order, neighbours, and everything that is checked when one is made."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.training.model import Configuration, Edge, Layer, LayerId, ModelPlaces, TrainingModel

PIPER = ModelPlaces("p.json", "nodes", "edges", "TMPCs", "timePerSample", "syncTimeFw", "syncTimeBw")


def _choice(name: str = "x", time: Any = 1, *sizes: int, **more: Any) -> Configuration:
    return Configuration(name, time, *(sizes or (2, 3, 4)), **more)


def _layer(identity: LayerId, *choices: Configuration, degree: int = 1) -> Layer:
    return Layer(identity, f"n{identity}", {degree: choices or (_choice(),)})


def _model(layers: list[Layer], *pairs: tuple[LayerId, LayerId], **options: Any) -> TrainingModel:
    return TrainingModel("m", "ms", layers, [Edge(source, target, 5) for source, target in pairs], **options)


def test_order_and_neighbours() -> None:
    """The order follows the edges and else the file; neighbours are in the order of the edges."""
    model = _model([_layer(i) for i in "dbca"], ("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"))
    assert [model.layers[i].id for i in model.order] == ["a", "b", "c", "d"]
    assert model.ends == [(3, 1), (1, 0), (3, 2), (2, 0)]
    assert model.neighbours["a"] == ([], ["b", "c"])
    assert model.neighbours["d"] == (["b", "c"], [])


def test_degrees_and_configurations() -> None:
    """Degrees that nothing can run on do not count; configurations come layer by layer."""
    by_degree: Mapping[int, list[Configuration]] = {4: [_choice("a"), _choice("b")], 2: []}
    model = _model([Layer(0, "n", by_degree), _layer(1)])
    assert model.degrees == [1, 4]
    assert [(i, t, c, one.id) for i, t, c, one in model.each_configuration()] == [
        (0, 4, 0, "a"), (0, 4, 1, "b"), (1, 1, 0, "x"),
    ]  # fmt: skip


def test_defaults_and_metadata_are_copies() -> None:
    """What a caller does with its own later changes no model."""
    defaults: dict[str, Any] = {"devices": 4}
    model = TrainingModel("m", "s", [_layer(1)], [], defaults, metadata=defaults)
    defaults["devices"] = 5
    assert (model.defaults, model.metadata) == ({"devices": 4}, {"devices": 4})


@pytest.mark.parametrize(("said", "read"), [(["a", 1, "b"], ["a", "b"]), ("a", []), (None, []), ({"a": 1}, [])])
def test_assumptions_may_be_anything_in_a_file(said: Any, read: list[str]) -> None:
    """Only a list of texts is taken for what a reader assumed."""
    assert _model([_layer(1)], metadata={"assumptions": said}).assumptions == read


STRANGER = {"forward_sync_bytes": {1: 5}}
FAULTS: list[tuple[list[Layer], list[tuple[LayerId, LayerId]], str, str]] = [
    ([], [], "/layers", "the model has no layers"),
    ([_layer(0), _layer(0)], [], "/layers/1", "duplicate id 0, first used at /layers/0"),
    ([Layer(0, "n", {1: [_choice()]}), Layer(1, "n", {1: [_choice()]})], [], "/layers/1", "duplicate name 'n'"),
    ([_layer(0), Layer(1, "n", {})], [], "/layers/1/configurations", "layer 'n' has no configuration"),
    ([Layer(1, "n", {1: [], 8: []})], [], "/layers/0/configurations", "layer 'n' has no configuration"),
    ([_layer(0, degree=0)], [], "/layers/0/configurations/0", "a degree of tensor parallelism must be at least 1"),
    ([_layer(0, _choice("a"), _choice("a"))], [], "/layers/0/configurations/1/1/id", "several configurations 'a'"),
    ([_layer(0), _layer(1)], [(0, 1), (0, 2)], "/edges/1", "there is no layer 2"),
    ([_layer(0)], [(0, 0)], "/edges/0", "the edge leads from layer 0 to itself"),
    ([_layer(0), _layer(1)], [(0, 1), (0, 1)], "/edges/1", "duplicate edge from layer 0 to layer 1, first at /edges/0"),
    ([_layer(0), _layer(1)], [(1, 0), (0, 1)], "/edges/1", "the layers make a cycle: n0 -> n1 -> n0"),
    (
        [_layer(i) for i in range(4)],
        [(0, 1), (2, 1), (1, 2), (2, 3)],
        "/edges/2",
        "the layers make a cycle: n1 -> n2 -> n1",
    ),
    ([_layer(1), _layer(2, _choice(**STRANGER))], [], "/layers/1/configurations/1/0/sync_in/1", "1 is no predecessor"),
    (
        [_layer(1), _layer(2, _choice(backward_sync_bytes={1: 0}))],
        [(1, 2)],
        "/layers/1/configurations/1/0/sync_out/1",
        "1 is no successor",
    ),
    ([_layer(0, _choice("x", -1))], [], "/layers/0/configurations/1/0/time", "a time must be at least 0"),
    ([_layer(0, _choice("x", 2**62 // 10**9 + 1))], [], "/layers/0/configurations/1/0/time", "below 2^62 ps"),
    ([_layer(0, _choice("x", 1, 0, -1, 0))], [], "/layers/0/configurations/1/0", "a size must be at least 0"),
    ([_layer(0, _choice("x", 1, 0, 0, 2**62))], [], "/layers/0/configurations/1/0", "below 2^62 bytes"),
]


@pytest.mark.parametrize(("layers", "pairs", "where", "problem"), FAULTS, ids=[fault[3][:40] for fault in FAULTS])
def test_what_makes_no_model(
    layers: list[Layer], pairs: list[tuple[LayerId, LayerId]], where: str, problem: str
) -> None:
    """Each fault is named with its place."""
    with pytest.raises(InputError) as caught:
        _model(layers, *pairs)
    assert caught.value.where == where
    assert problem in caught.value.problem


def test_the_largest_costs() -> None:
    """What is just below the limits is taken."""
    choice = _choice("x", Fraction(2**62 - 1, 10**9), 2**62 - 1, 0, 0)
    assert _model([_layer(0, choice)]).layers[0].configurations[1] == (choice,)
    with pytest.raises(InputError, match="/edges/0: a size must be at least 0 and below 2"):
        TrainingModel("m", "s", [_layer(0), _layer(1)], [Edge(0, 1, 2**62)])


@pytest.mark.parametrize("unit", ["1", "µs", "h", ""])
def test_units_of_time(unit: str) -> None:
    """Only one spelling of each."""
    with pytest.raises(InputError, match=r"^/time_unit: unknown unit of time .* use one of ps, ns, us, ms, s$"):
        TrainingModel("m", unit, [_layer(0)], [])


def test_places_are_those_of_the_file() -> None:
    """A model that was read from a file of another shape leads back to it, and its parts of pointers are escaped."""
    layers = [_layer("a/b"), _layer("c", _choice(forward_sync_bytes={"~": 1}))]
    with pytest.raises(InputError) as caught:
        _model(layers, places=PIPER)
    assert str(caught.value).startswith(
        "p.json: /nodes/1/TMPCs/1/0/syncTimeFw/~0: a cost of synchronisation for an edge"
    )
    assert PIPER.configuration(3, 8, 0, "syncTimeBw", "a/b") == "/nodes/3/TMPCs/8/0/syncTimeBw/a~1b"
    assert (PIPER.layer(3), PIPER.edge(7)) == ("/nodes/3", "/edges/7")
