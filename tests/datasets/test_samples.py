"""Shipped models: published architectures without weights, with the same costs and cuts in every format."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import mtpp
from mtpp.api.inputs.model import Model
from mtpp.datasets import SAMPLES, sample_path
from mtpp.errors import InputError
from mtpp.inference.graph import CostGraph

RESNET50_PARAMETERS = 25_557_032
"""torchvision documentation, models.resnet50, num_params."""

RESNET50_GIGA_MACS = 4.09
"""torchvision documentation, models.resnet50, GFLOPS (counted as multiply-accumulates)."""

GPT2_PARAMETERS = 124_439_808
"""Radford et al. (2019), 12 layers of width 768, 50,257 words, 1,024 places; as released: embedding and output tied."""

LARGEST_FILE = 150_000


def load(name: str) -> onnx.ModelProto:
    """Load a sample as far as it goes: without weights."""
    return onnx.load(str(sample_path(name)), load_external_data=False)


def parameters(model: onnx.ModelProto) -> int:
    """Return the number of weights: elements of floating-point tensors that are not scalar constants."""
    return sum(
        math.prod(tensor.dims)
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    )


def shape(value: onnx.ValueInfoProto) -> list[int | str]:
    """Return the dimensions of a value, numbers or names."""
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def shapes(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    """Return the shape of every value and initializer by name."""
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    known: dict[str, list[int | str]] = {value.name: shape(value) for value in values}
    known.update({tensor.name: list(tensor.dims) for tensor in model.graph.initializer})
    return known


def test_resnet50_is_resnet50() -> None:
    """Layers, parameters and multiply-accumulates are the published ones; normalisations are folded into biases."""
    model = load("resnet50")
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds == {"Conv": 53, "Relu": 49, "Add": 16, "MaxPool": 1, "ReduceMean": 1, "Reshape": 1, "Gemm": 1}
    assert shape(model.graph.input[0]) == [1, 3, 224, 224]
    assert shape(model.graph.output[0]) == [1, 1000]
    known = shapes(model)
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    channels = sum(int(known[node.input[1]][0]) for node in convolutions)
    assert parameters(model) + channels == RESNET50_PARAMETERS
    macs = sum(
        math.prod(map(int, known[node.output[0]])) * math.prod(map(int, known[node.input[1]][1:]))
        for node in convolutions
    )
    macs += sum(math.prod(map(int, known[node.input[1]])) for node in model.graph.node if node.op_type == "Gemm")
    assert round(macs / 1e9, 2) == RESNET50_GIGA_MACS
    # Version 1.5: where a block halves the image, its 3×3 convolution does.
    strides = {
        tuple(known[node.input[1]][2:])
        for node in convolutions
        for attribute in node.attribute
        if attribute.name == "strides" and list(attribute.ints) == [2, 2] and "conv" in node.name
    }
    assert strides == {(7, 7), (3, 3)}


def test_gpt2_is_gpt2() -> None:
    """Parameters are the published number, the embedding is shared, batch and sequence are symbolic."""
    model = load("gpt2")
    assert parameters(model) == GPT2_PARAMETERS
    assert shape(model.graph.input[0]) == ["batch", "sequence"]
    assert shape(model.graph.output[0]) == ["batch", "sequence", 50257]
    kinds = Counter(node.op_type for node in model.graph.node)
    assert (kinds["LayerNormalization"], kinds["Softmax"], kinds["Gelu"]) == (25, 12, 12)
    assert kinds["MatMul"] == 12 * 6 + 1
    assert len(model.graph.node) == 340
    readers = [node.op_type for node in model.graph.node if "tokens.weight" in node.input]
    assert sorted(readers) == ["Gather", "Transpose"]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_hold_no_weights(name: str) -> None:
    """Files are small; what is above a few numbers is external, laid out in a file that does not exist."""
    path = sample_path(name)
    assert path.stat().st_size < LARGEST_FILE
    model = load(name)
    place = 0
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            assert tensor.ByteSize() < 200
            continue
        assert not tensor.raw_data
        external = {entry.key: entry.value for entry in tensor.external_data}
        assert int(external["offset"]) == place
        assert int(external["length"]) == 4 * math.prod(tensor.dims)
        assert not (path.parent / external["location"]).exists()
        place += int(external["length"])
    assert place > 4 * 0.999 * parameters(model)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_tell_nothing_of_their_making(name: str) -> None:
    """No path, no stack trace, no metadata, no doc string is left."""
    content = sample_path(name).read_bytes()
    for trace in (b"/tmp", b"/root", b"/home", b"/work", b"site-packages", b".py", b"stack", b"File ", b"pkg."):
        assert trace not in content
    model = load(name)
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        assert not part.metadata_props
        assert not part.doc_string


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_valid_onnx(name: str) -> None:
    """The checker accepts the graph once its weights are inputs, and strict shape inference agrees with the file."""
    model = load(name)
    weights = [t for t in model.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    for tensor in weights:
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        model.graph.initializer.remove(tensor)
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("name", SAMPLES)
def test_nodes_have_names_that_say_where_they_are(name: str) -> None:
    """Names are unique, and end in the operator's name."""
    nodes = load(name).graph.node
    assert len({node.name for node in nodes}) == len(nodes)
    for node in nodes:
        operator = node.name.rsplit("/", 1)[-1]
        assert operator == node.op_type or operator.startswith(f"{node.op_type}_")
    assert sum("/" in node.name for node in nodes) > 0.95 * len(nodes)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_described(name: str) -> None:
    """The folder's README has a row with the node count of each sample."""
    rows = (sample_path(name).parent / "README.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in rows if line.startswith(f"| `{name}.onnx`"))
    assert f"| {len(load(name).graph.node)} |" in row


def test_the_list_of_samples_is_the_folder() -> None:
    """Every shipped file is listed, and other names are refused."""
    folder = sample_path(SAMPLES[0]).parent
    assert {path.stem for path in folder.glob("*.onnx")} == set(SAMPLES)
    assert all(isinstance(sample_path(name), Path) for name in SAMPLES)
    with pytest.raises(InputError, match="no sample model is called"):
        sample_path("../secrets")


SIZES = {
    "gpt2": ({"batch": 1, "sequence": 128}, {"token_ids:0": 1, "token_ids:1": 128}),
    "resnet50": ({}, {}),
}

COPIES = {"Split", "Transpose", "aten.reshape"}
"""Ops of one format alone: ONNX copies a tensor to transpose or split it, PyTorch takes a view until it reshapes."""


def models(name: str) -> tuple[Model, Model]:
    """Return a sample as read through ONNX, and as an exported program."""
    one, other = (
        mtpp.read(sample_path(name, form), dims=dims) for form, dims in zip(("onnx", "pt2"), SIZES[name], strict=True)
    )
    return one, other


def alike(graph: CostGraph) -> CostGraph:
    """Return a graph without the time of what one format has as ops of its own.

    These are copies, biases and masks that ONNX adds to a product, and normalisations that its exporter folds into
    convolutions. Blocks make their masks of the same positions.
    """
    reads = [0] * graph.op_count
    for reader in graph.edges[1].tolist():
        reads[reader] += 1
    own, read = graph.param_bytes.tolist(), graph.read_bytes.tolist()
    work = [
        0
        if kind in COPIES
        or kind == "aten.batch_norm"
        or (kind == "Add" and (own[v] > 4096 or read[v] > own[v]) and reads[v] == 1)
        else cost
        for v, (kind, cost) in enumerate(zip(graph.op_kinds, graph.work, strict=True))
    ]
    return replace(graph, work=tuple(work))


def bottleneck(model: Model, graph: CostGraph) -> int:
    """Return the proven bottleneck of four stages, in ticks, with the costs of *graph*."""
    plan = mtpp.partition(replace(model, graph=graph), k=4)
    assert plan.optimal
    return plan.bottleneck


@pytest.mark.parametrize("name", sorted(SIZES))
def test_formats_agree(name: str) -> None:
    """Products to the last one, FLOPs within 2 %, bottlenecks within 5 % but for ops of one format alone."""
    onnx, program = models(name)
    assert program.graph.metadata["macs"] == onnx.graph.metadata["macs"]
    assert program.graph.metadata["flops"] == pytest.approx(onnx.graph.metadata["flops"], rel=0.02)
    ends = [bottleneck(one, alike(one.graph)) for one in (onnx, program)]
    assert ends[1] == pytest.approx(ends[0], rel=0.05)


def test_ops_of_one_format_alone_are_all_that_differs() -> None:
    """Of GPT-2, the other ops take the same time within 1 %."""
    onnx, program = (one.graph for one in models("gpt2"))
    assert sum(onnx.work) > 1.1 * sum(program.work)
    assert sum(alike(program).work) == pytest.approx(sum(alike(onnx).work), rel=0.01)
