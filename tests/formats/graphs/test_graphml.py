"""GraphML: what is read, what is refused, and what other programs see. Round trips are in test_every_pair."""

from __future__ import annotations

import io
from fractions import Fraction

import networkx as nx
import pytest
from given_plans import given_plan
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.graphs.graphml import write_graphml, write_graphml_stages
from mtpp.formats.graphs.graphml_reader import looks_like_graphml, read_graphml
from mtpp.formats.graphs.native import write_native
from mtpp.formats.graphs.recognise import recognise
from mtpp.formats.io.source import Source
from mtpp.inference.graph import CostGraph, Op, Tensor

GRAPH = CostGraph.build(
    name="g",
    time_unit="ms",
    ops=[Op("a", Fraction(1, 8), "Conv", 9), Op("b", 2), Op("c", 3)],
    tensors=[
        Tensor("t", "a", ("b", "c"), bytes=8),
        Tensor("u", "b", ("c",), transfer=4),
        Tensor("v", "c", (), bytes=1),
    ],
)

HEAD = (
    '<graphml><key id="w" for="node" attr.name="work"/><key id="t" for="edge" attr.name="tensor"/>'
    '<key id="b" for="node" attr.name="bytes"/>'
    '<key id="m" for="graph" attr.name="metadata"/><key id="u" for="graph" attr.name="unread"/>'
)


def test_networkx_reads_what_is_written() -> None:
    """Nodes are called as the ops are, and every use of a tensor is an edge."""
    digraph = nx.read_graphml(io.BytesIO(write_graphml(GRAPH).encode()))
    assert dict(digraph.nodes(data=True))["a"] == {"label": "a", "kind": "Conv", "work": 0.125, "param_bytes": 9}
    assert sorted((u, v, data["tensor"]) for u, v, data in digraph.edges(data=True)) == [
        ("a", "b", "t"),
        ("a", "c", "t"),
        ("b", "c", "u"),
    ]
    assert (digraph.graph["name"], digraph.graph["time_unit"]) == ("g", "ms")


def test_stages_are_data_and_colours_of_nodes() -> None:
    """Other programs see the stage and one colour per stage; the graph that is read back is the one without them."""
    text = write_graphml_stages(given_plan(GRAPH, [0, 1, 1]))
    nodes = dict(nx.read_graphml(io.BytesIO(text.encode())).nodes(data=True))
    assert [nodes[op]["stage"] for op in "abc"] == [0, 1, 1]
    colours = [(nodes[op]["r"], nodes[op]["g"], nodes[op]["b"]) for op in "abc"]
    assert colours[0] != colours[1] == colours[2]
    assert "#{:02x}{:02x}{:02x}".format(*colours[0]) in text
    assert write_native(read_graphml(text.encode(), "x")) == write_native(GRAPH)


def test_a_graph_of_another_program() -> None:
    """What networkx writes of nodes with the papers' attributes means what node-link data mean."""
    digraph = nx.DiGraph(time_unit="ms")
    digraph.add_node("a", work=0.1, size_out=100, size_param=7, colour="red")
    digraph.add_node("b", work=3)
    digraph.add_node("c", work=2.5)
    digraph.add_edges_from([("a", "b"), ("a", "c")], weight=1.5)
    buffer = io.BytesIO()
    nx.write_graphml(digraph, buffer)
    graph = read_graphml(buffer.getvalue(), "x", name="file")
    assert (graph.name, graph.time_unit, graph.work) == ("file", "ms", (Fraction(1, 10), 3, Fraction(5, 2)))
    assert graph.tensor_bytes.tolist() == [100]
    assert graph.tensor_consumers(0).tolist() == [1, 2]
    assert graph.param_bytes.tolist() == [7, 0, 0]


def test_defaults_and_drawings() -> None:
    """A key's default counts where a node says nothing; drawings in other namespaces are passed over."""
    text = (
        '<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">'
        '<g:key id="w" for="node" attr.name="work"><g:default>5</g:default></g:key><g:key id="y" for="node"/>'
        '<g:graph edgedefault="directed"><g:node id="a"/><g:node id="b"><g:data key="w"><![CDATA[1.50]]></g:data>'
        '<g:data key="y"><y:ShapeNode><y:node id="z"/>text</y:ShapeNode></g:data></g:node></g:graph></g:graphml>'
    )
    graph = read_graphml(text.encode("utf-16"), "x")
    assert (graph.op_names, graph.work) == (("a", "b"), (5, Fraction(3, 2)))
    assert looks_like_graphml(text.encode("utf-16"))


