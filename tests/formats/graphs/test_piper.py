"""Workloads of the Piper planner: all configurations of all layers, and names that differ from file to file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from piper_documents import configuration, document, edge, layer
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.piper import is_recomputation, read_workload
from mtpp.formats.io.json_text import parse_json


def test_the_whole_workload() -> None:
    """All configurations, and both names of the number of micro-batches; parts of a byte are rounded up."""
    plain = configuration(syncTimeFw={"1": 5.0}, syncTimeBw={"4": 6.5})
    nodes = [layer(1), layer(2, plain, degree="8"), layer(4)]
    for key in ("maxBatchSize", "mbsInBatch"):
        workload = read_workload(document(nodes, [edge(1, 2), edge(2, 4)], **{key: 1920}), "p.json")
        assert workload.micro_batches == 1920
    (found,) = workload.layers[2].configurations[8]
    assert (found.forward_sync_bytes, found.backward_sync_bytes) == ({1: 5}, {4: 7})
    assert (found.memory_a, found.memory_b) == (3, 4)
    assert [one.name for one in workload.layers.values()] == ["layer #1", "layer #2", "layer #4"]
    assert (workload.max_devices, workload.memory_bytes_per_device, workload.bandwidth_bytes_per_s) == (
        10,
        80 * 10**9,
        25 * 10**9,
    )


@pytest.mark.parametrize(
    ("name", "recomputes"),
    [
        ("activation recomp", True),
        ("activation recomputation", True),
        ("activation-recomp", True),
        ("Activation_Recompute", True),
        ("ACTIVATIONRECOMP", True),
        ("dim 2, activation recomp", True),
        ("recompute", True),
        ("activation checkpointing", True),
        ("vanilla", False),
        ("no activation recomp", False),
        ("without recomputation", False),
        ("precomputed", False),
        ("activation", False),
        ("", False),
    ],
)
def test_recomputation_goes_by_name(name: str, recomputes: bool) -> None:
    """However it is spelled, and not where the name denies it."""
    assert is_recomputation(name) is recomputes
    workload = read_workload(document([layer(1, configuration(name))], []), "p.json")
    assert workload.layers[1].configurations[1][0].recomputes is recomputes


@pytest.mark.parametrize("key", ["id", "memoryUsageA", "memoryUsageB"])
def test_training_needs_what_inference_does_not(key: str) -> None:
    """A configuration without a name or memory is half a configuration."""
    half = {other: value for other, value in configuration().items() if other != key}
    content = document([layer(1), layer(2, half)], [])
    assert read_workload(content, "p.json").layers[2].configurations[1][0].parameter_bytes == 10**9
    with pytest.raises(InputError, match=f"^p.json: /nodes/1/TMPCs/1/0: missing key '{key}'; add it$"):
        read_workload(content, "p.json", for_training=True)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"maxMemoryPerDevice": 0}, "/maxMemoryPerDevice: must be above zero"),
        ({"bandwidth": 0.0}, "/bandwidth: must be above zero"),
        ({"bandwidth": -1}, "/bandwidth: a size must be at least 0"),
        ({"bandwidth": "25GB/s"}, "/bandwidth: must be a number, not a string"),
        ({"maxDevices": 1.5}, "/maxDevices: must be a whole number"),
        ({"mbsInBatch": 0}, "/mbsInBatch: must be at least 1"),
        ({"mbsInBatch": True}, "/mbsInBatch: must be a number, not true"),
    ],
)
def test_machines_that_cannot_be(more: dict[str, Any], message: str) -> None:
    """What a file says of its machine is checked even where it is not used."""
    assert str(refusal(read_workload, document([layer(1)], [], **more), "p.json")).startswith(f"p.json: {message}")


def test_published_synchronisation_is_in_bytes_by_neighbour(shared_data: Path) -> None:
    """Forward keys are predecessors, backward keys are successors, and a whole tensor is handed over."""
    path = shared_data / "piper" / "bert32a100.json"
    workload = read_workload(parse_json(path.read_bytes(), str(path)), str(path), for_training=True)
    sources = {(one.source, one.target): one.communication_bytes for one in workload.edges}
    seen = 0
    for node in workload.layers.values():
        for found in node.configurations[8]:
            assert all((other, node.id) in sources for other in found.forward_sync_bytes)
            assert all((node.id, other) in sources for other in found.backward_sync_bytes)
            seen += len(found.forward_sync_bytes) + len(found.backward_sync_bytes)
    assert seen > len(sources)
    assert workload.micro_batches == 1920
