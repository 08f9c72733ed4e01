"""PipeDream's profiles: nodes and edges by line, data loading left out, lists of sizes."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.node_link import read_node_link, write_node_link
from mtpp.formats.graphs.pipedream import read_pipedream
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.io.source import Source, read_source
from mtpp.inference.graph import CostGraph

MODELS = ["alexnet", "densenet121", "gnmt", "inception_v3", "nasnetamobile", "resnet18", "resnet50", "squeezenet1_0"]


def _line(name: str, what: str = "ReLU()", forward: str = "1.5", backward: str = "2", size: str = "8.000") -> str:
    times = f"forward_compute_time={forward}, backward_compute_time={backward}"
    return f"{name} -- {what} -- {times}, activation_size={size}, parameter_size=4.000"


def _read(*lines: str, **options: bool) -> CostGraph:
    return read_pipedream("\n".join(lines).encode(), "graph.txt", **options)


def test_nodes_and_edges() -> None:
    """Forward times in milliseconds, one tensor for all readers, the kind from the description."""
    graph = _read(
        _line("node1", "Conv2d(3, 64) -- odd"), _line("node2"), _line("node3"), "\tnode1 -- node2", "\tnode1 -- node3"
    )
    assert (graph.time_unit, graph.work) == ("ms", (Fraction(3, 2),) * 3)
    assert graph.op_kinds == ("Conv2d", "ReLU", "ReLU")
    assert graph.param_bytes.tolist() == [4, 4, 4]
    assert graph.tensor_names == ("node1", "node2", "node3")
    assert graph.tensor_bytes.tolist() == [8, 8, 8]
    assert [graph.op_names[v] for v in graph.tensor_consumers(0)] == ["node2", "node3"]


def test_loading_data_takes_no_time() -> None:
    """The time of an Input node is left out and said, unless it is to count; other sources keep theirs."""
    lines = (_line("node1", "Input", "636", "0"), _line("node2"), _line("node3", "InputLayer()"), "\tnode1 -- node2")
    graph = _read(*lines)
    assert graph.work == (0, Fraction(3, 2), Fraction(3, 2))
    assert graph.metadata["assumptions"] == ["loading data takes no time: 636.0 ms of node1 left out"]
    kept = _read(*lines, loading_time=True)
    assert (kept.work[0], kept.metadata["assumptions"]) == (636, [])


def test_the_backward_pass() -> None:
    """It adds its time, and a gradient as large as each tensor that is read."""
    graph = _read(_line("a1"), _line("a2"), "\ta1 -- a2", backward=True)
    assert graph.work == (Fraction(7, 2),) * 2
    assert graph.tensor_names == ("a1", "gradient of a1", "a2")
    assert graph.tensor_bytes.tolist() == [8, 8, 8]


def test_several_outputs_go_together() -> None:
    """A list of sizes is one tensor of all of them."""
    assert _read(_line("node1", size="[6.0; 2.5; 1.0]")).tensor_bytes.tolist() == [10]


def test_what_the_optimizer_appends() -> None:
    """Numbers of stages are passed over, and so are carriage returns and blank lines."""
    graph = _read(_line("node1") + " -- stage_id=2\r", "", _line("node2") + " -- stage_id=3\r", "\tnode1 -- node2\r")
    assert (graph.op_names, len(graph.consumers)) == (("node1", "node2"), 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "graph.txt: the profile has no nodes"),
        (["\ta -- b"], "graph.txt: the profile has no nodes"),
        (["node1 -- ReLU"], "graph.txt: line 1: not the line of a node"),
        ([_line("a")[:-15]], "graph.txt: line 1: 'param' is none of forward_compute_time"),
        ([_line("a").rsplit(",", 1)[0]], "graph.txt: line 1: parameter_size is missing"),
        ([_line("a") + ", parameter_size=1"], "graph.txt: line 1: parameter_size is given twice"),
        ([_line("a"), _line("a")], "graph.txt: line 2: duplicate node 'a', first in line 1"),
        ([_line("a", forward="-1")], "graph.txt: line 1: forward_compute_time cannot be negative"),
        ([_line("a", forward="nan")], "graph.txt: line 1: forward_compute_time is 'nan', not a number"),
        ([_line("a", forward="1e999999999")], "graph.txt: line 1: forward_compute_time is '1e999999999', not a number"),
        ([_line("a", size="1e30")], "graph.txt: line 1: activation_size must be below 2^62 bytes"),
        ([_line("a", size="[1; 2")], "graph.txt: line 1: activation_size is '[1; 2', not a number or a list"),
        ([_line("a", size="[]")], "graph.txt: line 1: activation_size is '', not a number"),
        ([_line("a"), "\ta -- b"], "graph.txt: line 2: no node is called 'b'"),
        ([_line("a"), "\ta -- a"], "graph.txt: line 2: the edge leads from 'a' to itself"),
        ([_line("a"), "\ta"], "graph.txt: line 2: an indented line must be an edge"),
        (
            [_line("a"), _line("b"), "\ta -- b", "\ta -- b"],
            "graph.txt: line 4: duplicate edge 'a' -- 'b', first in line 3",
        ),
        ([_line("a"), _line("b"), "\ta -- b", "\tb -- a"], "graph.txt: the graph has a cycle: a -> b -> a"),
    ],
)
def test_broken_profiles(lines: list[str], message: str) -> None:
    """One line that names the line."""
    assert str(refusal(_read, *lines)).startswith(message)


def test_bytes_that_are_no_text() -> None:
    """The message says so."""
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_pipedream(_line("a").encode() + b"\xff", "graph.txt")


def test_absurd_times_are_no_traceback() -> None:
    """What is left out may be any number; costs too large for the program are refused later."""
    graph = _read(_line("a", "Input", "1e300"))
    assert graph.work == (0,)


@pytest.mark.parametrize("name", ["graph.txt", "graph", "a.json", "-"])
def test_it_is_recognised_by_its_lines(name: str) -> None:
    """The suffix says nothing, and edges may come first."""
    data = "\n".join(("\ta -- b", _line("a"), _line("b"))).encode()
    source = Source(name, data, "", None if name == "-" else Path(name))
    assert read_graph(source).metadata["source_format"] == "pipedream"


@pytest.mark.parametrize("name", [*MODELS, "vgg16"])
def test_published_profiles(name: str, shared_data: Path) -> None:
    """Counts, time and bytes are those of a count by hand, and what is written reads the same."""
    path = shared_data / "pipedream" / f"{name}.txt"
    text = path.read_text()
    graph = read_graph(read_source(str(path)), loading_time=True)
    assert graph.op_count == len(re.findall(r"^node", text, re.MULTILINE))
    assert len(graph.consumers) == len(re.findall(r"^\tnode", text, re.MULTILINE))
    times = [float(time) for time in re.findall(r"forward_compute_time=([\d.]+)", text)]
    assert float(sum(graph.work)) == pytest.approx(sum(times))
    sizes = re.findall(r"activation_size=([\d.; \[\]]+)", text)
    assert int(graph.tensor_bytes.sum()) == sum(float(size) for part in sizes for size in part.strip("[]").split(";"))
    assert int(graph.param_bytes.sum()) == sum(map(float, re.findall(r"parameter_size=([\d.]+)", text)))
    loading = re.findall(r" -- Input\d? -- forward_compute_time=([\d.]+)", text)
    without = read_graph(read_source(str(path)))
    assert sum(graph.work) - sum(without.work) == sum(map(Fraction, loading))
    assert write_native(read_native(write_native(graph).encode(), "again")) == write_native(graph)
    assert write_native(read_node_link(write_node_link(graph).encode(), "again")) == write_native(graph)
