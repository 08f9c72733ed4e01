"""The native format of models to be trained: round trips, and what is refused where."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from piper_documents import pipeline
from refusals import refusal
from training_documents import configuration, document, edge, fork, layer

from mtpp.errors import InputError
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.models import read_training_model
from mtpp.formats.training.native import training_model_from_document, write_training_model
from mtpp.formats.training.piper import training_model_from_piper
from mtpp.machine.machine import Machine
from mtpp.training.model import Configuration, Edge, Layer, SampleCosts, TrainingModel
from mtpp.training.problem import PlanningProblem


def _read(content: Any) -> TrainingModel:
    return training_model_from_document(content, "m.json")


def _written_and_read(model: TrainingModel) -> TrainingModel:
    return _read(parse_json(write_training_model(model).encode(), "m.json"))


def _ticks(model: TrainingModel) -> Any:
    """Return everything that a planner sees of a model."""
    problem = PlanningProblem(
        model, machine=Machine.of_devices(8, memory_bytes=1, bandwidth_bytes_per_s=7 * 10**9), micro_batches=8
    )
    seen = [
        (one.compute_ticks, one.weight_ticks, one.memory_a, one.memory_b, one.sync_in_ticks, one.sync_out_ticks)
        for by_layer in problem.choices
        for choices in by_layer
        for one in choices
    ]
    recomputing = [choice.recomputes for _, _, _, choice in model.each_configuration()]
    return problem.degrees, problem.edge_ticks, model.ends, [one.name for one in model.layers], recomputing, seen


def test_everything_is_read() -> None:
    """Names are ids, times are exact decimals, and what is not there is nothing."""
    model = _read(fork())
    assert (model.name, model.time_unit, model.degrees) == ("m", "ms", [1, 2])
    assert model.edges == (Edge("a/b", "c", 64), Edge("a/b", "d~", 32))
    assert model.layers[0] == Layer("a/b", "a/b", {1: [Configuration("plain", Fraction(1, 1000), 1000, 30, 400)]})
    wide, again = model.layers[1].configurations[2]
    assert wide == Configuration("wide", Fraction(3, 8), 1000, 30, 400, {"a/b": 64}, {}, recomputes=False)
    assert again == Configuration("wide again", Fraction(1, 2), 1000, 30, 400, {"a/b": 0}, {}, recomputes=True)
    assert model.defaults == {"devices": 4, "micro_batches": 16}
    assert model.metadata == {"made by": ["hand", 1.5]}


def test_what_is_written_is_read_back() -> None:
    """Nothing is lost or added, and one layer and one edge stand on each line."""
    model = _read(fork())
    again = _written_and_read(model)
    assert (again.layers, again.edges, again.defaults, again.metadata) == (
        model.layers, model.edges, model.defaults, model.metadata,
    )  # fmt: skip
    text = write_training_model(model)
    assert write_training_model(again) == text
    assert '\n  {"source": "a/b", "target": "c", "bytes": 64},\n' in text
    assert len(text.splitlines()) == 17


def test_costs_by_micro_batch_size_are_read_back() -> None:
    """The size of the model's own times, and forward, backward and memory of each other size, in any unit."""
    costs = {1: SampleCosts(Fraction(1, 3) * 3, 2, 4), 4: SampleCosts(Fraction(5, 4), Fraction(7, 4), 9)}
    one = Configuration("plain", 3, 1, 4, 5, micro_batches=costs)
    model = TrainingModel("m", "ms", [Layer("a", "a", {1: [one]})], [], micro_batch_size=1)
    again = _written_and_read(model)
    assert again.micro_batch_size == 1
    assert again.layers[0].configurations[1][0].micro_batches == costs


