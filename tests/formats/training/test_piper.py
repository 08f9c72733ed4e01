"""Models to be trained from Piper's workloads: what is read, both readings of synchronisation, and places of errors."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from machines import on_machine
from piper_documents import configuration, document, edge, layer, pipeline
from processes import run

from mtpp.errors import InputError
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.training.piper import training_model_from_piper
from mtpp.training.model import TrainingModel
from mtpp.training.problem import PlanningProblem, Schemes

ASSUMED = "syncTimeFw is by successor and syncTimeBw by predecessor, as Piper's description has it (its files do not)"


def _model(content: Any, time_unit: str | None = "s") -> TrainingModel:
    return training_model_from_piper(content, "p.json", name="p", time_unit=time_unit)


def _refusal(content: Any, time_unit: str | None = "s") -> str:
    with pytest.raises(InputError) as caught:
        _model(content, time_unit)
    return str(caught.value)


def _costs(model: TrainingModel) -> list[Any]:
    return [model.layers, model.edges, model.defaults]


def test_everything_is_read() -> None:
    """Layers keep their ids and order, configurations their degree, and the machine is kept apart."""
    model = _model(pipeline(), "ms")
    assert (model.name, model.time_unit, model.degrees, model.order) == ("p", "ms", [1, 2], [1, 0])
    assert [(one.id, one.name) for one in model.layers] == [(3, "layer 3"), (7, "layer 7")]
    plain, recomputing = model.layers[1].configurations[2]
    assert (plain.time_per_sample, recomputing.time_per_sample) == (Fraction(7, 32), Fraction(21, 64))
    assert (plain.recomputes, recomputing.recomputes) == (False, True)
    assert (plain.parameter_bytes, plain.memory_a, plain.memory_b) == (5 * 10**8, 3, 4)
    assert (plain.forward_sync_bytes, plain.backward_sync_bytes) == ({}, {3: 64})
    assert model.layers[0].configurations[2][0].forward_sync_bytes == {7: 32}
    assert model.defaults == {
        "devices": 10, "memory_bytes": 80 * 10**9, "bandwidth_bytes_per_s": 25 * 10**9, "micro_batches": 12,
    }  # fmt: skip
    assert model.metadata == {"source_format": "piper"}


def test_the_unit_of_time_has_to_be_given() -> None:
    """It is never guessed for a plan; what the file looks like is a hint, where it looks like anything."""
    assert _refusal(pipeline(), None) == (
        "p.json: /nodes: the file does not say what unit its times are in; "
        "give it: time_unit s, ms, us or ns (they look like s)"
    )
    for node in (layer(1, configuration(time=0)), layer(1, configuration(), degree="2")):
        assert _refusal(document([node], []), None).endswith("give it: time_unit s, ms, us or ns")
    assert _refusal(pipeline(), "1").startswith("p.json: /time_unit: unknown unit of time '1'; use one of ps, ns")


def test_synchronisation_as_it_is_described() -> None:
    """A file written after the description of the format means the same, and it is said."""
    described = _model(pipeline("syncTimeBw", "syncTimeFw"))
    assert _costs(described) == _costs(_model(pipeline()))
    assert described.metadata["assumptions"] == described.assumptions == [ASSUMED]
    assert _model(pipeline()).assumptions == []


def test_what_was_assumed_is_a_warning(tmp_path: Path) -> None:
    """On standard error, with the file's name."""
    path = tmp_path / "described.json"
    path.write_text(dump_json(pipeline("syncTimeBw", "syncTimeFw")))
    asked = (
        "--devices",
        "2",
        "--memory",
        "1GB",
        "--bandwidth",
        "1GB/s",
        "--max-micro-batches",
        "4",
        "--time-unit",
        "s",
    )
    done = run("plan", path, *asked, "--planner", "equi")
    assert done.returncode == 0
    assert f"warning: {path}: {ASSUMED}\n" in done.stderr


def test_synchronisation_that_fits_neither_way() -> None:
    """A key that is no neighbour is an error, as is a file that is half one way and half the other."""
    stranger = configuration(syncTimeFw={"1": 8})
    nodes = [layer(1), layer(2, stranger), layer(3, stranger)]
    assert _refusal(document(nodes, [edge(1, 2)])) == (
        "p.json: /nodes/2/TMPCs/1/0/syncTimeFw/1: a cost of synchronisation for an edge that does not exist: "
        "1 is no predecessor; remove it, or add the edge"
    )
    halves = [layer(1, configuration(syncTimeFw={"2": 8})), layer(2, stranger)]
    message = _refusal(document(halves, [edge(1, 2)]))
    assert message.startswith("p.json: /nodes/0/TMPCs/1/0/syncTimeFw/2: a cost of synchronisation for an edge that")


def test_synchronisation_that_is_missing() -> None:
    """Over several devices every edge needs its cost; on one device there is nothing to hand on."""
    content = pipeline()
    del content["nodes"][1]["TMPCs"]["2"][1]["syncTimeBw"]["3"]
    assert _refusal(content) == (
        "p.json: /nodes/1/TMPCs/2/1/syncTimeBw: no cost of synchronisation over 2 devices for the edge to 3; "
        'add it, in bytes: "3": …; 0 if there is none'
    )
    content = pipeline("syncTimeBw", "syncTimeFw")  # as described: the place is where it would have to be
    del content["nodes"][0]["TMPCs"]["2"][0]["syncTimeBw"]["7"]
    assert _refusal(content).startswith("p.json: /nodes/0/TMPCs/2/0/syncTimeBw: no cost of synchronisation")


