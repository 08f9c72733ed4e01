"""Piper's layer graphs: one configuration of many, tensors by their cost, and a unit of time that nobody wrote down."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mtpp.errors import InputError
from mtpp.formats.json_text import parse_json
from mtpp.formats.native import read_native, write_native
from mtpp.formats.node_link import read_node_link, write_node_link
from mtpp.formats.piper import read_workload
from mtpp.formats.piper_graph import graph_from_piper
from mtpp.formats.recognise import read_graph
from mtpp.formats.source import read_source
from mtpp.graph import CostGraph


def _configuration(name: str = "vanilla", time: Any = 0.5, parameters: Any = 10**9, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "timePerSample": time,
        "parameterSize": parameters,
        "memoryUsageA": 3.0,
        "memoryUsageB": 4.0,
        "syncTimeFw": {},
        "syncTimeBw": {},
        **more,
    }


def _layer(identity: int, *configurations: Any, name: str = "layer", degree: str = "1") -> dict[str, Any]:
    return {"id": identity, "name": name, "TMPCs": {degree: list(configurations) or [_configuration()]}}


def _edge(source: int, target: int, size: Any) -> dict[str, Any]:
    return {"sourceId": source, "destId": target, "communicationCost": size}


def _document(nodes: list[Any], edges: list[Any], **more: Any) -> Any:
    document = {"maxDevices": 10, "maxMemoryPerDevice": 8e10, "bandwidth": 2.5e10, "nodes": nodes, "edges": edges}
    return parse_json(json.dumps({**document, **more}).encode(), "p.json")


def _read(nodes: list[Any], edges: list[Any], **options: Any) -> CostGraph:
    return graph_from_piper(_document(nodes, edges), "p.json", **options)


def test_the_plain_configuration_for_one_device() -> None:
    """Recomputation is not taken where there is a choice, whatever comes first; other degrees are left alone."""
    layer = _layer(3, _configuration("activation recomp", 9), _configuration("vanilla", 0.25))
    layer["TMPCs"]["2"] = [_configuration(time=7)]
    graph = _read([layer], [])
    assert (graph.op_names, graph.work, graph.param_bytes.tolist()) == (("layer",), (Fraction(1, 4),), [10**9])
    assert _read([_layer(1, _configuration("only one", 2))], [], time_unit="s").work == (2,)


def test_costs_on_out_edges_tell_tensors_apart() -> None:
    """Edges of one cost carry one tensor, and another cost is another tensor."""
    nodes = [_layer(i, name=f"n{i}") for i in range(4)]
    graph = _read(nodes, [_edge(0, 1, 8.0), _edge(0, 2, 9.5), _edge(0, 3, 8.0)])
    consumers = [[graph.op_names[v] for v in graph.tensor_consumers(t)] for t in range(2)]
    assert (graph.tensor_names, consumers) == (("n0", "n0:1"), [["n1", "n3"], ["n2"]])
    assert graph.tensor_bytes.tolist() == [8, 10]


def test_the_unit_of_time_is_guessed_aloud() -> None:
    """A gigabyte of parameters takes seconds to nanoseconds, and only one of them is a rate that devices have."""
    for time, unit in ((0.5, "s"), (500, "ms"), (500_000, "us"), (500_000_000, "ns")):
        graph = _read([_layer(1, _configuration(time=time))], [])
        assert graph.time_unit == unit
        assert graph.metadata["assumptions"][0].startswith(f"times are taken to be in {unit}: ")


def test_a_unit_of_time_that_is_given_is_not_guessed() -> None:
    """The user has the last word."""
    graph = _read([_layer(1, _configuration(time=0.5))], [], time_unit="ms")
    assert graph.time_unit == "ms"
    assert len(graph.metadata["assumptions"]) == 1


@pytest.mark.parametrize(
    "configuration", [_configuration(parameters=0), _configuration(time=0), _configuration(time=1e13)]
)
def test_a_unit_of_time_that_cannot_be_guessed(configuration: dict[str, Any]) -> None:
    """Without parameters or time there is nothing to go by, and nothing is assumed."""
    with pytest.raises(InputError, match=r"p\.json: /nodes: the file does not say what unit .* --time-unit"):
        _read([_layer(1, configuration)], [])


def test_the_whole_workload() -> None:
    """All configurations, and both names of the number of micro-batches."""
    plain = _configuration(syncTimeFw={"1": 5.0}, syncTimeBw={"2": 6.5})
    nodes = [_layer(1), _layer(2, plain, degree="8"), _layer(4)]
    for key in ("maxBatchSize", "mbsInBatch"):
        workload = read_workload(_document(nodes, [_edge(1, 2, 7)], **{key: 1920}), "p.json")
        assert workload.micro_batches == 1920
    (configuration,) = workload.layers[2].configurations[8]
    assert (configuration.forward_sync_bytes, configuration.backward_sync_bytes) == ({1: 5}, {2: 7})
    assert (configuration.memory_a, configuration.memory_b) == (3, 4)
    assert [layer.name for layer in workload.layers.values()] == ["layer #1", "layer #2", "layer #4"]
    assert (workload.max_devices, workload.memory_bytes_per_device, workload.bandwidth_bytes_per_s) == (
        10,
        80 * 10**9,
        25 * 10**9,
    )


@pytest.mark.parametrize(
    ("nodes", "edges", "more", "message"),
    [
        ([], [], {}, "p.json: /nodes: the graph has no nodes"),
        ([{"id": 1}], [], {}, "p.json: /nodes/0: missing key 'TMPCs'"),
        ([{"id": 1, "TMPCs": []}], [], {}, "p.json: /nodes/0/TMPCs: must be an object, not an array"),
        ([_layer(1), _layer(1)], [], {}, "p.json: /nodes/1/id: duplicate id 1"),
        ([_layer(1, degree="2")], [], {}, "p.json: /nodes/0/TMPCs/1: the layer has no configuration for one device"),
        ([_layer(1, degree="x")], [], {}, "p.json: /nodes/0/TMPCs/x: 'x' is not a degree of tensor parallelism"),
        ([_layer(1, degree="0")], [], {}, "p.json: /nodes/0/TMPCs/0: a degree of tensor parallelism must be at least"),
        ([_layer(1, degree="-")], [], {}, "p.json: /nodes/0/TMPCs/-: '-' is not a degree"),
        (
            [_layer(1, _configuration("a"), _configuration("b"))],
            [],
            {},
            "p.json: /nodes/0/TMPCs/1: none of 2 configurations is called 'vanilla'",
        ),
        ([_layer(1, {"id": "x"})], [], {}, "p.json: /nodes/0/TMPCs/1/0: missing key 'timePerSample'"),
        ([_layer(1, _configuration(time=-1))], [], {}, "p.json: /nodes/0/TMPCs/1/0/timePerSample: a cost cannot be"),
        ([_layer(1, _configuration(time="1"))], [], {}, "p.json: /nodes/0/TMPCs/1/0/timePerSample: must be a number"),
        (
            [_layer(1, _configuration(parameters=1e30))],
            [],
            {},
            "p.json: /nodes/0/TMPCs/1/0/parameterSize: a size must be at least 0 and below 2^62",
        ),
        (
            [_layer(1, _configuration(syncTimeFw={"9": 1}))],
            [],
            {},
            "p.json: /nodes/0/TMPCs/1/0/syncTimeFw/9: no node has the id 9",
        ),
        ([_layer(1)], [_edge(1, 2, 8)], {}, "p.json: /edges/0/destId: no node has the id 2"),
        ([_layer(1), _layer(2)], [_edge(1, 2, -8)], {}, "p.json: /edges/0/communicationCost: a size must be"),
        (
            [_layer(1), _layer(2)],
            [_edge(1, 2, 8), _edge(2, 1, 8)],
            {},
            "p.json: /edges: the graph has a cycle: layer #1",
        ),
        ([_layer(1)], [], {"maxDevices": 0}, "p.json: /maxDevices: must be at least 1"),
        ([_layer(1)], [], {"maxBatchSize": 1, "mbsInBatch": 2}, "p.json: /mbsInBatch: maxBatchSize and mbsInBatch"),
    ],
)
def test_broken_workloads(nodes: list[Any], edges: list[Any], more: dict[str, Any], message: str) -> None:
    """One line that names the place."""
    with pytest.raises(InputError) as caught:
        graph_from_piper(_document(nodes, edges, **more), "p.json")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("name", "unit"), [("bert32a100", "s"), ("gnmt", "ms"), ("resnet", "ms")])
def test_published_workloads(name: str, unit: str, shared_data: Path) -> None:
    """Counts, time and bytes are those of a count by hand, and what is written reads the same."""
    path = shared_data / "piper" / f"{name}.json"
    graph = read_graph(read_source(str(path)))
    document = json.loads(path.read_text())
    plain = [node["TMPCs"]["1"][0] for node in document["nodes"]]
    assert {one["id"] for one in plain} == {"vanilla"}
    assert graph.time_unit == unit
    assert graph.op_count == len(document["nodes"])
    assert float(sum(graph.work)) == pytest.approx(sum(one["timePerSample"] for one in plain))
    assert int(graph.param_bytes.sum()) == sum(one["parameterSize"] for one in plain)
    assert len(graph.consumers) == len(document["edges"])
    sent = {(edge["sourceId"], edge["communicationCost"]) for edge in document["edges"]}
    assert graph.tensor_count == len(sent)
    assert int(graph.tensor_bytes.sum()) == sum(size for _, size in sent)
    assert write_native(read_native(write_native(graph).encode(), "again")) == write_native(graph)
    assert write_native(read_node_link(write_node_link(graph).encode(), "again")) == write_native(graph)


def test_published_synchronisation_is_in_bytes_by_neighbour(shared_data: Path) -> None:
    """Forward keys are predecessors, backward keys are successors, and a whole tensor is handed over."""
    path = shared_data / "piper" / "bert32a100.json"
    workload = read_workload(parse_json(path.read_bytes(), str(path)), str(path))
    sources = {(edge.source, edge.target): edge.communication_bytes for edge in workload.edges}
    seen = 0
    for layer in workload.layers.values():
        for configuration in layer.configurations[8]:
            assert all((other, layer.id) in sources for other in configuration.forward_sync_bytes)
            assert all((layer.id, other) in sources for other in configuration.backward_sync_bytes)
            seen += len(configuration.forward_sync_bytes) + len(configuration.backward_sync_bytes)
    assert seen > len(sources)
    assert workload.micro_batches == 1920
