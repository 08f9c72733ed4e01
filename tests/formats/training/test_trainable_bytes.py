"""Layers of which only some parameters are trained: replicas synchronise the gradients of these alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planning import plan_with

import mtpp
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.training.native import training_model_from_document, write_training_model


def model(trainable: int | None) -> dict[str, Any]:
    """Return three layers, of which the middle one may say what is trained."""
    choices = {
        str(t): [
            {"id": "plain", "time": 12 // t, "parameter_bytes": 6_000_000_000 // t,
             "memory_bytes_per_micro_batch": 10, "memory_bytes": 100}
        ]
        for t in (1,)
    }  # fmt: skip
    layers: list[dict[str, Any]] = [{"name": f"l{i}", "configurations": choices} for i in range(3)]
    if trainable is not None:
        layers[1]["trainable_bytes"] = trainable
    edges = [{"source": f"l{i}", "target": f"l{i + 1}", "bytes": 10} for i in range(2)]
    return {
        "format": "mtpp-training-model", "version": 1, "name": "m", "time_unit": "ms", "micro_batch_size": 1,
        "layers": layers, "edges": edges,
    }  # fmt: skip


ASKED: dict[str, dict[str, Any]] = {
    "piper": {"devices": 4, "memory": "1kB", "bandwidth": "100GB/s", "max_micro_batches": 8, "tensor_parallel": False},
    "graphpipe": {"devices": 4, "memory": "1kB", "bandwidth": "100GB/s", "batch_size": 8},
}


@pytest.mark.parametrize("planner", ASKED)
def test_gradients_of_frozen_layers_are_not_synchronised(planner: str) -> None:
    """Plans are no slower the less is trained, faster where it counts, and all of them verify."""
    taken = []
    for trainable in (None, 6_000_000_000, 1_000_000_000, 0):
        plan = plan_with(model(trainable), planner=planner, **ASKED[planner])
        assert mtpp.verify(plan, model(trainable)).passed
        taken.append(plan.document()["iteration_ticks" if planner == "graphpipe" else "time_per_sample"])
    assert taken[0] == taken[1] >= taken[2] >= taken[3]
    frozen = model(0)
    for layer in frozen["layers"]:
        layer["trainable_bytes"] = 0
    plan = plan_with(frozen, planner=planner, **ASKED[planner])
    assert mtpp.verify(plan, frozen).passed
    assert not mtpp.verify(plan, model(None)).passed


def test_trainable_bytes_are_read_and_written() -> None:
    """Each of t devices has its part of them; more than there are is refused by its place."""
    document = parse_json(json.dumps(model(3_000_000_001)).encode(), "x")
    half = {"id": "half", "time": 6, "parameter_bytes": 3_000_000_000, "memory_bytes_per_micro_batch": 5}
    half |= {"memory_bytes": 50, "sync_in": {"l0": 1}, "sync_out": {"l2": 1}}
    document["layers"][1]["configurations"]["2"] = [half]
    read = training_model_from_document(document, "x")
    assert read.layers[0].configurations[1][0].trainable_bytes is None
    assert [read.layers[1].configurations[t][0].gradient_bytes for t in (1, 2)] == [3_000_000_001, 1_500_000_001]
    again = training_model_from_document(parse_json(write_training_model(read).encode(), "y"), "y")
    assert again.layers[1] == read.layers[1]
    document["layers"][1]["trainable_bytes"] = 6_000_000_001
    with pytest.raises(mtpp.InputError, match=r"/layers/1/trainable_bytes: 6000000001 of 6000000000 bytes"):
        training_model_from_document(document, "x")
