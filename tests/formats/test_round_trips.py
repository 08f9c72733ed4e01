"""What is written can be read, and nothing changes on the way."""

from __future__ import annotations

import gzip
import hashlib
import json
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from graph_strategies import graphs
from hypothesis import given

from mtpp.errors import InputError
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.node_link import read_node_link, write_node_link
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.io.sink import write_text_atomically
from mtpp.formats.io.source import read_source
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.system import load_system


def _assert_equal(one: CostGraph, other: CostGraph) -> None:
    for field in ("name", "time_unit", "op_names", "op_kinds", "work", "tensor_names", "transfer", "metadata"):
        assert getattr(one, field) == getattr(other, field), field
    for field in ("param_bytes", "tensor_producer", "consumer_offsets", "consumers", "tensor_bytes"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field


@given(graphs(max_ops=8))
def test_native(graph: CostGraph) -> None:
    """The native format carries everything, exact decimals included."""
    _assert_equal(read_native(write_native(graph).encode(), "x"), graph)


@given(graphs(max_ops=8))
def test_node_link(graph: CostGraph) -> None:
    """Node-link JSON carries hyperedges too, and networkx reads it."""
    text = write_node_link(graph)
    _assert_equal(read_node_link(text.encode(), "x"), graph)
    digraph = nx.node_link_graph(json.loads(text), edges="edges")
    assert list(digraph.nodes) == list(graph.op_names)


def test_node_link_made_by_networkx() -> None:
    """A file that networkx wrote from the papers' attributes is read as one tensor per op."""
    digraph = nx.DiGraph(time_unit="ms")
    digraph.add_node(1, work=0.1, size_out=100, size_param=7)
    digraph.add_node(2, work=3, size_out=50)
    digraph.add_node(3, work=2.5)
    digraph.add_edges_from([(1, 2), (1, 3)])
    for key in ("edges", "links"):
        document = nx.node_link_data(digraph, edges=key)
        graph = read_node_link(json.dumps(document).encode(), "x", name="from networkx")
        assert (graph.name, graph.time_unit, graph.op_names) == ("from networkx", "ms", ("1", "2", "3"))
        assert graph.work == (Fraction(1, 10), 3, Fraction(5, 2))
        assert graph.tensor_bytes.tolist() == [100, 50]
        assert graph.tensor_consumers(0).tolist() == [1, 2]
        assert graph.param_bytes.tolist() == [7, 0, 0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e3", 1000),
        ("12.50", Fraction(25, 2)),
        ("-0.000001", Fraction(-1, 10**6)),
        ("123456789012345678901234567890.5", Fraction(246913578024691357802469135781, 2)),
    ],
)
def test_decimals_are_exact(text: str, value: Fraction | int) -> None:
    """Numbers are read as the decimals they are written as, and written back without loss."""
    assert parse_json(text.encode(), "x") == value
    assert parse_json(dump_json(value).encode(), "x") == value


def test_a_fraction_that_is_no_decimal_is_refused() -> None:
    """A third cannot be written exactly, so it is not written."""
    with pytest.raises(InputError, match="no finite decimal"):
        dump_json(Fraction(1, 3))


def test_units_of_time_are_only_a_way_of_writing(tmp_path: Path) -> None:
    """The same graph as text in s, ms, us, ns and ps is the same instance."""
    ticks = []
    for unit, work, transfer in (
        ("s", "0.0000123456", "1.5e-6"),
        ("ms", "0.0123456", "0.0015"),
        ("us", "12.3456", "1.5"),
        ("ns", "12345.6", "1500"),
        ("ps", "12345600", "1500000"),
    ):
        text = (
            f'{{"format": "mtpp-graph", "version": 1, "name": "g", "time_unit": "{unit}", '
            f'"ops": [{{"name": "a", "work": {work}}}, {{"name": "b", "work": 0}}], '
            f'"tensors": [{{"name": "t", "producer": "a", "consumers": ["b"], "transfer": {transfer}}}]}}'
        )
        instance = Instance.build(read_native(text.encode(), "x"), load_system(), 2)
        ticks.append((instance.work.tolist(), instance.transfer.tolist()))
    assert ticks == [([12345600, 0], [1500000])] * 5


def test_native_has_one_op_and_one_tensor_per_line() -> None:
    """Differences between two versions of a graph can be read."""
    graph = CostGraph.build(
        name="g", time_unit="1", ops=[Op("a", 1), Op("b", 2)], tensors=[Tensor("t", "a", ("b",), transfer=3)]
    )
    lines = [line.strip().rstrip(",") for line in write_native(graph).splitlines()]
    assert '{"name": "b", "work": 2}' in lines
    assert '{"name": "t", "producer": "a", "consumers": ["b"], "transfer": 3}' in lines


def test_gzip_is_recognised_by_content_and_hashed_as_stored(tmp_path: Path) -> None:
    """The suffix does not matter for reading; the digest is that of the file on disk."""
    graph = CostGraph.build(name="g", time_unit="1", ops=[Op("a", 1)], tensors=[])
    packed = gzip.compress(write_native(graph).encode())
    path = tmp_path / "graph.json"
    path.write_bytes(packed)
    source = read_source(str(path))
    assert source.sha256 == hashlib.sha256(packed).hexdigest()
    _assert_equal(read_graph(source), graph)


def test_content_decides_where_the_suffix_lies(tmp_path: Path) -> None:
    """A native graph in a file called .onnx is read as what it is."""
    graph = CostGraph.build(name="g", time_unit="1", ops=[Op("a", 1)], tensors=[])
    path = tmp_path / "graph.onnx"
    path.write_text(write_native(graph))
    _assert_equal(read_graph(read_source(str(path))), graph)
    with pytest.raises(InputError, match="graph"):
        read_graph(read_source(str(path)), from_format="node-link")


def test_writing_is_atomic(tmp_path: Path) -> None:
    """A name that cannot be replaced leaves the old content and no temporary file."""
    path = tmp_path / "file.json"
    write_text_atomically(path, "old")
    write_text_atomically(path, "new")
    assert path.read_text() == "new"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="directory"):
        write_text_atomically(folder, "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file.json", "folder"]


def test_the_size_limit_holds_before_and_after_decompression(tmp_path: Path) -> None:
    """A limit of exactly the size passes, one byte less does not."""
    plain, packed = tmp_path / "a.json", tmp_path / "b.json.gz"
    plain.write_bytes(b"x" * 1000)
    packed.write_bytes(gzip.compress(b"x" * 1000))
    for path in (plain, packed):
        assert read_source(str(path), max_bytes=1000).data == b"x" * 1000
        with pytest.raises(InputError, match="max_input_size"):
            read_source(str(path), max_bytes=999)
