"""GPUs that share a stage: keys of machine files, documents, text, and the time of what they send."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import mtpp
from mtpp.checker.document import machine as machine_rule
from mtpp.errors import InputError
from mtpp.machine.machine import Machine
from mtpp.machine.tensor_group import TensorGroup, all_reduced_bytes, gathered_bytes

NODES = """
name = "nodes"
[[device]]
name = "plain"
system = "a100"
[[device]]
name = "node"
count = 2
system = "a100"
tensor_parallel = [8, 1, 2]
tensor_link = "300GB/s"
[[device]]
name = "whole"
system = "a100"
tensor_parallel = 8
tensor_link = "300GB/s"
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Machine:
    """Return a GPU alone, two nodes of at most eight, and one whose stage is on all eight."""
    path = tmp_path / "nodes.toml"
    path.write_text(NODES, encoding="utf-8")
    return Machine.read(str(path))


def test_degrees_are_read(nodes: Machine) -> None:
    """A number is a list of one; devices with other degrees are of another class."""
    rate = 300 * 10**9
    assert [device.tensor for device in nodes.classes] == [
        TensorGroup(), TensorGroup((1, 2, 8), rate), TensorGroup((8,), rate),
    ]  # fmt: skip
    assert [bool(device.tensor) for device in nodes.classes] == [False, True, True]
    assert nodes.class_of == (0, 1, 1, 2)


def test_documents_hold_them(nodes: Machine) -> None:
    """Devices without them have no such keys; all is read back, and the checker knows the keys."""
    document = nodes.to_document()
    plain, node, _, whole = document["devices"]
    assert not plain.keys() & {"tensor_parallel", "tensor_link_bytes_per_s"}
    assert (node["tensor_parallel"], whole["tensor_parallel"]) == ([1, 2, 8], [8])
    assert node["tensor_link_bytes_per_s"] == 300 * 10**9
    assert Machine.from_document(document).classes == nodes.classes
    machine_rule(document, ())


def test_they_are_described(nodes: Machine) -> None:
    """A phrase beside the other figures."""
    text = nodes.describe()
    assert "2 × node (312 TFLOP/s" in text
    assert text.count("1, 2 or 8 GPUs a stage, 300 GB/s between them") == 1
    assert "; whole (" in text
    assert TensorGroup((1,), 5).described() == "1 GPU a stage, 5 B/s between them"


@pytest.mark.parametrize(
    ("degree", "size", "summed", "gathered"),
    [(1, 10**6, 0, 0), (2, 8192, 8192, 4096), (8, 8192, 14336, 7168), (3, 10, Fraction(40, 3), Fraction(20, 3))],
)
def test_a_ring_sends_each_share_twice(degree: int, size: int, summed: Fraction, gathered: Fraction) -> None:
    """2 · (t - 1) / t of a tensor that is summed, half of that of one that is gathered."""
    assert all_reduced_bytes(size, degree) == summed
    assert gathered_bytes(size, degree) == gathered


def test_times_are_rounded_up_once() -> None:
    """40/3 bytes at 7 bytes a second; nothing is sent without a link."""
    assert TensorGroup((1, 3), 7).exchange_ps(Fraction(40, 3)) == -(-40 * 10**12 // 21)
    assert TensorGroup((8,), 450 * 10**9).exchange_ps(0) == 0
    assert TensorGroup().exchange_ps(8) == 0


@pytest.mark.parametrize("degrees", [(), (0,), (True,), (2, 1), (2, 2), (2.0,)])
def test_degrees_are_ascending_whole_numbers(degrees: tuple[int, ...]) -> None:
    """Whoever makes a group in Python is told the same."""
    with pytest.raises(InputError, match=r"tensor_parallel"):
        TensorGroup(degrees, 1)


def test_other_graphs_are_not_divided(tmp_path: Path) -> None:
    """In one line with the place."""
    graph = tmp_path / "graph.json"
    document = {
        "format": "mtpp-graph", "version": 1, "name": "two", "time_unit": "us", "ops": [{"name": "a", "work": 1}],
        "tensors": [],
    }  # fmt: skip
    graph.write_text(json.dumps(document))
    path = tmp_path / "nodes.toml"
    path.write_text(NODES, encoding="utf-8")
    with pytest.raises(InputError, match=r"/device/1/tensor_parallel: only layers of language models"):
        mtpp.read(graph, machine=path)
