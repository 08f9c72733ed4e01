"""Every pair of formats that carry a whole graph: from one into the other, and nothing changes on the way."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from graph_strategies import graphs
from hypothesis import given, settings

from mtpp.errors import UnrecognisedInput
from mtpp.formats.graphs.graph_format import GraphFormat
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.graphs.registry import FORMATS
from mtpp.formats.io.source import Source, read_source
from mtpp.inference.graph import CostGraph, Op, Tensor

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


def assert_equal(one: CostGraph, other: CostGraph) -> None:
    """Compare two graphs field by field, orders included."""
    for field in ("name", "time_unit", "op_names", "op_kinds", "work", "tensor_names", "transfer", "metadata"):
        assert getattr(one, field) == getattr(other, field), field
    for field in ("param_bytes", "tensor_producer", "consumer_offsets", "consumers", "tensor_bytes"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field


def test_which_formats_carry_a_whole_graph() -> None:
    """All that are both read and written; the rest of this module is about them."""
    assert [entry.name for entry in WHOLE] == ["native", "node-link", "graphml"]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda entry: entry.name)
@settings(max_examples=30)
@given(graph=graphs(max_ops=8))
def test_random_graphs(first: GraphFormat, second: GraphFormat, graph: CostGraph) -> None:
    """Hyperedges, parallel tensors, tensors that nobody reads, unknown sizes and decimals come through both."""
    assert_equal(_copy(_copy(graph, first), second), graph)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda entry: entry.name)
def test_names_and_numbers_that_are_hard_to_write(first: GraphFormat, second: GraphFormat) -> None:
    """Quotes, markup, line ends of every kind, and blanks at both ends are part of a name."""
    assert_equal(_copy(_copy(HARD, first), second), HARD)


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
        assert_equal(copy, graph)
    assert read >= 40