def test_a_workload_of_piper_becomes_a_native_model() -> None:
    """All costs stay exactly as they are; layers are known by name."""
    model = training_model_from_piper(pipeline(), "p.json", name="p", time_unit="s")
    again = _written_and_read(model)
    assert _ticks(again) == _ticks(model)
    assert [one.id for one in again.layers] == ["layer 3", "layer 7"]
    assert (again.defaults, again.metadata) == (model.defaults, model.metadata)


@pytest.mark.parametrize(("name", "unit"), [("bert32a100", "s"), ("gnmt", "ms"), ("resnet", "ms")])
def test_published_workloads_become_native_models(name: str, unit: str, shared_data: Path, tmp_path: Path) -> None:
    """A file written from each of them is the same problem, and is recognised."""
    model, _ = read_training_model(str(shared_data / "piper" / f"{name}.json"), unit)
    path = tmp_path / "native.json"
    path.write_text(write_training_model(model))
    assert _ticks(read_training_model(str(path))[0]) == _ticks(model)


def test_models_made_by_programs_can_be_written() -> None:
    """Costs of synchronisation that such a model leaves out are written as the 0 that they are."""
    both = [Layer(i, f"n{i}", {2: [Configuration("x", 1, 2, 3, 4)]}) for i in range(2)]
    model = TrainingModel("m", "us", both, [Edge(0, 1, 5)])
    assert _ticks(_written_and_read(model)) == _ticks(model)
    third = TrainingModel("m", "us", [Layer(0, "n", {1: [Configuration("x", Fraction(1, 3), 2, 3, 4)]})], [])
    with pytest.raises(InputError, match=r"cannot be written as JSON: 1/3 is no finite decimal"):
        write_training_model(third)


def _one(**keys: Any) -> Any:
    return document([layer("a", configuration(**keys))], [])


def _without(key: str) -> Any:
    row = configuration()
    del row[key]
    return document([layer("a", row)], [])


