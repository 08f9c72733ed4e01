"""Splits of placement workloads by ids of nodes, read as stages of ops."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.placement import graph_from_placement
from mtpp.formats.graphs.placement_split import looks_like_split, stages_of_split
from mtpp.inference.graph import CostGraph, Op

WORKLOAD = {
    "nodes": [
        {"id": 1, "name": "w", "fpgaLatency": 0, "size": 4},
        {"id": 2, "name": "a", "fpgaLatency": 1, "colorClass": 5},
        {"id": 3, "name": "b", "fpgaLatency": 2, "colorClass": 5},
        {"id": 4, "name": "c", "fpgaLatency": 3},
        {"id": 5, "name": "d", "fpgaLatency": 3, "isBackwardNode": 1},
    ],
    "edges": [{"sourceId": source, "destId": target, "size": 8} for source, target in ((1, 2), (2, 3), (3, 4), (4, 5))],
}
GRAPH = graph_from_placement(WORKLOAD, "w.json")


def _split(*nodes: list[Any], cpu: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {
        "cpus": [{"load": 0, "nodes": list(cpu)}],
        "fpgas": [{"load": -1, "nodes": ids} for ids in nodes],
        "maxLoad": -1,
    }


def test_accelerators_are_stages() -> None:
    """Nodes of one op are together, folded and dropped ones may stand anywhere, and a converted graph will do."""
    split = _split([4, 1], [3, 2, 5])
    assert looks_like_split(split)
    for graph in (GRAPH, read_native(write_native(GRAPH).encode(), "again")):
        assert stages_of_split(split, "s.json", graph) == {"c": 0, "b (+1)": 1}


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            _split([2], [3, 4]),
            "s.json: /fpgas/1/nodes/0: node 3 is on accelerator 1 and node 2 on 0, but both belong to",
        ),
        (_split([2, 3], [4, 2]), "s.json: /fpgas/1/nodes/1: node 2 is placed twice, first at /fpgas/0/nodes/0"),
        (_split([2, 3, 9]), "s.json: /fpgas/0/nodes/2: the model has no node 9"),
        (_split(["2"]), "s.json: /fpgas/0/nodes/0: a node's id must be a whole number, not a string"),
        (_split([2, 3], cpu=(4,)), "s.json: /cpus/0/nodes: nodes on a CPU"),
        ({"fpgas": [7]}, "s.json: /fpgas/0: must be an object, not a number"),
        ({"fpgas": [{}]}, "s.json: /fpgas/0: missing key 'nodes'"),
        ({"fpgas": [], "cpus": {}}, "s.json: /cpus: must be an array, not an object"),
    ],
)
def test_broken_splits(split: dict[str, Any], message: str) -> None:
    """One line that names the place."""
    assert str(refusal(stages_of_split, split, "s.json", GRAPH)).startswith(message)


def test_a_model_without_nodes() -> None:
    """Ids say nothing about a graph that was not made from nodes."""
    graph = CostGraph.build(name="g", time_unit="ms", ops=[Op("a", 1)], tensors=[])
    with pytest.raises(InputError, match="give the placement workload as the model"):
        stages_of_split(_split([1]), "s.json", graph)


def test_a_model_whose_nodes_are_nonsense() -> None:
    """Metadata may hold anything, and then the ids are unknown."""
    for table in ({"a": 7}, {"a": [[1]]}, {"a": None}):
        metadata = {"nodes": table, "parameters": 5, "dropped": {"x": 1}}
        graph = CostGraph.build(name="g", time_unit="ms", ops=[Op("a", 1)], tensors=[], metadata=metadata)
        with pytest.raises(InputError, match="the model has no node 1"):
            stages_of_split(_split([1]), "s.json", graph)
