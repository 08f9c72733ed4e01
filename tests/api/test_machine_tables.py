"""Tables of certificates and bounds on devices that differ: verified row by row, and refuted where they are forged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import mtpp
from mtpp.errors import InputError
from mtpp.formats.graphs.native import write_native
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.units import format_picoseconds

MACHINE = """
[[device]]
name = "slow"
memory = "40MiB"
bandwidth = "10GB/s"
latency = "3us"
[[device]]
name = "fast"
count = 2
speed = "5/2"
memory = "60MiB"
bandwidth = "5GB/s"
"""


def _machine(folder: Path, order: str, text: str = MACHINE) -> Path:
    path = folder / f"{order}.toml"
    path.write_text(f'order = "{order}"\n{text}')
    return path


@pytest.fixture(scope="module", params=["fixed", "free"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any]]:
    """Return a model on three devices, and its certificates for two and three of them."""
    folder = tmp_path_factory.mktemp(request.param)
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=_machine(folder, request.param))
    found = mtpp.certify(model, k=[2, 3], bounds=["simple", "node", "downset"], jobs=1)
    return model, found.document()


def _verdict(document: dict[str, Any], model: Any) -> str:
    """Return the verdict on a table; a malformed one is false, too."""
    try:
        return str(mtpp.verify(document, model).verdict)
    except InputError:
        return "malformed"


def test_certificates_on_a_machine_are_verified(table: tuple[Any, dict[str, Any]]) -> None:
    """Costs on each device, the envelope, the room for work and the exhaustive search are derived again."""
    model, document = table
    assert [row["k"] for row in document["rows"]] == [2, 3]
    assert all(row["lower_proof"]["order"] == row["machine"]["order"] for row in document["rows"])
    report = mtpp.verify(document, model)
    assert report.verdict == "ok"
    names = {claim.claim.rpartition(": ")[2] for claim in report.rows}
    assert {"machine", "envelope", "devices", "bottleneck", "lower bound", "bounds tried"} <= names
    assert _verdict(document, mtpp.datasets.sample_path("resnet50")) == "ok"


@pytest.mark.parametrize(("order", "name"), [("fixed", "position-weights"), ("free", "convex-weights")])
def test_bounds_by_weights_are_of_the_devices(tmp_path: Path, order: str, name: str) -> None:
    """They are above the envelope's, are verified, and no longer hold where a device is twice as fast."""
    devices = "".join(f'[[device]]\nname = "d{i}"\nspeed = {speed}\n' for i, speed in enumerate((1, 4, 1, 2)))
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=_machine(tmp_path, order, devices))
    document = mtpp.bound(model, bounds=[name], time_limit_s=30).document()
    (row,) = document["rows"]
    assert row["lower_method"] == name
    assert row["lower_proof"]["order"] == order
    assert row["lower"] == row["bounds"][name] > row["bounds"]["simple"]
    assert _verdict(document, model) == "ok"
    for device in row["machine"]["devices"]:
        device["speed"] = str(2 * int(device["speed"]))
    _sealed(row)
    assert _verdict(document, mtpp.datasets.sample_path("resnet50")) == "false"


def _sealed(row: dict[str, Any]) -> None:
    """Give the machine of a row the digest of its figures."""
    machine = row["machine"]
    figures = {key: machine[key] for key in ("name", "order", "transport", "devices")}
    text = json.dumps(figures, sort_keys=True, separators=(",", ":"))
    machine["sha256"] = hashlib.sha256(text.encode()).hexdigest()


