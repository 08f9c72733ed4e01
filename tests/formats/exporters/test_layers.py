"""Layers for vLLM and Megatron, exact where stages are whole blocks; cut tensors and segments by their definition."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from exporter_requests import cut, transformer
from graph_strategies import random_graph
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.exporters.blocks import find_blocks
from mtpp.formats.exporters.megatron import emit_megatron
from mtpp.formats.exporters.registry import EMITTERS, emit
from mtpp.formats.exporters.request import Request
from mtpp.formats.exporters.vllm import emit_vllm
from mtpp.formats.onnx.module_names import module_names
from mtpp.formats.onnx.reader import read_with_nodes
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.machine.presets import load_device
from mtpp.names import EXPORTERS


def _rows(layout: str) -> list[str]:
    """Expand a layout as Megatron's documentation says: commas mean nothing, ``x*n`` is n times x."""
    plain = re.sub(r"(.)\*(\d+)", lambda found: found[1] * int(found[2]), layout.replace(",", ""))
    return plain.split("|")


def _vllm(request: Request) -> str:
    return emit_vllm(request).splitlines()[-1]


@pytest.mark.parametrize(
    ("ends", "counts"),
    [(["add3"], [4, 4]), (["add0", "add5"], [1, 5, 2]), (["add1", "add2", "add6"], [2, 1, 4, 1])],
)
def test_whole_layers(ends: list[str], counts: list[int]) -> None:
    """Each stage counts its layers; Megatron's text expands to them, with the embedding first and the loss last."""
    request = cut(*transformer(8), ends)
    assert _vllm(request) == f"VLLM_PP_LAYER_PARTITION={','.join(map(str, counts))}"
    size, layout = emit_megatron(request).splitlines()
    assert size == f"--pipeline-model-parallel-size {len(counts)}"
    rows = _rows(layout.split('"')[1])
    assert [row.count("t") for row in rows] == counts
    assert (rows[0][0], rows[-1][-1], "".join(rows).count("E"), "".join(rows).count("L")) == ("E", "L", 1, 1)


def test_few_known_modules_are_enough() -> None:
    """With the names of a few weights, the layers are the same: each begins where the fewest tensors cross."""
    graph, modules = transformer(5)
    known = {op: path for op, path in modules.items() if path.endswith(("norm", "up", "embed_tokens"))}
    every, few = (find_blocks(cut(graph, names, ["add2"])) for names in (modules, known))
    assert every.block_of == few.block_of
    assert not few.open_between
    assert _vllm(cut(graph, known, ["add2"])) == "VLLM_PP_LAYER_PARTITION=3,2"


def test_layers_without_a_name_of_their_own() -> None:
    """The children of a Sequential are called by their numbers alone."""
    graph, modules = transformer(4)
    bare = {op: path.removeprefix("model.layers.") for op, path in modules.items()}
    assert _vllm(cut(graph, bare, ["add0"])) == "VLLM_PP_LAYER_PARTITION=1,3"
    with pytest.raises(InputError, match="cuts through block 2: "):
        emit_vllm(cut(graph, bare, ["up2"]))


def test_empty_stages_are_not_counted() -> None:
    """Stages that run nothing are no stages of the engine."""
    graph, modules = transformer(4)
    stages = np.where(np.arange(graph.op_count) <= graph.op_names.index("add1"), 1, 4).astype(np.int32)
    request = Request(graph, stages, 6, modules)
    for write in (emit_vllm, emit_megatron):
        said = "# stages 0, 2, 3, 5 of the plan run nothing and are left out: 2 of 6 stages\n"
        assert write(request).startswith(said)
    assert emit_vllm(request).endswith("\nVLLM_PP_LAYER_PARTITION=2,2\n")
    assert "left out" not in emit_megatron(cut(graph, modules, ["add1"]))


