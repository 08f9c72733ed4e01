"""Models that do not fit into memory: measured in pieces, as the whole would be, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_text import built
from profiled_models import chain, convolutions

from mtpp.errors import InputError
from mtpp.formats.io.source import read_source
from mtpp.formats.onnx import read_onnx
from mtpp.machine.presets import load_device
from mtpp.runtime.profiling.profile_memory import MemoryNeed
from mtpp.runtime.profiling.profile_model import chunks_within, profile_model
from mtpp.runtime.profiling.profiled_graph import MeasuredProfile
from mtpp.runtime.profiling.timing import ProfileChoices, ProfileRequest

pytest.importorskip("onnxruntime")

KIB = 1024
WEIGHT = 128 * 128 * 4


def absent(model: onnx.ModelProto, location: str = "gone.bin") -> onnx.ModelProto:
    """Return a model whose large weights lie in a file that is not there."""
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        tensor.external_data.add(key="length", value=str(size))
    return model


def profiled(model: onnx.ModelProto, folder: Path, limit: int | None, **dims: int) -> MeasuredProfile:
    """Measure a model within *limit* bytes of memory."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    request = ProfileRequest(ProfileChoices(1, 2), load_device(), dims=dims, memory_bytes=limit)
    return profile_model(read_source(str(path)), request)


def test_few_pieces_that_fit() -> None:
    """Ops are taken in the graph's order as long as their weights fit."""
    model = chain(6, 128)
    graph = read_onnx(None, model.SerializeToString(), source="m", dims={"batch": 1}, system=load_device())
    need = MemoryNeed(weights=6 * WEIGHT, activations=0, file=0, made_up=6 * WEIGHT)
    assert need.total == 18 * WEIGHT
    assert chunks_within(graph, need, 18 * WEIGHT) == [0] * 6
    assert chunks_within(graph, need, 6 * WEIGHT) == [0, 0, 1, 1, 2, 2]
    assert chunks_within(graph, need, 2 * WEIGHT) == [0] * 6


def test_a_model_in_pieces_has_the_costs_of_all(tmp_path: Path) -> None:
    """Each op has its cost, whatever piece it is in; weights are made up piece by piece, and as many in all."""
    profile = profiled(absent(chain(6, 128)), tmp_path, 6 * WEIGHT + 64 * KIB, batch=3)
    graph = profile.graph
    assert graph.metadata["profile"]["pieces"] == 3
    assert graph.op_names == tuple(f"MatMul_{i}" for i in range(1, 7))
    assert all(cost > 0 for cost in graph.work)
    assert graph.tensor_bytes.tolist() == [3 * 128 * 4] * 6
    assert profile.random_inputs == ("x",)
    assert profile.random_weight_bytes == 6 * WEIGHT


def test_branches_cross_pieces(tmp_path: Path) -> None:
    """What is read again two pieces later is kept until then."""
    model = absent(convolutions())
    whole = profiled(model, tmp_path, None)
    weight = 32 * 32 * 9 * 4
    chunks = profiled(model, tmp_path, 4 * weight + 16 * KIB)
    assert chunks.graph.metadata["profile"]["pieces"] == 2
    assert chunks.graph.op_names == whole.graph.op_names
    assert chunks.graph.tensor_bytes.tolist() == whole.graph.tensor_bytes.tolist()


def test_weights_that_are_there_are_used(tmp_path: Path) -> None:
    """Every piece reads its own part of the file beside the model, and nothing is made up."""
    weights = {f"w{i}": np.full((128, 128), i + 1, dtype=np.float32) for i in range(4)}
    nodes = [
        onnx.helper.make_node("MatMul", [f"t{i}" if i else "x", f"w{i}"], [f"t{i + 1}" if i < 3 else "y"])
        for i in range(4)
    ]
    model = built(nodes, {"x": [2, 128]}, ["y"], weights)
    onnx.save(model, tmp_path / "large.onnx", save_as_external_data=True, location="large.bin", size_threshold=0)
    request = ProfileRequest(ProfileChoices(0, 2), load_device(), memory_bytes=5 * WEIGHT)
    profile = profile_model(read_source(str(tmp_path / "large.onnx")), request)
    assert profile.graph.metadata["profile"]["pieces"] == 2
    assert profile.random_weight_bytes == 0


def test_one_op_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """There is nothing smaller to run."""
    with pytest.raises(InputError, match="running it takes about"):
        profiled(absent(chain(6, 128)), tmp_path, 2 * WEIGHT, batch=3)
