"""Node-link JSON: what is refused, with places in that format and not in the native one."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.node_link import graph_from_node_link


def _document(**changes: Any) -> dict[str, Any]:
    return {
        "directed": True,
        "graph": {"time_unit": "ms"},
        "nodes": [{"id": "a", "work": 1, "size_out": 8}, {"id": 1, "work": 2, "size_param": 3}],
        "edges": [{"source": "a", "target": 1}],
        **changes,
    }


def _with_node(**keys: Any) -> dict[str, Any]:
    document = _document()
    document["nodes"][0].update(keys)
    return document


def _with_table(**row: Any) -> dict[str, Any]:
    table = {"t": {"producer": "a", "consumers": ["1"], "bytes": 8, **row}}
    return _document(graph={"time_unit": "ms", "tensors": table})


def _without(key: str) -> dict[str, Any]:
    document = _document()
    del document[key]
    return document


UNIT_REMEDY = 'put "time_unit": "ms" (or ps, ns, us, s) into "graph", or give transfer times'

WRONG = [
    (_without("directed"), "x: /: missing key 'directed'; a computation graph needs \"directed\": true"),
    (_document(directed=1), 'x: /directed: the graph is not directed; a computation graph needs "directed": true'),
    (_without("nodes"), "x: /: missing key 'nodes'; add it"),
    (_without("edges"), "x: /: missing key 'edges'; add it (or 'links')"),
    (_document(nodes=[], edges=[]), "x: /nodes: the graph has no ops; give at least one"),
    (_document(graph=[]), "x: /graph: must be an object, not an array"),
    (_document(graph={"name": 3}), "x: /graph/name: must be a string, not a number"),
    (
        _document(graph={"time_unit": "h"}),
        "x: /graph/time_unit: unknown time unit 'h'; use one of ps, ns, us, ms, s, 1",
    ),
    (_document(graph={}), f"x: /nodes/0: bytes without transfer in a graph without a time unit; {UNIT_REMEDY}"),
    (_with_node(size_out=None), "x: /nodes/0: the tensor has no cost; give its node size_out or transfer"),
    (_with_node(work=-1), "x: /nodes/0/work: a cost cannot be negative"),
    (_with_node(work="1"), "x: /nodes/0/work: must be a number, not a string; write it without quotes"),
    (_with_node(kind=2), "x: /nodes/0/kind: must be a string, not a number"),
    (_with_node(bytes=9), "x: /nodes/0: bytes and size_out differ; give one of them"),
    (_with_node(size_param=-1), "x: /nodes/0/size_param: a size must be at least 0 and below 2^62 bytes"),
    (_with_node(transfer=-2), "x: /nodes/0/transfer: a cost cannot be negative"),
    (_with_node(id=None), "x: /nodes/0/id: a node's id must be a string or a whole number, not null"),
    (_with_node(id="1"), "x: /nodes/1/id: duplicate id '1', first used at /nodes/0"),
    (_with_node(id=""), "x: /edges/0/source: no node has the id 'a'"),
    (_document(nodes=[{"work": 1}]), "x: /nodes/0: missing key 'id'; add it"),
    (_document(nodes=[{"id": 1}], edges=[]), "x: /nodes/0: missing key 'work'; give each node its cost as work"),
    (_document(edges=[{"source": "a"}]), "x: /edges/0: missing key 'target'; add it"),
    (
        _document(edges=[{"source": "a", "target": "a"}]),
        "x: /edges/0: the edge leads from node 'a' to itself (self-loop)",
    ),
    (
        _with_node(size_out=8) | {"edges": [{"source": 1, "target": "a"}, {"source": "a", "target": 1}]},
        "x: /nodes/1: the tensor has no cost; give its node size_out or transfer",
    ),
    (
        _with_table(colour=1),
        "x: /graph/tensors/t: unknown key 'colour'; known keys: producer, consumers, bytes, transfer",
    ),
    (_with_table(producer="z"), "x: /graph/tensors/t/producer: no node has the id 'z'"),
    (_with_table(consumers=["1", "z"]), "x: /graph/tensors/t/consumers/1: no node has the id 'z'"),
    (_with_table(consumers=["1", "a"]), "x: /graph/tensors/t: there is no edge from 'a' to 'a'"),
    (_with_table(consumers=[]), "x: /graph/tensors: no tensor flows along the edge from 'a' to '1'"),
    (_with_table(consumers=["1", "1"]), "x: /graph/tensors/t/consumers/1: duplicate consumer '1'; list each op once"),
    (_with_table(bytes=None), "x: /graph/tensors/t: the tensor has no cost; give bytes or transfer"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=[message[3:48] for _, message in WRONG])
def test_wrong_documents(document: Any, message: str) -> None:
    """Every message points into the node-link document."""
    assert str(refusal(graph_from_node_link, document, "x")) == message


def test_a_cycle_is_placed_among_the_edges() -> None:
    """The ops on the cycle are named."""
    nodes = [{"id": i, "work": 1, "transfer": 1} for i in range(3)]
    edges = [{"source": u, "target": v} for u, v in ((0, 1), (1, 2), (2, 1))]
    with pytest.raises(InputError) as caught:
        graph_from_node_link(_document(nodes=nodes, edges=edges), "x")
    assert (caught.value.where, caught.value.problem) == ("/edges", "the graph has a cycle: 1 -> 2 -> 1")


def test_parallel_edges_are_one_consumer() -> None:
    """A multigraph's parallel edges carry the same tensor."""
    edge = {"source": "a", "target": 1, "key": 0}
    graph = graph_from_node_link(_document(multigraph=True, edges=[edge, {**edge, "key": 1}]), "x")
    assert (graph.tensor_count, graph.tensor_consumers(0).tolist()) == (1, [1])


def test_the_callers_unit_and_name_apply() -> None:
    """A unit given by the caller wins over the file; a name only stands in for a missing one."""
    graph = graph_from_node_link(_document(), "x", name="stem", time_unit="s")
    assert (graph.name, graph.time_unit) == ("stem", "s")
    graph = graph_from_node_link(_document(graph={"name": "own", "time_unit": "ms"}), "x", name="stem")
    assert (graph.name, graph.time_unit) == ("own", "ms")


def test_other_attributes_are_passed_over() -> None:
    """Files that networkx users keep for other purposes carry more than costs."""
    graph = graph_from_node_link(_with_node(colour="red", pos=[0, 1]), "x")
    assert graph.op_names == ("a", "1")
    assert graph.param_bytes.tolist() == [0, 3]
