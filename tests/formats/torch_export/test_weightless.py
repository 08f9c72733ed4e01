"""Archives without weights: the same bytes for the same program, read as what ``torch.export.save`` writes."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from exported_programs import archive, node, program, tensor

from mtpp.formats.torch_export import read_program
from mtpp.formats.torch_export.weightless import weightless_archive
from mtpp.inference.graph import CostGraph
from mtpp.machine.presets import load_device


def _document() -> dict[str, Any]:
    """Return two layers whose weights have one shape, below a module of their own."""
    types = {name: tensor(4, 4) for name in ("p_a", "p_b", "x", "y", "z")}
    nodes = [node("linear", ["y"], "first", input="x", weight="p_a"), node("linear", ["z"], input="y", weight="p_b")]
    return program(types, nodes, stored={"p_a": "parameter", "p_b": "parameter"}, outputs=["z"])


def _read(data: bytes) -> CostGraph:
    return read_program(data, source="m", system=load_device(), name="m")


def test_it_is_read_as_the_program() -> None:
    """Ops, costs and what is said of them are those of the archive with weights."""
    document = _document()
    graph, due = _read(weightless_archive(json.dumps(document).encode(), {})), _read(archive(document))
    assert (graph.op_names, graph.work) == (due.op_names, due.work)
    assert list(graph.param_bytes) == list(due.param_bytes) == [64, 64]
    assert graph.metadata == due.metadata


def test_tied_weights_count_once() -> None:
    """Weights that are stored in one place are one, on the device ``meta`` too; all others are several."""
    text = json.dumps(_document()).encode()
    shared = _read(weightless_archive(text, {"p.a": 7, "p.b": 7})).metadata
    assert (shared["parameter_bytes"], len(shared["shared_parameters"])) == (64, 1)
    for storages in ({"p.a": 7, "p.b": 8}, {"p.a": 7}, {}):
        assert _read(weightless_archive(text, storages)).metadata["parameter_bytes"] == 128


def test_only_the_program_decides_on_the_bytes() -> None:
    """Numbers of places, stack traces, guards and the files that classes come from leave no trace."""
    document = _document()
    due = weightless_archive(json.dumps(document).encode(), {"p.a": 7, "p.b": 7})
    document["guards_code"] = ["x.shape[0] == 4"]
    metadata = document["graph_module"]["graph"]["nodes"][0]["metadata"]
    metadata["stack_trace"] = "File somewhere"
    metadata["nn_module_stack"] = metadata["nn_module_stack"].replace("torch.nn.X", "__main__.X")
    assert weightless_archive(json.dumps(document).encode(), {"p.a": 123, "p.b": 123}) == due
    assert weightless_archive(json.dumps(document).encode(), {"p.a": 123, "p.b": 124}) != due


def test_it_holds_no_weight() -> None:
    """Files of weights are there, and empty."""
    with zipfile.ZipFile(io.BytesIO(weightless_archive(json.dumps(_document()).encode(), {}))) as file:
        sizes = {entry.filename: entry.file_size for entry in file.infolist()}
    assert sizes["program/data/weights/weight_0"] == sizes["program/data/weights/weight_1"] == 0
    assert [name for name, size in sizes.items() if size] == [
        "program/models/model.json",
        "program/data/weights/model_weights_config.json",
        "program/data/constants/model_constants_config.json",
    ]