def _set(*path: Any, to: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        at: Any = row
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to(at[path[-1]])
        if path[0] == "machine" and path[-1] != "sha256":
            _sealed(row)

    return change


def _moved(row: dict[str, Any]) -> None:
    first = min(row["assignment"].values())
    name = next(name for name, stage in row["assignment"].items() if stage == first)
    row["assignment"][name] = max(row["assignment"].values())


FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "upper": _set("upper", to=lambda value: value - 1),
    "lower": _set("lower", to=lambda value: value + 1),
    "lower_below": _set("lower", to=lambda value: value - 1),
    "k": _set("k", to=lambda value: value - 1),
    "devices": _set("devices", to=lambda value: value[::-1]),
    "devices_twice": _set("devices", to=lambda value: [value[0]] * len(value)),
    "devices_unknown": _set("devices", to=lambda value: [*value[:-1], 9]),
    "no_devices": lambda row: row.pop("devices"),
    "assignment": _moved,
    "speed": _set("machine", "devices", 1, "speed", to=lambda value: "4"),
    "link_speed": _set("machine", "devices", 1, "link_speed", to=lambda value: "1/2"),
    "latency": _set("machine", "devices", 0, "latency_ps", to=lambda value: 0),
    "rates": _set("machine", "devices", 0, "peak_flops_per_s", to=lambda value: 2 * value),
    "memory": _set("machine", "devices", 2, "stage_memory_bytes", to=lambda value: value // 8),
    "order": _set("machine", "order", to=lambda value: "free" if value == "fixed" else "fixed"),
    "sha256": _set("machine", "sha256", to=lambda value: value[::-1]),
    "no_machine": lambda row: row.pop("machine"),
    "system": _set("system", "bandwidth_bytes_per_s", to=lambda value: value + 1),
    "proof_order": _set("lower_proof", "order", to=lambda value: "free" if value == "fixed" else "fixed"),
    "proof_cutoff": _set("lower_proof", "cutoff", to=lambda value: value + 1),
    "proof_k": _set("lower_proof", "k", to=lambda value: value - 1),
    "proof_labels": _set("lower_proof", "labels", to=lambda value: value + 1),
    "proof_digest": _set("lower_proof", "digest", to=lambda value: value[::-1]),
    "simple_above": _set("bounds", "simple", to=lambda value: value + 1),
    "simple_below": _set("bounds", "simple", to=lambda value: value - 1),
    "node": _set("bounds", "node", to=lambda value: value + 1),
    "node_envelope": _set("proofs", "node", "proof", to=lambda proof: {**proof, "envelope": False}),
    "optimal": _set("optimal", to=lambda value: False),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_rows_are_refuted(table: tuple[Any, dict[str, Any]], forgery: str) -> None:
    """Whatever number is changed, no row is verified."""
    model, document = table
    forged = json.loads(json.dumps(document))
    for row in forged["rows"]:
        FORGED[forgery](row)
    assert _verdict(forged, model) in ("false", "malformed")


def test_a_table_is_held_to_a_machine(table: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    """Its digest has to be that of the file, where one is given; rows for equal devices are for another machine."""
    _, document = table
    path = mtpp.datasets.sample_path("resnet50")
    order = document["rows"][0]["machine"]["order"]
    own = _machine(tmp_path, order)
    assert mtpp.verify(document, path, machine=own).verdict == "ok"
    other = _machine(tmp_path, order, MACHINE.replace("60MiB", "61MiB"))
    assert mtpp.verify(document, path, machine=other).verdict == "false"
    plain = mtpp.certify(path, k=2, bounds=["simple"], jobs=1).document()
    assert mtpp.verify(plain, path, machine=own).verdict == "false"


def test_bounds_alone_and_measured_times(tmp_path: Path) -> None:
    """A row of bounds needs no devices of stages; times that were measured stand in the row."""
    ops = [Op(f"op{i}", work) for i, work in enumerate((5, 9, 4, 7))]
    tensors = [Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), bytes=10**6) for i in range(3)]
    graph = CostGraph.build(name="chain", time_unit="ms", ops=ops, tensors=tensors)
    (tmp_path / "graph.json").write_text(write_native(graph))
    measured = {"op0": 3, "op1": 1, "op2": 9, "op3": 2}
    other = CostGraph.build(
        name="chain", time_unit="ms", ops=[Op(name, time) for name, time in measured.items()], tensors=tensors
    )
    (tmp_path / "measured.json").write_text(write_native(other))
    text = '[[device]]\nname = "a"\n[[device]]\nname = "b"\ncosts = "measured.json"\n'
    model = mtpp.read(tmp_path / "graph.json", machine=_machine(tmp_path, "free", text))
    for found in (
        mtpp.certify(model, bounds=["simple", "downset"], jobs=1),
        mtpp.bound(model, bounds=["simple", "downset"]),
    ):
        document = found.document()
        machine = tmp_path / "free.toml"
        assert mtpp.verify(document, tmp_path / "graph.json").verdict == "ok"
        assert mtpp.verify(document, tmp_path / "graph.json", machine=machine).verdict == "ok"
        times = document["rows"][0]["machine"]["times"][0]
        times[0], times[1] = times[1], times[0]
        assert mtpp.verify(document, tmp_path / "graph.json", machine=machine).verdict == "false"


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all whole numbers in a document."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(part, (*path, key))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _numbers(part, (*path, i))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path


@pytest.mark.parametrize("seed", range(20))
def test_no_number_of_a_random_row_can_be_changed(tmp_path: Path, seed: int) -> None:
    """Rows on random machines hold; with one number changed none holds, but those with the same meaning."""
    chance = Random(seed)
    n = chance.randint(3, 6)
    ops = [Op(f"op{i}", chance.randint(1, 60), param_bytes=chance.randint(0, 9)) for i in range(n)]
    tensors = [
        Tensor(f"t{i}", f"op{i}", (f"op{chance.randint(i + 1, n - 1)}",), transfer=chance.randint(0, 30))
        for i in range(n - 1)
    ]
    path = tmp_path / "graph.json"
    path.write_text(write_native(CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=tensors)))
    devices = [
        f'[[device]]\nspeed = "{chance.choice(["1", "2", "5/3"])}"\nlink_speed = "{chance.choice(["1", "1/2", "3"])}"\n'
        f'latency = "{chance.randint(0, 3)}ps"\nmemory = "{chance.randint(20, 60)}B"\n'
        for _ in range(chance.randint(2, 3))
    ]
    model = mtpp.read(path, machine=_machine(tmp_path, chance.choice(["fixed", "free"]), "".join(devices)))
    document = mtpp.certify(model, bounds=["simple", "downset"], jobs=1).document()
    if not document["rows"]:
        pytest.skip("no plan keeps to the memory")
    assert mtpp.verify(document, model).verdict == "ok"
    (row,) = document["rows"]
    for place in _numbers(row):
        if place[0] in ("seconds", "dims"):
            continue
        forged = json.loads(json.dumps(document))
        _set(*place, to=lambda value: value + chance.choice([1, 2, -1]))(forged["rows"][0])
        if place[0] == "machine":  # the devices may be others, with the same costs, if their digest is right
            forged["rows"][0]["machine"]["sha256"] = row["machine"]["sha256"]
        assert _verdict(forged, path) in ("false", "malformed"), place


@pytest.mark.parametrize("replicas", [False, True])
def test_pages_have_the_latency_of_the_plan(tmp_path: Path, replicas: bool) -> None:
    """Not less where a stage stands on several devices; and no speed-up over a stage that no device is named for."""
    (tmp_path / "two.toml").write_text('[[device]]\nname = "slow"\n[[device]]\nname = "fast"\nspeed = 3\n')
    model = mtpp.read(mtpp.datasets.sample_path("resnet50"), machine=tmp_path / "two.toml")
    plan = mtpp.partition(model, replicas=replicas)
    assert mtpp.report(plan, tmp_path / "page.html", model).passed
    page = (tmp_path / "page.html").read_text()
    assert f"Latency</dt><dd>{format_picoseconds(plan.latency)}" in page
    assert "over the fastest device that holds the model" in page
    assert ("slow + fast" in page) == replicas
