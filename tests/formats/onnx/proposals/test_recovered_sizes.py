"""Real models whose sizes are wiped out: what is proposed is what they were exported with."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import onnx
import pytest

from mtpp.datasets import sample_path
from mtpp.formats.onnx import read_with_nodes
from mtpp.machine.presets import load_device


def _wiped(data: bytes) -> tuple[onnx.ModelProto, dict[str, int]]:
    """Return a model without the sizes of its inputs, channels aside, and those sizes by place."""
    model = onnx.ModelProto.FromString(data)
    stored = {tensor.name for tensor in model.graph.initializer}
    sizes = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for axis, dim in enumerate(dims):
            if value.name not in stored and (axis != 1 or len(dims) != 4):
                sizes[f"{value.name}:{axis}"] = dim.dim_value
                dim.Clear()
    return model, sizes


def _proposed(model: onnx.ModelProto) -> dict[str, int]:
    reading = read_with_nodes(
        None, model.SerializeToString(), source="model.onnx", dims={"*": "auto"}, system=load_device()
    )
    return dict(reading.graph.metadata["dims"])


def test_a_shipped_model_gets_its_size_back() -> None:
    """224 pixels a side."""
    model, sizes = _wiped(sample_path("resnet50").read_bytes())
    assert _proposed(model) == sizes


@pytest.mark.parametrize("name", ["bvlc_alexnet", "inception_v1", "shufflenet", "squeezenet"])
def test_light_models_get_their_sizes_back(name: str, light_model: Callable[[str], bytes]) -> None:
    """Whether a matrix behind the last convolution asks for them or padding does."""
    model, sizes = _wiped(light_model(name))
    assert _proposed(model) == sizes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "declared"),
    [
        *product(("bert-base", "efficientnet", "t5-small", "vit-base"), (True, False)),
        ("sd15-unet", False),  # by far the largest, which takes as long with shapes as without
    ],
)
def test_large_models_get_their_sizes_back(name: str, declared: bool, shared_data: Path) -> None:
    """Constants of reshapes, tables of positions and features decide; shapes declared in the file are not needed."""
    model, sizes = _wiped((shared_data / "onnx" / f"{name}.onnx").read_bytes())
    if not declared:
        del model.graph.value_info[:]
    assert _proposed(model) == sizes