BROKEN = [
    ([{"id": 1}], [], "/nodes/0: missing key 'TMPCs'"),
    ([layer(1), {"id": 2, "TMPCs": {}}], [], "/nodes/1/TMPCs: layer 'node 2' has no configuration"),
    ([{"id": 2, "TMPCs": {"1": [], "2": []}}], [], "/nodes/0/TMPCs: layer 'node 2' has no configuration"),
    ([{"id": 2, "TMPCs": {"1": {}}}], [], "/nodes/0/TMPCs/1: must be an array, not an object"),
    *[
        ([layer(1, degree=key)], [], f"/nodes/0/TMPCs/{key}: {'a degree' if key in ('0', '-1') else repr(key)} ")
        for key in ("0", "-1", "two", "1.5", "01", "", " 1", "+1", "1e0", "٣", "1" * 19)
    ],
    ([layer(1, configuration(""))], [], "/nodes/0/TMPCs/1/0/id: a configuration without a name; give it one"),
    (
        [layer(1, configuration("a"), configuration("b"), configuration("a"))],
        [],
        "/nodes/0/TMPCs/1/2/id: layer 'layer' has several configurations 'a' for t = 1; give each its own id",
    ),
    (
        [layer(i, name=f"n{i}") for i in range(4)],
        [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 1)],
        "/edges/1: the layers make a cycle: n1 -> n2 -> n3 -> n1; remove an edge",
    ),
    (
        [layer(1), layer(2)],
        [edge(1, 2), edge(1, 2)],
        "/edges/1: duplicate edge from node 1 to node 2, first at /edges/0",
    ),
    ([layer(1)], [edge(1, 1)], "/edges/0: the edge leads from node 1 to itself"),
    ([layer(1)], [edge(1, 2)], "/edges/0/destId: no node has the id 2"),
    ([layer(1, configuration(time=5e6))], [], "/nodes/0/TMPCs/1/0/timePerSample: a time must be at least 0 and below"),
    ([layer(1, configuration(memoryUsageA=-1))], [], "/nodes/0/TMPCs/1/0/memoryUsageA: a size must be"),
    ([layer(1, configuration(memoryUsageB=5e18))], [], "/nodes/0/TMPCs/1/0/memoryUsageB: a size must be"),
    ([layer(1, configuration(syncTimeFw=[]))], [], "/nodes/0/TMPCs/1/0/syncTimeFw: must be an object"),
    ([layer(1, configuration(syncTimeFw={"x/~": 1}))], [], "/nodes/0/TMPCs/1/0/syncTimeFw/x~1~0: 'x/~' is not"),
]


@pytest.mark.parametrize(("nodes", "edges", "message"), BROKEN, ids=[message[:60] for _, _, message in BROKEN])
def test_broken_workloads(nodes: list[Any], edges: list[Any], message: str) -> None:
    """One line that leads to the place in the file as it is."""
    assert _refusal(document(nodes, edges)).startswith(f"p.json: {message}")


def test_problems_lead_to_the_file() -> None:
    """What only shows once devices and schemes are known has a place in the file too."""
    model = _model(document([layer(1), layer(2, degree="4")], []))
    numbers: dict[str, Any] = {"memory_bytes": 100, "bandwidth_bytes_per_s": 10**9, "micro_batches": 4}
    with pytest.raises(InputError) as caught:
        PlanningProblem(model, **on_machine(devices=2, **numbers))
    assert str(caught.value) == (
        "p.json: /nodes/1/TMPCs: layer 'layer #2' has no configuration that may be used; "
        "it needs one for t = 2, the number of devices, or less"
    )
    with pytest.raises(InputError, match=r"p\.json: /nodes/1/TMPCs: .* without tensor parallelism it needs one"):
        PlanningProblem(model, schemes=Schemes(tensor_parallel=False), **on_machine(devices=8, **numbers))


@pytest.mark.parametrize(
    ("name", "degrees", "batch"), [("bert32a100", [1, 2, 4, 8], 1920), ("gnmt", [1], 256), ("resnet", [1], 7680)]
)
def test_published_workloads(name: str, degrees: list[int], batch: int, shared_data: Path) -> None:
    """They are read whole, as the files have it: every layer plain and recomputing for every degree."""
    path = shared_data / "piper" / f"{name}.json"
    content = parse_json(path.read_bytes(), name)
    model = training_model_from_piper(content, name, name=name, time_unit="s")
    assert (model.degrees, model.defaults["micro_batches"]) == (degrees, batch)
    assert "assumptions" not in model.metadata
    assert [(one.source, one.target) for one in model.edges] == [
        (one["sourceId"], one["destId"]) for one in content["edges"]
    ]
    for one, node in zip(model.layers, content["nodes"], strict=True):
        assert sorted(one.configurations) == degrees
        for t, choices in one.configurations.items():
            rows = node["TMPCs"][str(t)]
            assert [choice.recomputes for choice in choices] == [row["id"] == "activation recomp" for row in rows]
            assert [choice.time_per_sample for choice in choices] == [row["timePerSample"] for row in rows]
