"""Cut tensors and segments, against what the definition says of each tensor."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exporter_requests import cut, transformer
from graph_strategies import random_graph

from mtpp.errors import InputError
from mtpp.formats.exporters.registry import EMITTERS, emit
from mtpp.formats.exporters.request import Request
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.names import EXPORTERS


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