def test_an_empty_stage_is_said() -> None:
    """Megatron takes a stage without a layer between others, and a comment says which; vLLM's refusal names it."""
    graph, modules = transformer(4)
    stages = np.array(
        [int(name[-1] in "23" or name in ("norm", "head")) * 2 for name in graph.op_names], dtype=np.int32
    )
    stages[graph.op_names.index("mask")] = 1
    stages[[graph.op_names.index(name) for name in graph.op_names if name[-1] in "01"]] = 2
    request = Request(graph, np.where(np.arange(graph.op_count) < 1, 0, stages).astype(np.int32), 3, modules)
    text = emit_megatron(request)
    assert text.startswith("# stage 1 has no layer: it is empty in Megatron's layout\n")
    assert '"E||t*4,L"' in text
    with pytest.raises(InputError, match="stage 0 runs no whole block"):
        emit_vllm(request)


def test_a_stage_without_layers() -> None:
    """Megatron has a place for it, vLLM has not."""
    request = cut(*transformer(4), ["embed", "add1", "add3"])
    assert _rows(emit_megatron(request).split('"')[1]) == ["E", "tt", "tt", "L"]
    with pytest.raises(InputError, match=r"small: stage 0 runs no whole block of model.layers, and vLLM gives"):
        emit_vllm(request)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (
            ["attention2"],
            "a boundary between stages cuts through block model.layers.2: stage 0 runs 2 of its ops: norm2, attention2"
            "; stage 1 runs 4 of its ops: residual2, up2, down2, …",
        ),
        (
            ["add2", "norm"],
            "op 'norm' comes after the last block and is in stage 1, where the engine keeps it in stage 2",
        ),
    ],
)
def test_what_no_layer_count_can_say(ends: list[str], message: str) -> None:
    """The message names the block and its ops on both sides, or the op that is out of place."""
    for write in (emit_vllm, emit_megatron):
        assert str(refusal(write, cut(*transformer(4), ends))).startswith(f"small: {message}")


def test_a_mask_may_be_anywhere() -> None:
    """Ops without parameters outside the layers do not count."""
    graph, modules = transformer(4)
    stages = np.array([int(name[-1] in "23" or name in ("norm", "head")) for name in graph.op_names], dtype=np.int32)
    assert _vllm(Request(graph, stages, 2, modules)) == "VLLM_PP_LAYER_PARTITION=2,2"


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        (lambda path: "", "the file does not say which modules"),
        (lambda path: "model.body" if path else "", "no repeated blocks"),
        (lambda path: path.replace("layers.2", "layers.9"), "no op is known to belong to block model.layers.2 of 10"),
        (lambda path: path.replace("layers.2", "other.0").replace("layers.3", "other.1"), "several kinds of repeated"),
        (lambda path: path.translate(str.maketrans("12", "21")),
         "blocks model.layers.1 and model.layers.2 do not run one after the other: 'add2' of the first comes after "),
    ],
)  # fmt: skip
def test_models_without_the_blocks_of_a_model(rename: object, message: str) -> None:
    """Nothing is guessed."""
    graph, modules = transformer(4)
    assert callable(rename)
    with pytest.raises(InputError, match=message):
        emit_vllm(cut(graph, {op: rename(path) for op, path in modules.items()}, ["add1"]))


def test_tinyllama(shared_data: Path) -> None:
    """An export without metadata, where only norms kept the names of their weights: 22 layers of 64 ops each."""
    path = shared_data / "onnx" / "tinyllama.onnx"
    reading = read_with_nodes(path, path.read_bytes(), source="x", system=load_device(), name="tinyllama")
    modules = module_names(reading)
    assert len(modules) < 50
    graph = reading.graph
    blocks = find_blocks(Request(graph, np.zeros(graph.op_count, dtype=np.int32), 1, modules))
    assert (blocks.family, blocks.count) == ("layers", 22)
    assert [blocks.block_of.count(block) for block in range(22)] == [64] * 22
    outside = [name for name, block in zip(graph.op_names, blocks.block_of, strict=True) if block is None]
    assert (outside[0], len(outside)) == ("node_embedding", 8)


def test_bert_base(shared_data: Path) -> None:
    """An export that kept one of many equal biases: where layers begin is open, and not guessed."""
    path = shared_data / "onnx" / "bert-base.onnx"
    reading = read_with_nodes(path, path.read_bytes(), source="x", system=load_device(), name="bert-base")
    graph, modules = reading.graph, module_names(reading)
    half = np.arange(graph.op_count) * 2 // graph.op_count
    with pytest.raises(InputError, match=r"it is open where that is: op 'node_.*'|it is open whether op"):
        emit_vllm(Request(graph, half.astype(np.int32), 2, modules))