PAIR = [layer("a"), layer("b")]
HERE = "/layers/0/configurations"
BROKEN = [
    (None, "/: must be an object, not null"),
    (document(PAIR, [], version=2), "/version: mtpp-training-model version 2 is not supported; this program reads ver"),
    (document(PAIR, [], format="x"), "/format: the format is 'x'; it must be \"mtpp-training-model\""),
    (document(PAIR, [], layer=[]), "/: unknown key 'layer'; did you mean 'layers'?"),
    (document(PAIR, [], name=1), "/name: must be a string, not a number"),
    (document(PAIR, [], time_unit="1"), "/time_unit: unknown unit of time '1'; use one of ps, ns, us, ms, s"),
    (document(PAIR, [], time_unit=None), "/time_unit: must be a string, not null"),
    (document(PAIR, [], metadata=1), "/metadata: must be an object, not a number"),
    (document(PAIR, [], defaults={"memory": 1}), "/defaults: unknown key 'memory'; did you mean 'memory_bytes'?"),
    (document(PAIR, [], defaults={"memory_bytes": 0}), "/defaults/memory_bytes: must be at least 1"),
    (document(PAIR, [], defaults={"bandwidth_bytes_per_s": 0}), "/defaults/bandwidth_bytes_per_s: must be at least 1"),
    (document([], []), "/layers: the model has no layers; give at least one"),
    (document({}, []), "/layers: must be an array, not an object"),
    (document([1], []), "/layers/0: must be an object, not a number"),
    (document([{"name": "a"}], []), "/layers/0: missing key 'configurations'; add it"),
    (document([{"name": "a", "configurations": {}}], []), f"{HERE}: layer 'a' has no configuration; give one for"),
    (document([{"name": "a", "configurations": []}], []), f"{HERE}: must be an object, not an array"),
    (document([layer("")], []), "/layers/0/name: empty name; give it one"),
    (document([layer("a"), layer("a")], []), "/layers/1: duplicate id 'a', first used at /layers/0"),
    *[
        (document([layer("a", **{f"t{key}": []})], []), f"{HERE}/{key}: {'a degree' if key in ('0', '-1') else ''}")
        for key in ("0", "-1", "two", "1.5", "01")
    ],
    (document([layer("a", t2={})], []), f"{HERE}/2: must be an array, not an object"),
    (document([layer("a", 7)], []), f"{HERE}/1/0: must be an object, not a number"),
    (_without("memory_bytes"), f"{HERE}/1/0: missing key 'memory_bytes'; add it"),
    (_without("time"), f"{HERE}/1/0: missing key 'time'; add it"),
    (_one(parameters=1), f"{HERE}/1/0: unknown key 'parameters'; did you mean 'parameter_bytes'?"),
    (_one(id=""), f"{HERE}/1/0/id: empty name"),
    (document([layer("a", configuration(), configuration())], []), f"{HERE}/1/1/id: layer 'a' has several"),
    (_one(time=-1), f"{HERE}/1/0/time: a cost cannot be negative"),
    (_one(time="1"), f"{HERE}/1/0/time: must be a number, not a string; write it without quotes"),
    (_one(time=1e300), f"{HERE}/1/0/time: a time must be at least 0 and below 2^62 ps (53 days); check the time and"),
    (_one(parameter_bytes=0.5), f"{HERE}/1/0/parameter_bytes: must be a whole number; round it"),
    (_one(memory_bytes=-1), f"{HERE}/1/0/memory_bytes: a size must be at least 0 and below 2^62 bytes"),
    (_one(memory_bytes=2**62), f"{HERE}/1/0/memory_bytes: a size must be at least 0 and below 2^62 bytes"),
    (_one(recompute=1), f"{HERE}/1/0/recompute: must be true or false, not a number"),
    (_one(sync_in=[]), f"{HERE}/1/0/sync_in: must be an object, not an array"),
    (_one(sync_in={"a/~": 1}), f"{HERE}/1/0/sync_in/a~1~0: a cost of synchronisation for an edge that does not exist"),
    (_one(sync_out={"b": True}), f"{HERE}/1/0/sync_out/b: must be a number, not true"),
    (
        document([layer("a", t2=[configuration()]), layer("b")], [edge("a", "b")]),
        f"{HERE}/2/0/sync_out: no cost of synchronisation over 2 devices for the edge to 'b'; add it, in bytes",
    ),
    (document(PAIR, {}), "/edges: must be an array, not an object"),
    (document(PAIR, [{"source": "a", "target": "b"}]), "/edges/0: missing key 'bytes'; add it"),
    (document(PAIR, [edge("a", "c")]), "/edges/0: there is no layer 'c'"),
    (document(PAIR, [edge("a", "a")]), "/edges/0: the edge leads from layer 'a' to itself"),
    (
        document(PAIR, [edge("a", "b"), edge("a", "b")]),
        "/edges/1: duplicate edge from layer 'a' to layer 'b', first at",
    ),
    (document(PAIR, [edge("a", "b", -1)]), "/edges/0/bytes: a size must be at least 0"),
    (
        document(PAIR, [edge("a", "b"), edge("b", "a")]),
        "/edges/0: the layers make a cycle: a -> b -> a; remove an edge",
    ),
]


@pytest.mark.parametrize(("content", "message"), BROKEN, ids=[message[:50] for _, message in BROKEN])
def test_broken_models(content: Any, message: str) -> None:
    """Every wrong type, unknown key, impossible cost and edge is named with its place."""
    assert str(refusal(_read, content)).startswith(f"m.json: {message}")


def test_the_example_in_the_documentation(checkout: Path) -> None:
    """It is such a file."""
    text = (checkout / "docs" / "formats.md").read_text()
    example = text.split("### `mtpp-training-model`, version 1")[1].split("```json\n")[1].split("```")[0]
    model = _read(parse_json(example.encode(), "m.json"))
    assert [one.recomputes for _, _, _, one in model.each_configuration()] == [False, False, True, False]
    assert model.degrees == [1, 2]