@pytest.mark.parametrize("name", ["bell\x07", "\ufffe", "\x00"])
def test_names_that_xml_cannot_hold(name: str) -> None:
    """They are refused, since escapes for them would be names themselves."""
    graph = CostGraph.build(name="g", time_unit="1", ops=[Op("a", 1), Op(name, 1)], tensors=[])
    with pytest.raises(InputError, match=r"op 1: .* holds the character U\+[0-9A-F]{4}, which XML cannot hold"):
        write_graphml(graph)


def _body(body: str, edgedefault: str = "directed") -> str:
    return f'{HEAD}\n<graph edgedefault="{edgedefault}">\n{body}\n</graph></graphml>'


def _data(key: str, text: str) -> str:
    return f'<data key="{key}">{text}</data>'


_AB = '<node id="a"><data key="w">1</data></node>\n<node id="b"><data key="w">1</data></node>\n'
_BOMB = '<!DOCTYPE graphml [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + _body("&b;")
_FILE = '<!DOCTYPE graphml [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + _body("&a;")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_BOMB, "x: line 1: a document type (<!DOCTYPE>), whose entities might be anything; remove it"),
        (_FILE, "x: line 1: a document type"),
        ("<graphml>", "x: line 1, column 10: no well-formed XML: no element found"),
        ("<graphml/>", "x: no <graph> in it"),
        (_body("<node/>"), "x: line 3: <node> without id"),
        (_body('<node id="a"/>'), "x: line 3: missing key 'work'"),
        (_body('<node id="a"><data key="w">x</data></node>'), "x: line 3: work: 'x' is not a number"),
        (_body('<node id="a"><data key="w">-1</data></node>'), "x: line 3, work: "),
        (_body('<node id="a"><data key="z">1</data></node>'), "x: line 3: no <key> has the id 'z'"),
        (_body(_AB + '<edge source="a" target="z"/>'), "x: line 5, target: no node has the id 'z'"),
        (_body(_AB + '<edge source="a" target="a"/>'), "x: line 5: the edge leads from node 'a' to itself"),
        (_body(_AB + '<edge source="a" target="b" directed="false"/>'), "x: line 5: the edge is not directed"),
        (_body(_AB, "undirected"), "x: line 2: the graph is not directed"),
        (_body(_AB + "<graph/>"), "x: line 5: a second graph, or a graph inside another"),
        (_body(_AB + "<hyperedge/>"), "x: line 5: a <hyperedge>"),
        (
            _body(_AB + '<edge source="a" target="b"><data key="t">t</data></edge>\n<edge source="b" target="a"/>'),
            "x: line 6: an edge without tensor, though others have one",
        ),
        (
            _body(_AB + '<edge source="a" target="b"><data key="t">t</data></edge>'),
            "x: tensor 't': the tensor has no cost",
        ),
        (
            _body(_data("m", "{") + _AB),
            "x: metadata, line 1, column 2: not valid JSON",
        ),
        (_body(_AB + _AB), "x: line 5, id: duplicate id 'a', first used at line 3"),
        (
            _body('<node id="a"><data key="w">1</data><data key="b">1</data></node>'),
            "x: line 3: bytes without transfer in a graph without a time unit; give the graph the data",
        ),
        (_body(_data("u", "[[0, 1]]") + _AB), "x: unread: a row is not [place in the list of tensors, name"),
        (
            _body(_data("u", '[[0, "t", "a", 1, null], [1, "t", "a", 1, null]]') + _AB),
            "x: unread: tensor 't' is listed twice",
        ),
        (_body(_data("u", '[[0, "t", "z", 1, null]]') + _AB), "x: tensor 't', producer: no node has the id 'z'"),
        ("<?xml version='1.0' encoding='nonsense'?>" + _body(_AB), "x: "),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    """One line says where and what."""
    assert str(refusal(read_graphml, text.encode(), "x")).startswith(message)


def test_places_beyond_the_end() -> None:
    """Tensors that no op reads come last then, however large the number is."""
    text = write_graphml(GRAPH)
    beyond = text.replace(">[[2, ", f">[[{10**30}, ")
    assert beyond != text
    assert read_graphml(beyond.encode(), "x").tensor_names == GRAPH.tensor_names


def test_it_is_recognised_by_content() -> None:
    """Whatever the suffix, and whatever stands before the first element; a file that is no GraphML is not."""
    text = "<?xml version='1.0'?>\n<!-- a -- > <graphml> -->\n" + _body(_AB)
    assert recognise(Content(Source("a.json", text.encode(), "", None))).name == "graphml"
    assert not looks_like_graphml(b"<svg><graphml></svg>")
    assert not looks_like_graphml(b"<!---->" * 500 + b"<svg>")
