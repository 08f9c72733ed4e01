"""TensorFlow's cost graphs: ports, control inputs, values that are left out because they are zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refusal

from mtpp.errors import UnrecognisedInput
from mtpp.formats.graphs.native import read_native, write_native
from mtpp.formats.graphs.node_link import read_node_link, write_node_link
from mtpp.formats.graphs.recognise import read_graph
from mtpp.formats.graphs.tensorflow_cost_graph import read_cost_graph
from mtpp.formats.io.source import Source
from mtpp.inference.graph import CostGraph

TEXT = """
# four nodes
node {
  name: "x"
  device: "/cpu:0"
  output_info { size: 100 alias_input_port: -1 dtype: DT_FLOAT shape { dim { size: 25 } unknown_rank: false } }
  output_info { size: 40 }
  compute_cost: 7
  temporary_memory_size: 12
  is_final: false
}
node < name: 'weights' id: 1 persistent_memory_size: 64 output_info: { size: -1 } >
node {
  name: "y" id: 2
  input_info { }
  input_info { preceding_port: 1 }
  input_info { preceding_node: 1 }
  control_input: 0
  output_info { size: 8 }
  compute_cost: 11
}
node {
  name: "z" id: 3
  input_info { preceding_node: 2 }
  input_info { preceding_node: 2 }
  control_input: [0, 1]
  compute_cost: 5
}
"""


def _read(text: str) -> CostGraph:
    return read_cost_graph(text.encode(), "g.pbtxt")


def test_nodes_ports_and_control_inputs() -> None:
    """Microseconds, a tensor per output, and one without bytes where only an order is asked for."""
    graph = _read(TEXT)
    assert (graph.time_unit, graph.op_names, graph.work) == ("us", ("x", "weights", "y", "z"), (7, 0, 11, 5))
    assert graph.param_bytes.tolist() == [0, 64, 0, 0]
    tensors = {
        name: (int(graph.tensor_bytes[t]), [graph.op_names[v] for v in graph.tensor_consumers(t)])
        for t, name in enumerate(graph.tensor_names)
    }
    assert tensors == {
        "x": (100, ["y"]),
        "x:1": (40, ["y"]),
        "^x": (0, ["z"]),
        "weights": (0, ["y"]),
        "^weights": (0, ["z"]),
        "y": (8, ["z"]),
    }
    assert graph.metadata["assumptions"] == ["1 outputs of unknown size have no bytes"]


def test_what_is_written_reads_the_same() -> None:
    """In both formats that are written."""
    graph = _read(TEXT)
    assert write_native(read_native(write_native(graph).encode(), "again")) == write_native(graph)
    assert write_native(read_node_link(write_node_link(graph).encode(), "again")) == write_native(graph)


def test_metadata_of_a_run() -> None:
    """The graph inside is taken, and what stands beside it is not looked at."""
    text = "step_stats { dev_stats { device: 'd' } }\ncost_graph { node { name: 'a' compute_cost: 3 } }"
    assert _read(text).work == (3,)


def test_a_port_below_zero_is_a_control_input() -> None:
    """TensorFlow numbers the output without data so."""
    graph = _read("node { name: 'a' } node { name: 'b' id: 1 input_info { preceding_port: -1 } }")
    assert (graph.tensor_names, graph.tensor_bytes.tolist()) == (("^a",), [0])


def test_the_graphs_of_several_devices() -> None:
    """Each has a source of its own under the same name, and edges go by id."""
    graph = _read(
        "node { name: '_SOURCE' compute_cost: 1 } node { name: 'a' id: 2 control_input: 0 }"
        "node { name: '_SOURCE' id: 3 compute_cost: 2 } node { name: 'b' id: 5 control_input: 3 }"
    )
    assert (graph.op_names, graph.work) == (("_SOURCE #0", "a", "_SOURCE #3", "b"), (1, 0, 2, 0))
    assert [[graph.op_names[v] for v in graph.tensor_consumers(t)] for t in range(2)] == [["a"], ["b"]]


def test_a_port_that_is_not_listed_has_no_bytes() -> None:
    """The edge is there all the same."""
    graph = _read("node { name: 'a' } node { name: 'b' id: 1 input_info { preceding_port: 2 } }")
    assert (graph.tensor_names, graph.tensor_bytes.tolist()) == (("a:2",), [0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node {", "line 1: the text ends inside the message that begins in line 1"),
        ("cost_graph { }", "the graph has no nodes"),
        ("cost_graph { } cost_graph { }", "line 1: a second cost_graph"),
        ("node { }", "line 1: a node without a name"),
        ("node: 7", "line 1: node must be a message; write node { … }"),
        ("node { name: a }", "line 1: a node without a name"),
        ("node { name: 'a' name: 'b' }", "line 1: name is given twice"),
        ("node { name: 'a' }\nnode { name: 'b' }", "line 2: duplicate id 0, first used in line 1"),
        (
            "node { name: 'a' computecost: 1 }",
            "line 1: unknown field 'computecost'; did you mean 'compute_cost' or 'compute_time'?",
        ),
        ("node { name: 'a' compute_cost: -1 }", "line 1: compute_cost cannot be negative"),
        ("node { name: 'a' compute_cost: '1' }", "line 1: compute_cost must be a number"),
        ("node { name: 'a' compute_cost: 1e999999 }", "line 1: compute_cost is '1e999999', not a number within"),
        ("node { name: 'a' id: 1.5 }", "line 1: id is '1.5', not a whole number"),
        ("node { name: 'a' id: 99999999999999999999 }", "line 1: id is '99999999999999999999', not a whole number"),
        ("node { name: 'a' persistent_memory_size: -1 }", "line 1: persistent_memory_size cannot be negative"),
        ("node { name: 'a' input_info { preceding_node: 9 } }", "line 1: no node has the id 9"),
        ("node { name: 'a' input_info { } }", "line 1: node 'a' reads its own output (self-loop)"),
        ("node { name: 'a' control_input: 5 }", "line 1: no node has the id 5"),
        ("node { name: 'a' output_info { bytes: 5 } }", "line 1: unknown field 'bytes'"),
        (
            "node { name: 'a' control_input: 1 } node { name: 'b' id: 1 input_info { } }",
            "the graph has a cycle: a -> b -> a",
        ),
        ("node { name: 'a' op: 'Conv2D' input: 'b' }", "line 1: a GraphDef, not a CostGraphDef: it has no costs"),
    ],
)
def test_broken_graphs(text: str, message: str) -> None:
    """One line that names the line."""
    assert str(refusal(_read, text)).startswith(f"g.pbtxt: {message}")


@pytest.mark.parametrize("name", ["g.pbtxt", "g", "g.txt", "-"])
def test_it_is_recognised_by_its_first_field(name: str) -> None:
    """A comment may come first."""
    source = Source(name, TEXT.encode(), "", None if name == "-" else Path(name))
    assert read_graph(source).metadata["source_format"] == "tensorflow"


def test_a_graph_without_costs_is_something_else() -> None:
    """In a folder it is passed over."""
    with pytest.raises(UnrecognisedInput, match="GraphDef"):
        read_graph(Source("g.pbtxt", b"node { name: 'a' op: 'Const' }", "", Path("g.pbtxt")))
