"""Which format a file is in, and which one a file is written in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.graph_format import Content
from mtpp.formats.graphs.native import write_native
from mtpp.formats.graphs.node_link import write_node_link
from mtpp.formats.graphs.recognise import read_graph, recognise, writer_for
from mtpp.formats.graphs.registry import FORMATS
from mtpp.formats.io.source import Source
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.names import FORMATS_READ, FORMATS_WRITTEN

GRAPH = CostGraph.build(
    name="g", time_unit="ms", ops=[Op("a", 1), Op("b", 2)], tensors=[Tensor("t", "a", ("b",), bytes=8)]
)


def _source(text: str | bytes, name: str = "file.json") -> Source:
    data = text.encode() if isinstance(text, str) else text
    return Source(name, data, "", None if name == "-" else Path(name))


@pytest.mark.parametrize("name", ["file.json", "file.onnx", "file", "-"])
def test_content_comes_first(name: str) -> None:
    """The suffix says nothing where the content is clear."""
    assert recognise(Content(_source(write_native(GRAPH), name))).name == "native"
    assert recognise(Content(_source("\n " + write_node_link(GRAPH), name))).name == "node-link"
    assert recognise(Content(_source(b"\xef\xbb\xbf" + write_native(GRAPH).encode(), name))).name == "native"


def test_the_readers_agree() -> None:
    """Both JSON formats give the same graph."""
    one, other = (read_graph(_source(write(GRAPH))) for write in (write_native, write_node_link))
    assert write_native(one) == write_native(other) == write_native(GRAPH)


def test_a_graph_without_a_name_is_called_after_its_file() -> None:
    """The suffixes are left out, and standard input has a name too."""
    text = '{"directed": true, "nodes": [{"id": 1, "work": 1}], "edges": []}'
    names = [read_graph(_source(text, name)).name for name in ("dir/model.json.gz", "a.b.nodelink", "-")]
    assert names == ["model", "a.b", "stdin"]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (
            "hello",
            "a.txt",
            "a.txt: in no format of graphs; give a graph in one of: native, placement, piper, node-link, ",
        ),
        ("hello", "a.json", "a.json: line 1, column 1: not valid JSON: expecting value"),
        ("[]", "a", "a: /: not a graph: neither the key 'format' nor 'nodes' and 'edges'; give \"format\": "),
        ('{"format": [1]}', "a", "a: /format: unknown format an array; a graph has"),
        ('{"format": "mtpp-plan"}', "a", "a: /format: a plan, not a graph; give the graph it was made from"),
    ],
)
def test_what_is_no_graph(text: str, name: str, message: str) -> None:
    """The message says what the file is, or lists what it could be."""
    assert str(refusal(read_graph, _source(text, name))).startswith(message)


def test_a_format_can_be_forced() -> None:
    """With a format given, its reader has the last word; an unknown one is refused with the known ones."""
    assert read_graph(_source(write_native(GRAPH)), from_format="native").op_count == 2
    with pytest.raises(InputError, match="missing key 'directed'"):
        read_graph(_source(write_native(GRAPH)), from_format="node-link")
    with pytest.raises(InputError, match="from_format: unknown format 'gexf'; use one of native, placement, piper, "):
        read_graph(_source(write_native(GRAPH)), from_format="gexf")


def test_dimensions_are_for_onnx() -> None:
    """A flag that would do nothing is an error."""
    with pytest.raises(InputError, match="dims: has no effect on a native graph"):
        read_graph(_source(write_native(GRAPH)), dims={"batch": 1})


@pytest.mark.parametrize(
    ("path", "to", "name"),
    [
        ("a.json", None, "native"),
        ("a.json.GZ", None, "native"),
        ("-", None, "native"),
        ("a", None, "native"),
        ("a.nodelink", None, "node-link"),
        ("a.nodelink.gz", None, "node-link"),
        ("a.graphml", None, "graphml"),
        ("a.gv", None, "dot"),
        ("a.csv", None, "csv"),
        ("a.json", "node-link", "node-link"),
    ],
)
def test_writers(path: str, to: str | None, name: str) -> None:
    """The name given wins, then the suffix, then the native format."""
    assert writer_for(path, to).name == name


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (
            "a.onnx",
            None,
            "onnx files can be read, not written; choose to native or node-link or graphml or dot or csv",
        ),
        ("a.xyz", None, "no format goes with the suffix '.xyz'"),
        ("a.json", "onnx", "to: unknown format 'onnx'; use one of native, node-link"),
    ],
)
def test_formats_that_are_not_written(path: str, to: str | None, message: str) -> None:
    """The message lists the formats that are."""
    with pytest.raises(InputError, match=message):
        writer_for(path, to)


def test_the_registry_is_consistent() -> None:
    """Names belong to one format each, and so do suffixes that decide."""
    assert {"native", "placement", "piper", "node-link", "pipedream", "tensorflow", "onnx"} <= set(FORMATS_READ)
    assert {"native", "node-link"} <= set(FORMATS_WRITTEN)
    assert len(set(FORMATS_READ)) == len(FORMATS_READ)
    suffixes = [suffix for entry in FORMATS for suffix in entry.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"time_unit": "ms"},
            "time_unit: has no effect on a native graph: file.json; leave it out; ",
        ),
        ({"backward": True}, "backward: has no effect on a native graph"),
        ({"loading_time": True}, "loading_time: has no effect on a native graph"),
        ({"time_unit": "h"}, "time_unit: unknown unit of time 'h'; use one of ps, ns, us, ms, s"),
    ],
)
def test_options_for_other_formats(options: dict[str, Any], message: str) -> None:
    """A flag that would do nothing is an error, unless it may be meant for another model of several."""
    assert str(refusal(read_graph, _source(write_native(GRAPH)), **options)).startswith(message)
    if options.get("time_unit") != "h":
        assert read_graph(_source(write_native(GRAPH)), spare_dims=True, **options).op_count == 2


def test_a_unit_of_time_for_data_without_one() -> None:
    """Node-link data need not name it."""
    text = '{"directed": true, "nodes": [{"id": 1, "work": 1}], "edges": []}'
    assert read_graph(_source(text), time_unit="ms").time_unit == "ms"


def test_a_split_is_no_graph() -> None:
    """The message says what it is for."""
    with pytest.raises(InputError, match=r"/fpgas: a split .*; give it to `mtpp evaluate MODEL --assignment`"):
        read_graph(_source('{"fpgas": [], "cpus": []}'))


def test_assumptions_are_said() -> None:
    """In one line, and only by the reader that made them."""
    said: list[str] = []
    nodes = [{"id": 1, "fpgaLatency": 1, "isBackwardNode": flag} | {"id": 1 + flag} for flag in (0, 1)]
    graph = read_graph(_source(json.dumps({"nodes": nodes, "edges": []}), "w.json"), warn=said.append)
    assert said == ["w.json: 1 backward nodes left out"]
    read_graph(_source(write_native(graph)), warn=said.append)
    assert len(said) == 1
