"""Workloads of device placement: what becomes of classes, parameters, backward nodes and transfers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.node_link import read_node_link, write_node_link
from mtpp.formats.graphs.placement import graph_from_placement
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.io.source import Source, read_source
from mtpp.inference.graph import CostGraph

FILES = [
    *(f"LayerGraphs/{name}_inference" for name in ("bert24", "gnmt", "inceptionv3", "resnet50")),
    *("LayerGraphs/bert24_training", "LayerGraphs/resnet50_training"),
    *(f"OperatorGraphs/{name}" for name in ("bert_l-3_inference", "bert_l-3_training", "bert_l-6_inference")),
    "OperatorGraphs/resnet50_inference",
]


def _node(identity: int, time: float, **more: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "name": f"n{identity}",
        "supportedOnFpga": 1,
        "cpuLatency": 10 * time,
        "fpgaLatency": time,
        "isBackwardNode": 0,
        "size": 0,
        **more,
    }


def _edge(source: int, target: int, size: float | None = 8, **more: Any) -> dict[str, Any]:
    sized = {} if size is None else {"size": size}
    return {"sourceId": source, "destId": target, "cost": 1e-9, **sized, **more}


def _document(nodes: list[Any], edges: list[Any]) -> dict[str, Any]:
    return {"maxSizePerFPGA": 1e9, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}


def _read(nodes: list[Any], edges: list[Any], **options: Any) -> CostGraph:
    text = json.dumps(_document(nodes, edges)).encode()
    return graph_from_placement(parse_json(text, "w.json"), "w.json", **options)


def _tensors(graph: CostGraph) -> dict[str, tuple[str, list[str], int]]:
    return {
        name: (
            graph.op_names[graph.tensor_producer[t]],
            [graph.op_names[v] for v in graph.tensor_consumers(t)],
            int(graph.tensor_bytes[t]),
        )
        for t, name in enumerate(graph.tensor_names)
    }


def test_all_out_edges_carry_one_tensor() -> None:
    """A node's output is sent once, however many read it; its bytes are the edge's size and its time is not given."""
    graph = _read([_node(1, 2.5), _node(2, 1), _node(3, 1)], [_edge(1, 2, 80), _edge(1, 3, 80)])
    assert _tensors(graph) == {"n1": ("n1", ["n2", "n3"], 80)}
    assert graph.transfer == (None,)
    assert graph.time_unit == "ms"
    assert graph.work == (Fraction(5, 2), 1, 1)


def test_transfers_follow_from_sizes_not_from_costs() -> None:
    """Costs in seconds beside times in milliseconds do no harm: they are not looked at where there is a size."""
    one, other = (_read([_node(1, 1), _node(2, 1)], [_edge(1, 2, 80, cost=cost)]) for cost in (1e-6, 1e-3))
    assert write_native(one) == write_native(other)


def test_costs_stand_in_for_sizes() -> None:
    """Edges without a size, which the format allows, take their cost; that is said."""
    graph = _read([_node(1, 1), _node(2, 1)], [_edge(1, 2, None, cost=0.25)])
    assert graph.transfer == (Fraction(1, 4),)
    assert graph.metadata["assumptions"] == ["edges without a size take their cost, whatever the bandwidth"]


def test_edges_of_different_sizes_are_different_tensors() -> None:
    """Both are paid for."""
    graph = _read([_node(1, 1), _node(2, 1), _node(3, 1)], [_edge(1, 2, 80), _edge(1, 3, 90)])
    assert _tensors(graph) == {"n1": ("n1", ["n2"], 80), "n1:1": ("n1", ["n3"], 90)}


def test_fractions_of_a_byte_are_rounded_up() -> None:
    """Sizes such as 0.125 stand for single bits."""
    assert _tensors(_read([_node(1, 1), _node(2, 1)], [_edge(1, 2, 0.125)]))["n1"][2] == 1


def test_colour_classes_are_one_op() -> None:
    """Work and memory add up, what flows inside is gone, and the longest node gives its name."""
    nodes = [_node(1, 1, colorClass=7, size=5), _node(2, 3, colorClass=7, size=6), _node(3, 1, size=7)]
    graph = _read(nodes, [_edge(1, 2), _edge(1, 3), _edge(2, 3, 9)])
    assert graph.op_names == ("n2 (+1)", "n3")
    assert graph.work == (4, 1)
    assert graph.param_bytes.tolist() == [11, 7]
    assert _tensors(graph) == {"n1": ("n2 (+1)", ["n3"], 8), "n2": ("n2 (+1)", ["n3"], 9)}
    assert graph.metadata["nodes"] == {"n2 (+1)": [1, 2], "n3": [3]}


def test_classes_that_wait_for_each_other_are_one_op() -> None:
    """1 and 3 share a device, and 2 between them cannot be on any other; 4 can."""
    nodes = [_node(1, 1, colorClass=7), _node(2, 1), _node(3, 1, colorClass=7), _node(4, 1)]
    graph = _read(nodes, [_edge(1, 2), _edge(2, 3), _edge(3, 4)])
    assert graph.metadata["nodes"] == {"n1 (+2)": [1, 2, 3], "n4": [4]}


@given(st.data())
def test_ops_are_what_has_to_share_a_device(data: st.DataObject) -> None:
    """Of any coloured graph: the strongly connected components once each class is a ring; nothing else is merged."""
    count = data.draw(st.integers(1, 9))
    colours = data.draw(st.lists(st.none() | st.integers(0, 3), min_size=count, max_size=count))
    pairs = data.draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=14))
    pairs = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    nodes = [_node(v, v + 1, colorClass=colour) for v, colour in enumerate(colours)]
    graph = _read(nodes, [_edge(u, v) for u, v in sorted(pairs)])
    together: nx.DiGraph = nx.DiGraph(pairs)
    together.add_nodes_from(range(count))
    for u in range(count):
        together.add_edges_from((u, v) for v in range(count) if colours[u] is not None and colours[u] == colours[v])
    expected = {frozenset(ring) for ring in nx.strongly_connected_components(together)}
    assert {frozenset(ids) for ids in graph.metadata["nodes"].values()} == expected
    work = dict(zip(graph.op_names, graph.work, strict=True))
    assert all(work[op] == sum(v + 1 for v in ids) for op, ids in graph.metadata["nodes"].items())


def test_backward_nodes_are_left_out() -> None:
    """They count only when asked for, with their class."""
    nodes = [_node(1, 1, colorClass=1), _node(2, 5, colorClass=1, isBackwardNode=True)]
    graph = _read(nodes, [_edge(1, 2)])
    assert (graph.work, graph.metadata["dropped"]) == ((1,), [2])
    assert graph.metadata["assumptions"] == ["1 backward nodes left out"]
    assert _read(nodes, [_edge(1, 2)], backward=True).work == (6,)


def test_weights_are_parameters() -> None:
    """Whoever reads one holds it, in its class or not; it is not transferred and makes nobody wait."""
    nodes = [_node(1, 0, size=100, colorClass=7), _node(2, 1, colorClass=7), _node(3, 1, size=10), _node(4, 0, size=1)]
    graph = _read(nodes, [_edge(1, 2, 100), _edge(1, 3, 100), _edge(4, 3, 1), _edge(3, 2, 8)])
    assert graph.op_names == ("n2", "n3")
    assert graph.param_bytes.tolist() == [100, 111]
    assert list(_tensors(graph)) == ["n3"]
    assert graph.metadata["parameters"] == [1, 4]
    assert graph.metadata["assumptions"][0] == "2 weights and constants held by the ops that read them"


def test_inputs_without_bytes_stay_ops() -> None:
    """A zero-time source that holds nothing is no parameter."""
    assert _read([_node(1, 0), _node(2, 1)], [_edge(1, 2, 0)]).op_names == ("n1", "n2")


def test_names_are_told_apart() -> None:
    """Nodes of one name get their ids behind it, and nodes without a name are called after them."""
    nodes = [_node(1, 1, name="a"), _node(2, 1, name="a"), _node(3, 1, name=""), _node(4, 1, name="a #1")]
    assert _read(nodes, []).op_names == ("a #1'", "a #2", "node 3", "a #1")


def test_nodes_for_cpus_only_are_said() -> None:
    """All stages are accelerators here."""
    graph = _read([_node(1, 1, supportedOnFpga=False)], [])
    assert "no accelerator supports" in graph.metadata["assumptions"][0]


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([], [], "w.json: /nodes: the graph has no nodes"),
        ([7], [], "w.json: /nodes/0: must be an object, not a number"),
        ([{"fpgaLatency": 1}], [], "w.json: /nodes/0: missing key 'id'"),
        ([_node(1, 1), _node(1, 1)], [], "w.json: /nodes/1/id: duplicate id 1, first used at /nodes/0"),
        ([_node(1, 1, id="1")], [], "w.json: /nodes/0/id: a node's id must be a whole number, not a string"),
        ([_node(1, 1, id=2**64)], [], "w.json: /nodes/0/id: a node's id must be a whole number, not one of more"),
        ([_node(1, -1)], [], "w.json: /nodes/0/fpgaLatency: a cost cannot be negative"),
        ([_node(1, 1, fpgaLatency="1")], [], "w.json: /nodes/0/fpgaLatency: must be a number, not a string"),
        ([_node(1, 1, size=-1)], [], "w.json: /nodes/0/size: a size must be at least 0 and below 2^62"),
        ([_node(1, 1, size=1e300)], [], "w.json: /nodes/0/size: a size must be at least 0 and below 2^62"),
        ([_node(1, 1, colorClass="red")], [], "w.json: /nodes/0/colorClass: a colour class must be a whole number"),
        ([_node(1, 1, isBackwardNode=2)], [], "w.json: /nodes/0/isBackwardNode: must be true or false"),
        ([_node(1, 1, isBackwardNode=1)], [], "w.json: /nodes: all nodes are backward nodes"),
        ([_node(1, 1)], [_edge(1, 2)], "w.json: /edges/0/destId: no node has the id 2"),
        ([_node(1, 1)], [_edge(1, 1)], "w.json: /edges/0: the edge leads from node 1 to itself"),
        ([_node(1, 1), _node(2, 1)], [_edge(1, 2), _edge(1, 2)], "w.json: /edges/1: duplicate edge from node 1"),
        ([_node(1, 1), _node(2, 1)], [_edge(1, 2), _edge(2, 1)], "w.json: /edges: the graph has a cycle: n1 -> n2"),
        ([_node(1, 1), _node(2, 1)], [{"sourceId": 1, "destId": 2}], "w.json: /edges/0: the edge has neither"),
        ([_node(1, 1), _node(2, 1)], [_edge(1, 2, -8)], "w.json: /edges/0/size: a size must be at least 0"),
    ],
)
def test_broken_workloads(nodes: list[Any], edges: list[Any], message: str) -> None:
    """One line that names the place."""
    assert str(refusal(_read, nodes, edges)).startswith(message)


def test_it_is_recognised_by_its_nodes() -> None:
    """The suffix says nothing, and a broken one is still one."""
    text = json.dumps(_document([_node(1, 1)], [])).encode()
    assert read_graph(Source("x", text, "", Path("x"))).metadata["source_format"] == "placement"
    with pytest.raises(InputError, match="/nodes/0: missing key 'fpgaLatency'"):
        read_graph(Source("x", json.dumps(_document([{"id": 1}], [])).encode(), "", Path("x")))


@pytest.mark.parametrize("name", FILES)
def test_published_workloads(name: str, shared_data: Path) -> None:
    """Ops, tensors, time and bytes are those of a count from the definitions, and what is written reads the same."""
    path = shared_data / "placement" / f"{name}.json"
    graph = read_graph(read_source(str(path)))
    document = json.loads(path.read_text())
    nodes = {node["id"]: node for node in document["nodes"] if not node["isBackwardNode"]}
    edges = [e for e in document["edges"] if e["sourceId"] in nodes and e["destId"] in nodes]
    fed = {e["destId"] for e in edges}
    weights = {i for i, node in nodes.items() if i not in fed and not node["fpgaLatency"] and node["size"]}
    place = {i: node.get("colorClass", f"own {i}") for i, node in nodes.items()}  # none of these makes a cycle
    assert graph.op_count == len({place[i] for i in nodes if i not in weights})
    assert float(sum(graph.work)) == pytest.approx(sum(node["fpgaLatency"] for node in nodes.values()))
    sent = {(e["sourceId"], e["size"]) for e in edges if place[e["sourceId"]] != place[e["destId"]]}
    sent = {(i, size) for i, size in sent if i not in weights}
    assert graph.tensor_count == len(sent)
    assert int(graph.tensor_bytes.sum()) == sum(-int(-size // 1) for _, size in sent)
    pins = {(*key, place[e["destId"]]) for e in edges if (key := (e["sourceId"], e["size"])) in sent}
    assert len(graph.consumers) == len([pin for pin in pins if pin[2] != place[pin[0]]])
    held = {(place[e["destId"]], e["sourceId"]) for e in edges if e["sourceId"] in weights}
    held |= {(place[i], i) for i in nodes}
    working = {place[i] for i in nodes if i not in weights}
    assert int(graph.param_bytes.sum()) == sum(nodes[i]["size"] for where, i in held if where in working)
    again = read_native(write_native(graph).encode(), "again")
    assert write_native(again) == write_native(graph)
    assert write_native(read_node_link(write_node_link(graph).encode(), "again")) == write_native(graph)


def test_a_training_workload_with_its_backward_pass(shared_data: Path) -> None:
    """Classes that wait for each other end up in one op: 130 of the 142 of a small BERT."""
    path = shared_data / "placement" / "OperatorGraphs" / "bert_l-3_training.json"
    graph = read_graph(read_source(str(path)), backward=True)
    total = sum(node["fpgaLatency"] for node in json.loads(path.read_text())["nodes"])
    assert float(sum(graph.work)) == pytest.approx(total)
    assert max(map(len, graph.metadata["nodes"].values())) > 400
    assert graph.op_count == 13
