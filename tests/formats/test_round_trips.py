"""Writing and reading, through every pair of formats, nothing changes; files that expand too far are refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from graph_strategies import graphs
from hypothesis import given, settings
from onnx_text import built
from processes import environment

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats.graphs.graph_format import GraphFormat
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.node_link import read_node_link, write_node_link
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.graphs.registry import FORMATS
from mtpp.formats.io.json_text import dump_json, parse_json
from mtpp.formats.io.sink import write_text_atomically
from mtpp.formats.io.source import Source, read_source
from mtpp.formats.onnx import read_onnx
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device


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
        instance = Instance.build(read_native(text.encode(), "x"), Machine.uniform(2, load_device()))
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


WHOLE = tuple(entry for entry in FORMATS if entry.read and entry.write)
PAIRS = tuple(permutations(WHOLE, 2))

HARD = CostGraph.build(
    name='a "hard" <name> & one\twith\r\nlines',
    time_unit="us",
    ops=[
        Op("/layer.0/conv/Conv", 10**17, "Conv\n&<>'\"", 2**61),
        Op("  \\N {ö} 日本 \U0001f600  ", 0),
        Op("-->", 5, "]]>"),
        Op("&#10;&amp;", 7),
        Op("n0", 1),
    ],
    tensors=[
        Tensor("unread first", "n0", (), bytes=3),
        Tensor("to three", "/layer.0/conv/Conv", ("-->", "&#10;&amp;", "n0"), bytes=7),
        Tensor("\tparallel\n", "/layer.0/conv/Conv", ("n0",), bytes=None, transfer=0),
        Tensor("unread between", "n0", (), transfer=2),
        Tensor("both", "-->", ("n0",), bytes=0, transfer=12),
        Tensor("unread last", "-->", (), bytes=0),
    ],
    metadata={"nested": [1, None, True, {"é": "\x01"}], "number": 0.1},
)


def _copy(graph: CostGraph, into: GraphFormat) -> CostGraph:
    assert into.write is not None
    data = into.write(graph).encode()
    return read_graph(Source("x", data, "", None))


def test_which_formats_carry_a_whole_graph() -> None:
    """All that are both read and written."""
    assert [entry.name for entry in WHOLE] == ["native", "node-link", "graphml"]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda entry: entry.name)
@settings(max_examples=30)
@given(graph=graphs(max_ops=8))
def test_random_graphs(first: GraphFormat, second: GraphFormat, graph: CostGraph) -> None:
    """Hyperedges, parallel tensors, tensors that nobody reads, unknown sizes and decimals come through both."""
    _assert_equal(_copy(_copy(graph, first), second), graph)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda entry: entry.name)
def test_names_and_numbers_that_are_hard_to_write(first: GraphFormat, second: GraphFormat) -> None:
    """Quotes, markup, line ends of every kind, and blanks at both ends are part of a name."""
    _assert_equal(_copy(_copy(HARD, first), second), HARD)


@pytest.mark.slow
def test_every_shared_file_goes_round(shared_data: Path) -> None:
    """Each real file, once read, goes through all whole formats one after the other and comes back the same."""
    read = 0
    for path in sorted(shared_data.rglob("*")):
        made_up = {"cases", "trust"}.intersection(path.relative_to(shared_data).parts)
        if made_up or path.suffix not in (".json", ".txt", ".onnx"):
            continue
        try:
            graph = read_graph(read_source(str(path)), spare_dims=True)
        except UnrecognisedInput:  # splits, and whatever lies beside the graphs
            continue

        read += 1
        copy = graph
        for entry in WHOLE:
            copy = _copy(copy, entry)
        _assert_equal(copy, graph)
    assert read >= 40


ON_LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system tells no peak of a process")

_PEAK = """
import sys
import mtpp
from mtpp.errors import MtppError
try:
    mtpp.read(sys.argv[1])
except MtppError as error:
    lines = open("/proc/self/status").read().splitlines()
    peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    print(error.exit_code, peak)
    print(error, file=sys.stderr)
"""


def _inspected(path: Path) -> tuple[int, int, str]:
    """Return the exit code for a file that cannot be read, the memory that it took in KiB, and the message.

    The system's own peak of that process: the one that ``getrusage`` tells starts with that of its parent.
    """
    command = [sys.executable, "-c", _PEAK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=300)
    code, peak = done.stdout.split()[-2:]
    return int(code), int(peak), done.stderr


def _crowded(filling: bytes) -> bytes:
    """Return a model of one node, with *filling* in its graph."""
    model = built("y = Relu(x)", {"x": [1]}, {"y": [1]}, opset=17)
    inner = model.graph.SerializeToString() + filling
    model.ClearField("graph")
    length, size = bytearray(), len(inner)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return model.SerializeToString() + b"\x3a" + bytes([*length, size]) + inner


FILLINGS = {
    "nodes": b"\x0a\x00",
    "nodes with an operator": b"\x0a\x03\x22\x01A",
    "initializers": b"\x2a\x00",
    "types": b"\x6a\x00",
}


@pytest.mark.parametrize("filling", FILLINGS)
def test_crowds_of_empty_messages_are_refused(filling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they are of, and with as many as are always read they are."""
    monkeypatch.setattr("mtpp.formats.onnx.loading._FEWEST_FIELDS", 5_000)
    with pytest.raises(InputError, match="most of them are empty"):
        read_onnx(None, _crowded(FILLINGS[filling] * 10_000), source="m", system=load_device())


def test_attributes_of_a_node_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages within messages take memory as well."""
    monkeypatch.setattr("mtpp.formats.onnx.loading._FEWEST_FIELDS", 5_000)
    node = b"\x22\x04Relu" + b"\x2a\x00" * 8_000
    length = bytes([len(node) & 0x7F | 0x80, len(node) >> 7])
    with pytest.raises(InputError, match="most of them are empty"):
        read_onnx(None, _crowded(b"\x0a" + length + node), source="m", system=load_device())


@ON_LINUX
@pytest.mark.slow
def test_six_megabytes_of_empty_nodes_take_little_memory(tmp_path: Path) -> None:
    """Three million of them are refused at less than a gigabyte."""
    path = tmp_path / "crowded.onnx"
    path.write_bytes(_crowded(FILLINGS["nodes"] * 3_000_000))
    code, peak, said = _inspected(path)
    assert code == 2
    assert "most of them are empty" in said
    assert peak < 1 << 20


@ON_LINUX
def test_an_archive_of_zeros_is_refused_with_its_size(tmp_path: Path) -> None:
    """A megabyte that says that it unpacks to 1.2 GB is not unpacked."""
    path = tmp_path / "zeros.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("m/archive_format", "pt2")
        with written.open("m/models/model.json", "w") as file:
            for _ in range(100):
                file.write(bytes(1_000_000))
    # Zeros deflate to a thousandth: the directory says twelve times as much.
    data = bytearray(path.read_bytes())
    size = (100_000_000).to_bytes(4, "little")
    while (place := data.find(size)) >= 0:
        data[place : place + 4] = (1_200_000_000).to_bytes(4, "little")
    path.write_bytes(data)
    code, peak, said = _inspected(path)
    assert code == 2
    assert "unpacks to 1.118 GiB (1,200,000,003 bytes)" in said
    assert peak < 300 << 10
