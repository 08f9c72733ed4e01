"""DOT: the text is parsed by a small parser of the language, and says what the graph says."""

from __future__ import annotations

import re

import pytest
from given_plans import given_plan
from graph_strategies import random_graph

from mtpp.errors import InputError
from mtpp.formats.graphs.dot import (
    looks_like_dot,
    write_dot,
    write_dot_module_stages,
    write_dot_modules,
    write_dot_stages,
)
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import Source
from mtpp.inference.graph import CostGraph, Op, Tensor

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[{}\[\];=,]|[A-Za-z0-9_]+)', re.DOTALL)

GRAPH = CostGraph.build(
    name='g "x"',
    time_unit="us",
    ops=[Op('a\\N"q"', 1, "Conv"), Op("b&lt;\n\x00", 2), Op("c", 3)],
    tensors=[Tensor("t", 'a\\N"q"', ("b&lt;\n\x00", "c"), bytes=2048), Tensor("u", "b&lt;\n\x00", ("c",), transfer=4)],
)


class Drawing:
    """What a text in DOT says: nodes, edges and clusters; only what the grammar allows is taken."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.clusters: dict[str, list[str]] = {}
        self.cluster_labels: dict[str, str] = {}
        self._tokens, end = [], 0
        while found := _TOKEN.match(text, end):
            self._tokens.append(found[1])
            end = found.end()
        assert not text[end:].strip(), text[end : end + 80]
        self._tokens.reverse()
        assert self._next() == "digraph"
        self.name = self._next()
        self._block("")
        assert not self._tokens

    def _next(self, *expected: str) -> str:
        token = self._tokens.pop()
        assert not expected or token in expected, (token, expected)
        return token

    def _block(self, cluster: str) -> None:
        self._next("{")
        while (token := self._next()) != "}":
            if token == "subgraph":
                name = self._next()
                self.clusters[name] = []
                self._block(name)
                continue
            if self._tokens[-1] == "=":
                self._next("=")
                if token == "label":
                    self.cluster_labels[cluster] = self._next()
                else:
                    self._next()
            elif self._tokens[-1] == "->":
                self._next("->")
                self.edges.append((token, self._next(), self._attributes()))
            elif token in ("node", "edge"):
                self._attributes()
            else:
                assert token not in self.nodes
                self.nodes[token] = self._attributes()
                if cluster:
                    self.clusters[cluster].append(token)
            self._next(";")

    def _attributes(self) -> dict[str, str]:
        self._next("[")
        found = {}
        while True:
            key = self._next()
            self._next("=")
            found[key] = self._next()
            if self._next(",", "]") == "]":
                return found


def test_boxes_and_edges_say_name_kind_time_and_size() -> None:
    """Quotes, backslashes, entities and control characters show as they are; an unknown size gives way to a time."""
    drawing = Drawing(write_dot(GRAPH))
    assert drawing.name == r'"g \"x\""'
    labels = [node["label"] for node in drawing.nodes.values()]
    assert labels == [r'"a\\N\"q\"\nConv\n1.000 µs"', r'"b&amp;lt;\\x0a\\x00\n2.000 µs"', r'"c\n3.000 µs"']
    assert drawing.edges == [
        ("n0", "n1", {"label": '"2 KiB"'}),
        ("n0", "n2", {"label": '"2 KiB"'}),
        ("n1", "n2", {"label": '"4.000 µs"'}),
    ]


@pytest.mark.parametrize(("time_unit", "shown"), [("ms", "1,000,000,000,000,000 s"), ("1", "1000000000000000000")])
def test_costs_beyond_all_numbers(time_unit: str, shown: str) -> None:
    """A drawing shows a large one: what cannot be computed with can still be looked at."""
    graph = CostGraph.build(name="g", time_unit=time_unit, ops=[Op("a", 10**400), Op("b", 10**308)], tensors=[])
    assert write_dot(graph).count(shown) == 2


def test_stages_are_clusters() -> None:
    """Each op is in the cluster of its stage, edges between them stand out, and an empty stage draws nothing."""
    drawing = Drawing(write_dot_stages(given_plan(GRAPH, [0, 2, 2])))
    assert drawing.clusters == {"cluster_0": ["n0"], "cluster_2": ["n1", "n2"]}
    assert drawing.cluster_labels["cluster_0"].startswith('"stage 0: 1 op, 1.0')
    assert [edge[2].get("style") for edge in drawing.edges] == ["bold", "bold", None]


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs(seed: int) -> None:
    """There is one box per op and one edge per use of a tensor, with stages as without."""
    graph = random_graph(seed, 30, time_unit="1" if seed % 2 else "ms")
    stages = [0] * 30
    for drawing in (Drawing(write_dot(graph)), Drawing(write_dot_stages(given_plan(graph, stages)))):
        assert sorted(drawing.nodes) == sorted(f"n{v}" for v in range(30))
        sources, targets = graph.edges
        expected = [(f"n{u}", f"n{v}") for u, v in zip(sources.tolist(), targets.tolist(), strict=True)]
        assert [edge[:2] for edge in drawing.edges] == expected


def test_it_is_not_read() -> None:
    """The message says what the file is."""
    assert not looks_like_dot(b"/**/" * 900 + b"x")
    with pytest.raises(InputError, match="a: dot files are written, not read; give the graph in one of: native"):
        read_graph(Source("a", write_dot(GRAPH).encode(), "", None))


@pytest.mark.parametrize("k", [None, 3])
def test_modules_are_boxes(k: int | None) -> None:
    """Nodes stand for ops of one module and stage, edges for tensors between them; ops without one are themselves."""
    graph, modules = random_graph(5, 40), ["in", "a.b", "out"]
    module_of = [None if v % 5 == 0 else v % 3 for v in range(graph.op_count)]
    stages = [0] * graph.op_count
    if k is None:
        drawing = Drawing(write_dot_modules(graph, modules, module_of))
    else:
        for position, v in enumerate(graph.order):
            stages[v] = position * k // graph.op_count
        drawing = Drawing(write_dot_module_stages(given_plan(graph, stages), modules, module_of))
    names = [
        name if module is None else modules[module] for name, module in zip(graph.op_names, module_of, strict=True)
    ]
    boxes = list(zip(stages, names, strict=True))
    stage_of = {node: int(name.removeprefix("cluster_")) for name, nodes in drawing.clusters.items() for node in nodes}
    box_of = {
        node: (stage_of.get(node, 0), attributes["label"].strip('"').split("\\n")[0])
        for node, attributes in drawing.nodes.items()
    }
    assert sorted(box_of.values()) == sorted(set(boxes))
    flows = {
        (boxes[graph.tensor_producer[t]], boxes[v])
        for t in range(graph.tensor_count)
        for v in graph.tensor_consumers(t).tolist()
    }
    assert sorted((box_of[source], box_of[target]) for source, target, _ in drawing.edges) == sorted(
        (source, target) for source, target in flows if source != target
    )


def test_a_tensor_with_two_readers_in_a_module_flows_once() -> None:
    """Its bytes are not counted again; where a size is not known, none is told."""
    tensors = [Tensor("t", "a", ("b", "c"), bytes=2048), Tensor("u", "a", ("b",), bytes=1024)]
    ops = [Op("a", 1), Op("b", 2), Op("c", 3)]
    graph = CostGraph.build(name="g", time_unit="us", ops=ops, tensors=tensors)
    drawing = Drawing(write_dot_modules(graph, ["x", "y"], [0, 1, 1]))
    assert [edge[2]["label"] for edge in drawing.edges] == ['"3 KiB"']
    assert drawing.nodes["n1"]["label"] == '"y\\n2 ops\\n5.000 µs"'
    unknown = CostGraph.build(
        name="g", time_unit="us", ops=ops, tensors=[*tensors, Tensor("v", "a", ("c",), transfer=1)]
    )
    assert [edge[2]["label"] for edge in Drawing(write_dot_modules(unknown, ["x", "y"], [0, 1, 1])).edges] == ['""']
