"""Inference graphs of Piper's workloads: one configuration of many, tensors by their cost, a unit that is guessed."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from piper_documents import configuration, document, edge, layer
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.node_link import read_node_link, write_node_link
from mtpp.formats.graphs.piper import graph_from_piper
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import read_source
from mtpp.inference.graph import CostGraph


def _read(nodes: list[Any], edges: list[Any], **options: Any) -> CostGraph:
    return graph_from_piper(document(nodes, edges), "p.json", **options)


def test_the_plain_configuration_for_one_device() -> None:
    """Recomputation is not taken where there is a choice, whatever comes first; other degrees are left alone."""
    node = layer(3, configuration("activation recomp", 9), configuration("vanilla", 0.25))
    node["TMPCs"]["2"] = [configuration(time=7)]
    graph = _read([node], [])
    assert (graph.op_names, graph.work, graph.param_bytes.tolist()) == (("layer",), (Fraction(1, 4),), [10**9])
    assert _read([layer(1, configuration("only one", 2))], [], time_unit="s").work == (2,)


def test_costs_on_out_edges_tell_tensors_apart() -> None:
    """Edges of one cost carry one tensor, and another cost is another tensor."""
    nodes = [layer(i, name=f"n{i}") for i in range(4)]
    graph = _read(nodes, [edge(0, 1, 8.0), edge(0, 2, 9.5), edge(0, 3, 8.0)])
    consumers = [[graph.op_names[v] for v in graph.tensor_consumers(t)] for t in range(2)]
    assert (graph.tensor_names, consumers) == (("n0", "n0:1"), [["n1", "n3"], ["n2"]])
    assert graph.tensor_bytes.tolist() == [8, 10]


def test_the_unit_of_time_is_guessed_aloud() -> None:
    """A gigabyte of parameters takes seconds to nanoseconds, and only one of them is a rate that devices have."""
    for time, unit in ((0.5, "s"), (500, "ms"), (500_000, "us"), (500_000_000, "ns")):
        graph = _read([layer(1, configuration(time=time))], [])
        assert graph.time_unit == unit
        assert graph.metadata["assumptions"][0].startswith(f"times are taken to be in {unit}: ")


def test_a_unit_of_time_that_is_given_is_not_guessed() -> None:
    """The user has the last word."""
    graph = _read([layer(1, configuration(time=0.5))], [], time_unit="ms")
    assert graph.time_unit == "ms"
    assert len(graph.metadata["assumptions"]) == 1


@pytest.mark.parametrize("only", [configuration(parameters=0), configuration(time=0), configuration(time=1e13)])
def test_a_unit_of_time_that_cannot_be_guessed(only: dict[str, Any]) -> None:
    """Without parameters or time there is nothing to go by, and nothing is assumed."""
    with pytest.raises(InputError, match=r"p\.json: /nodes: the file does not say what unit .* time_unit"):
        _read([layer(1, only)], [])


@pytest.mark.parametrize(
    ("nodes", "edges", "more", "message"),
    [
        ([], [], {}, "p.json: /nodes: the graph has no nodes"),
        ([{"id": 1}], [], {}, "p.json: /nodes/0: missing key 'TMPCs'"),
        ([{"id": 1, "TMPCs": []}], [], {}, "p.json: /nodes/0/TMPCs: must be an object, not an array"),
        ([layer(1), layer(1)], [], {}, "p.json: /nodes/1/id: duplicate id 1"),
        ([layer(1, degree="2")], [], {}, "p.json: /nodes/0/TMPCs/1: the layer has no configuration for one device"),
        ([layer(1, degree="x")], [], {}, "p.json: /nodes/0/TMPCs/x: 'x' is not a degree of tensor parallelism"),
        ([layer(1, degree="0")], [], {}, "p.json: /nodes/0/TMPCs/0: a degree of tensor parallelism must be at least"),
        ([layer(1, degree="-")], [], {}, "p.json: /nodes/0/TMPCs/-: '-' is not a degree"),
        (
            [layer(1, configuration("a"), configuration("b"))],
            [],
            {},
            "p.json: /nodes/0/TMPCs/1: none of 2 configurations is called 'vanilla'",
        ),
        ([layer(1, {"id": "x"})], [], {}, "p.json: /nodes/0/TMPCs/1/0: missing key 'timePerSample'"),
        ([layer(1, configuration(time=-1))], [], {}, "p.json: /nodes/0/TMPCs/1/0/timePerSample: a cost cannot be"),
        ([layer(1, configuration(time="1"))], [], {}, "p.json: /nodes/0/TMPCs/1/0/timePerSample: must be a number"),
        (
            [layer(1, configuration(parameters=1e30))],
            [],
            {},
            "p.json: /nodes/0/TMPCs/1/0/parameterSize: a size must be at least 0 and below 2^62",
        ),
        (
            [layer(1, configuration(syncTimeFw={"9": 1}))],
            [],
            {},
            "p.json: /nodes/0/TMPCs/1/0/syncTimeFw/9: no node has the id 9",
        ),
        ([layer(1)], [edge(1, 2, 8)], {}, "p.json: /edges/0/destId: no node has the id 2"),
        ([layer(1), layer(2)], [edge(1, 2, -8)], {}, "p.json: /edges/0/communicationCost: a size must be"),
        (
            [layer(1), layer(2)],
            [edge(1, 2, 8), edge(2, 1, 8)],
            {},
            "p.json: /edges: the graph has a cycle: layer #1",
        ),
        ([layer(1)], [], {"maxDevices": 0}, "p.json: /maxDevices: must be at least 1"),
        ([layer(1)], [], {"maxBatchSize": 1, "mbsInBatch": 2}, "p.json: /mbsInBatch: maxBatchSize and mbsInBatch"),
    ],
)
def test_broken_workloads(nodes: list[Any], edges: list[Any], more: dict[str, Any], message: str) -> None:
    """One line that names the place."""
    assert str(refusal(graph_from_piper, document(nodes, edges, **more), "p.json")).startswith(message)


@pytest.mark.parametrize(("name", "unit"), [("bert32a100", "s"), ("gnmt", "ms"), ("resnet", "ms")])
def test_published_workloads(name: str, unit: str, shared_data: Path) -> None:
    """Counts, time and bytes are those of a count by hand, and what is written reads the same."""
    path = shared_data / "piper" / f"{name}.json"
    graph = read_graph(read_source(str(path)))
    content = json.loads(path.read_text())
    plain = [node["TMPCs"]["1"][0] for node in content["nodes"]]
    assert {one["id"] for one in plain} == {"vanilla"}
    assert graph.time_unit == unit
    assert graph.op_count == len(content["nodes"])
    assert float(sum(graph.work)) == pytest.approx(sum(one["timePerSample"] for one in plain))
    assert int(graph.param_bytes.sum()) == sum(one["parameterSize"] for one in plain)
    assert len(graph.consumers) == len(content["edges"])
    sent = {(one["sourceId"], one["communicationCost"]) for one in content["edges"]}
    assert graph.tensor_count == len(sent)
    assert int(graph.tensor_bytes.sum()) == sum(size for _, size in sent)
    assert write_native(read_native(write_native(graph).encode(), "again")) == write_native(graph)
    assert write_native(read_node_link(write_node_link(graph).encode(), "again")) == write_native(graph)