@given(st.data())
def test_fewer_names_never_give_other_counts(data: st.DataObject) -> None:
    """Whatever modules are unknown, the counts are those of all names, or there are none."""
    graph, modules = transformer(3)
    position = data.draw(st.integers(0, graph.op_count - 2))
    known = {op: modules[op] for op in data.draw(st.sets(st.sampled_from(graph.op_names)))}
    ends = [graph.op_names[position]]
    try:
        counts = _vllm(cut(graph, known, ends))
    except InputError:
        return
    assert counts == _vllm(cut(graph, modules, ends))


def _staged(seed: int, k: int) -> Request:
    graph = random_graph(seed, 25, time_unit="ms")
    position = np.empty(25, dtype=np.int64)
    position[graph.order] = np.arange(25)
    return Request(graph, (position * k // 25).astype(np.int32), k)


@pytest.mark.parametrize("seed", range(5))
def test_cut_names(seed: int) -> None:
    """A tensor stands under every boundary that lies between the op that makes it and one that reads it."""
    request = _staged(seed, 4)
    graph, stages = request.graph, request.assignment.tolist()
    document = json.loads(emit("cut-names", request))
    assert [(row["after"], row["before"]) for row in document["boundaries"]] == [(0, 1), (1, 2), (2, 3)]
    for row in document["boundaries"]:
        expected = []
        for t, name in enumerate(graph.tensor_names):
            source, readers = stages[graph.tensor_producer[t]], {stages[v] for v in graph.tensor_consumers(t)}
            if source <= row["after"] and any(reader >= row["before"] for reader in readers):
                size = int(graph.tensor_bytes[t])
                known = None if size == UNKNOWN_BYTES else size
                expected.append({"name": name, "bytes": known, "from": source, "to": sorted(readers - {source})})
        assert row["tensors"] == expected


def test_cut_names_pass_over_empty_stages() -> None:
    """Boundaries are between stages that run something; one stage has none."""
    request = _staged(1, 3)
    spread = Request(request.graph, request.assignment * 3, 9)
    assert [row["after"] for row in json.loads(emit("cut-names", spread))["boundaries"]] == [0, 3]
    assert json.loads(emit("cut-names", _staged(1, 1)))["boundaries"] == []


def test_tflite_segments_have_the_numbers_of_their_stages() -> None:
    """A stage that runs nothing is no segment."""
    request = cut(*transformer(3), ["mask", "add1"])
    spread = Request(request.graph, request.assignment * 2, 6, request.modules)
    document = json.loads(emit("tflite-segments", spread))
    assert [row["stage"] for row in document["segments"]] == [0, 2, 4]


def test_tflite_segments() -> None:
    """Cutting the ops in order by the counts gives the stages back."""
    request = cut(*transformer(3), ["mask", "add1"])
    document = json.loads(emit("tflite-segments", request))
    counts = [int(count) for count in document["num_ops"].split(",")]
    assert np.repeat(range(3), counts).tolist() == request.assignment.tolist()
    assert [(row["first"], row["last"]) for row in document["segments"]] == [
        ("embed", "mask"),
        ("norm0", "add1"),
        ("norm2", "head"),
    ]
    assert [row["outputs"] for row in document["segments"]] == [["t_embed", "t_mask"], ["t_add1"], []]


def test_tflite_counts_of_an_onnx_model() -> None:
    """They would be counts of other ops, so none are given."""
    graph, modules = transformer(1)
    fields = {name: getattr(graph, name) for name in graph.__dataclass_fields__}
    onnx_graph = CostGraph(**fields | {"metadata": {"format": "onnx"}})
    document = json.loads(emit("tflite-segments", cut(onnx_graph, modules, ["mask"])))
    assert (document["num_ops"], document["num_segments"]) == (None, 2)


def test_the_registry() -> None:
    """Each form is named once, described, and an unknown one is refused with the known ones."""
    assert EXPORTERS == ("cut-names", "torch", "vllm", "megatron", "tflite-segments")
    assert all(entry.summary for entry in EMITTERS)
    with pytest.raises(InputError, match="emit: unknown form 'x'; use one of cut-names, torch"):
        emit("x", _staged(1, 1))
