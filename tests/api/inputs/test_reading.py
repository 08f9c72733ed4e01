"""Models from whatever holds them: one graph, however it was given."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from graph_strategies import chain, random_graph
from processes import run
from refusals import refusal

import mtpp
from mtpp.api.inputs.model import Model
from mtpp.api.observer import MtppWarning
from mtpp.datasets import sample_path
from mtpp.formats.graphs.native import to_document
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device


def _same(one: CostGraph, two: CostGraph) -> bool:
    return to_document(one) == to_document(two)


def test_ways_to_give_a_native_graph(chain_file: Path) -> None:
    """A path, bytes, compressed bytes and a parsed document are one graph."""
    data = chain_file.read_bytes()
    expected = mtpp.read(chain_file)
    for given in (str(chain_file), data, bytearray(data), memoryview(data), gzip.compress(data), json.loads(data)):
        assert _same(mtpp.read(given).graph, expected.graph)
    assert expected.source.path == chain_file
    assert mtpp.read(data).source.sha256 == expected.source.sha256


def test_ways_to_give_an_onnx_model() -> None:
    """The file, its bytes and the object are one model, and a plan for them is one plan."""
    import onnx

    path = sample_path("resnet50")
    models = [mtpp.read(given) for given in (path, path.read_bytes(), onnx.load(path, load_external_data=False))]
    plans = [mtpp.partition(model, 2, algorithm="slice").bottleneck for model in models]
    assert len(set(plans)) == 1
    assert [model.graph.name for model in models] == ["resnet50", "bytes", "ModelProto"]
    assert all(_same(replace(model.graph, name="resnet50"), models[0].graph) for model in models)


def test_ways_to_give_a_networkx_graph(tmp_path: Path) -> None:
    """A DiGraph is the node-link document that networkx writes of it."""
    graph = nx.DiGraph(name="diamond", time_unit="ms")
    graph.add_node("a", work=1.5, size_out=250)
    graph.add_node("b", work=np.float64(2.25), size_param=np.int64(12), size_out=100)
    graph.add_node("c", work=Fraction(1, 8), size_out=100)
    graph.add_node("d", work=1)
    graph.add_edges_from([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    read = mtpp.read(graph)
    assert _same(read.graph, CostGraph.from_networkx(graph))
    assert mtpp.partition(graph, 2).k == 2
    graph.nodes["b"]["work"], graph.nodes["c"]["work"] = 2.25, 0.125
    graph.nodes["b"]["size_param"] = 12
    document = nx.node_link_data(graph, edges="edges")
    assert _same(mtpp.read(document).graph, read.graph)
    path = tmp_path / "diamond.json"
    path.write_text(json.dumps(document))
    assert _same(mtpp.read(path).graph, read.graph)


@pytest.mark.parametrize("seed", range(3))
def test_graphs_come_back_from_networkx(seed: int) -> None:
    """What we export has the tensors of the original."""
    graph = random_graph(seed, 12)
    again = mtpp.read(graph.to_networkx()).graph
    assert sorted(map(str, to_document(again)["tensors"])) == sorted(map(str, to_document(graph)["tensors"]))


def test_systems(chain_file: Path, tmp_path: Path) -> None:
    """A preset, a file, an object; quantities as numbers or as texts."""
    toml = tmp_path / "own.toml"
    toml.write_text('peak_flops = "1TFLOP/s"\nmemory_bandwidth = "100GB/s"\nbandwidth = "10GB/s"\n')
    assert mtpp.read(chain_file).system == load_device()
    assert mtpp.read(chain_file, system=toml).system == load_device(str(toml))
    assert mtpp.read(chain_file, system=load_device(str(toml))).system.name == "own"
    for bandwidth in (25 * 10**8, 2.5e9, "2.5GB/s", np.int64(25 * 10**8)):
        with pytest.warns(MtppWarning, match="bandwidth has no effect"):
            assert mtpp.read(chain_file, bandwidth=bandwidth).system.link.bandwidth_bytes_per_s == 25 * 10**8
    read = mtpp.read(chain_file, fast_memory=2**20, stage_memory="2MiB", activation_reserve=0, peak="order")
    assert (read.system.fast_memory_bytes, read.system.memory_bytes, read.system.peak) == (2**20, 2**21, "order")


@pytest.mark.parametrize(
    ("parameters", "parameter", "message"),
    [
        ({"bandwidth": -1}, "bandwidth", "-1 is out of range"),
        ({"bandwidth": "25"}, "bandwidth", "has no unit"),
        ({"bandwidth": 2.5}, "bandwidth", "2.5 is neither a whole number nor a text with a unit"),
        ({"bandwidth": True}, "bandwidth", "True is neither"),
        ({"fast_memory": [1]}, "fast_memory", "a list is neither"),
        ({"system": "none such"}, "system", "no such preset and no such file"),
        ({"system": 3}, "system", "3 is not a path"),
        ({"peak": 3}, "peak", "unknown mode 3; use one of reserve, order"),
        ({"dims": {"batch": 1}}, "dims", "has no effect"),
        ({"dims": {"batch": "1"}}, "dims", "'1' is not a whole number"),
        ({"dims": ["batch"]}, "dims", "a list is not a mapping"),
        ({"costs": 3}, "costs", "3 is not a path"),
        ({"from_format": "xml"}, "from_format", "unknown format 'xml'"),
        ({"time_unit": "ms"}, "time_unit", "has no effect"),
        ({"time_unit": 3}, "time_unit", "unknown unit of time 3; use one of ps, ns, us, ms, s"),
        ({"backward": 1}, "backward", "1 is neither True nor False"),
        ({"max_input_size": "big"}, "max_input_size", "'big' is not a size"),
    ],
)
def test_wrong_parameters_are_refused_by_name(
    chain_file: Path, parameters: dict[str, Any], parameter: str, message: str
) -> None:
    """The error says which one."""
    with pytest.raises(mtpp.InputError) as caught:
        mtpp.read(chain_file, **parameters)
    assert caught.value.parameter == parameter
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "source: None is nothing that is read"),
        (3, "source: 3 is nothing that is read"),
        ([1, 2], "source: a list is nothing that is read"),
        (b"", "<bytes>: the input is empty"),
        (b"hello", "<bytes>: in no format of graphs"),
        (b"\x1f\x8bxx", "<bytes>: broken gzip"),
        ({}, "<dict>: /: not a graph"),
        ({"format": "mtpp-graph", "version": object()}, "source"),
        ("", "source: is empty"),
        (nx.Graph([(1, 2)]), "source: a Graph is not a DiGraph"),
        (nx.MultiDiGraph([(1, 2)]), "source: a MultiDiGraph is not a DiGraph"),
        (nx.DiGraph([(1, 2)]), "<DiGraph>: /nodes/0"),
    ],
)
def test_what_is_no_model(source: Any, message: str) -> None:
    """The error says what was given, or where in it."""
    assert str(refusal(mtpp.read, source)).startswith(message)


def test_large_inputs_are_refused(chain_file: Path) -> None:
    """By number or by text, from a file or from memory."""
    for source, size in ((chain_file, 100), (chain_file.read_bytes(), "100B")):
        with pytest.raises(mtpp.InputError, match="the input is larger than 100 B; raise max_input_size"):
            mtpp.read(source, max_input_size=size)


def test_a_model_never_changes(chain_file: Path) -> None:
    """Not with what it was made of, and not by itself; a changed file is noticed where it is read again."""
    document = to_document(chain([1, 2, 3], [1, 1]))
    model = mtpp.read(document)
    before = mtpp.partition(model, 2).document()["assignment"]
    document["ops"][0]["work"] = 1000
    assert mtpp.partition(model, 2).document()["assignment"] == before
    with pytest.raises(ValueError, match="read-only"):
        model.graph.tensor_bytes[0] = 7
    with pytest.raises(TypeError):
        model.dims["batch"] = 7
    with pytest.raises(TypeError):
        model.graph.metadata["name"] = 7  # type: ignore[index]
    with pytest.raises(AttributeError):
        model.system = None  # type: ignore[misc, assignment]
    kept = mtpp.read(chain_file)
    chain_file.write_text(chain_file.read_text() + "\n")
    with pytest.raises(mtpp.InputError, match="has changed since it was read"):
        kept.source_with_data()


def test_models_are_taken_as_they_are(chain_file: Path) -> None:
    """A model that was read once is read no more."""
    model = mtpp.read(chain_file)
    assert isinstance(model, Model)
    chain_file.unlink()
    assert mtpp.partition(model, 2).bottleneck_s == 0.061


def test_models_show_themselves_in_a_line(chain_file: Path) -> None:
    """A notebook shows what was read, not a page of arrays."""
    assert repr(mtpp.read(chain_file)) == "<Model 'chain': 4 ops, 3 tensors, reference>"


def test_the_command_hands_over_the_same_graph(chain_file: Path) -> None:
    """What the function reads is what the command inspects."""
    printed = json.loads(run("inspect", chain_file, "--ops", "--format", "json").stdout)
    assert [op["name"] for op in printed["ops"]] == list(mtpp.read(chain_file).graph.op_names)


def test_a_cost_graph_is_read_as_a_copy() -> None:
    """Its figures are those of its file, and neither graph can be changed afterwards."""
    graph = chain([10, 20, 30, 40], [1, 1, 1], "ms")
    model = mtpp.read(graph)
    assert mtpp.partition(model, k=2).bottleneck == mtpp.partition(to_document(graph), k=2).bottleneck
    with pytest.raises(ValueError, match="read-only"):
        model.graph.param_bytes[:] = 7
