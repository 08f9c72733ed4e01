"""The native format beyond its round trip: what is left out, what is refused, what a plan embeds."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from graph_strategies import graphs
from hypothesis import given
from refusals import refusal

from mtpp.errors import InputError
from mtpp.formats.graphs.native import graph_from_document, read_native, ticks_document, to_document, write_native
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device


def _document(**changes: Any) -> dict[str, Any]:
    return {
        "format": "mtpp-graph",
        "version": 1,
        "name": "g",
        "time_unit": "ms",
        "ops": [{"name": "a", "work": 1}, {"name": "b", "work": 2}],
        "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 8}],
        **changes,
    }


def _with_op(**keys: Any) -> dict[str, Any]:
    return _document(ops=[{"name": "a", "work": 1}, {"name": "b", "work": 2, **keys}])


def _with_tensor(**keys: Any) -> dict[str, Any]:
    return _document(tensors=[{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 8, **keys}])


WRONG = [
    (None, "x: /: must be an object, not null"),
    (_document(version=True), "x: /version: mtpp-graph version true is not supported; this program reads version 1"),
    (_document(version="1"), "x: /version: mtpp-graph version '1' is not supported; this program reads version 1"),
    (_document(format=["mtpp-graph"]), 'x: /format: the format is an array; it must be "mtpp-graph"'),
    (_document(name=None), "x: /name: must be a string, not null"),
    (_document(time_unit=1), "x: /time_unit: must be a string, not a number"),
    (_document(metadata=[]), "x: /metadata: must be an object, not an array"),
    (_document(ops=[3]), "x: /ops/0: must be an object, not a number"),
    (_document(tensors={}), "x: /tensors: must be an array, not an object"),
    (_with_op(kind=None), "x: /ops/1/kind: must be a string, not null"),
    (_with_op(param_bytes=Fraction(1, 2)), "x: /ops/1/param_bytes: must be a whole number; round it"),
    (_with_op(work="2"), "x: /ops/1/work: must be a number, not a string; write it without quotes"),
    (_with_op(param_byte=2), "x: /ops/1: unknown key 'param_byte'; did you mean 'param_bytes' or 'kept_bytes'?"),
    (
        _with_op(zzz=2),
        "x: /ops/1: unknown key 'zzz'; known keys: name, work, kind, param_bytes, backward, kept_bytes, "
        "trainable_bytes, backward_share",
    ),
    (_with_tensor(producer=1), "x: /tensors/0/producer: must be a string, not a number"),
    (_with_tensor(consumers="b"), "x: /tensors/0/consumers: must be an array, not a string"),
    (_with_tensor(consumers=["b", None]), "x: /tensors/0/consumers/1: must be a string, not null"),
    (_with_tensor(bytes=None), "x: /tensors/0/bytes: must be a number, not null"),
    (_with_tensor(transfer=False), "x: /tensors/0/transfer: must be a number, not false"),
    (_with_tensor(transfer=-1), "x: /tensors/0/transfer: a cost cannot be negative"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=[message[3:45] for _, message in WRONG])
def test_wrong_documents(document: Any, message: str) -> None:
    """Every wrong type, unknown key and version is named with its place."""
    assert str(refusal(graph_from_document, document, "x")) == message


def test_what_is_unknown_is_left_out() -> None:
    """An op without kind and parameters, and a tensor without bytes, have no such keys in the file."""
    graph = CostGraph.build(
        name="g",
        time_unit="us",
        ops=[Op("a", Fraction(1, 2)), Op("b", 1, "Relu", 4)],
        tensors=[Tensor("t", "a", ("b",), None, 3), Tensor("u", "b", (), 5)],
    )
    assert to_document(graph) == {
        "format": "mtpp-graph",
        "version": 1,
        "name": "g",
        "time_unit": "us",
        "ops": [{"name": "a", "work": Fraction(1, 2)}, {"name": "b", "kind": "Relu", "work": 1, "param_bytes": 4}],
        "tensors": [
            {"name": "t", "producer": "a", "consumers": ["b"], "transfer": 3},
            {"name": "u", "producer": "b", "consumers": [], "bytes": 5},
        ],
    }


def test_metadata_is_plain_json() -> None:
    """Decimals in metadata are floats: nothing is computed from them."""
    text = write_native(graph_from_document(_document(metadata={"a": [Fraction(1, 2), {"b": None}]}), "x"))
    metadata = read_native(text.encode(), "x").metadata
    assert metadata == {"a": [0.5, {"b": None}]}
    assert type(metadata["a"][0]) is float


def test_costs_that_are_no_decimals_are_not_rounded() -> None:
    """A third of a second cannot be written, and is not."""
    graph = CostGraph.build(name="g", time_unit="s", ops=[Op("a", Fraction(1, 3))], tensors=[])
    with pytest.raises(InputError, match="no finite decimal"):
        write_native(graph)


@given(graphs(max_ops=6))
def test_a_graph_in_ticks_is_the_same_instance(graph: CostGraph) -> None:
    """What a plan embeds needs no bandwidth and gives the ticks it was made from."""
    instance = Instance.build(graph, Machine.uniform(3, load_device()))
    document = ticks_document(graph, instance.work.tolist(), instance.transfer.tolist())
    again = graph_from_document(document, "x")
    assert again.time_unit == ("1" if graph.time_unit == "1" else "ps")
    assert again.work == tuple(instance.work.tolist())
    assert again.transfer == tuple(instance.transfer.tolist())
    assert again.op_names == graph.op_names
    assert np.array_equal(again.consumers, graph.consumers)
    assert np.array_equal(again.tensor_bytes, graph.tensor_bytes)
    assert ticks_document(graph, instance.work, instance.transfer) == document  # type: ignore[arg-type]


def test_keys_for_training() -> None:
    """Backward passes and what is kept for them go through reading, writing and networkx; others are left out."""
    document = {
        "format": "mtpp-graph",
        "version": 1,
        "name": "trained",
        "time_unit": "ms",
        "ops": [
            {"name": "a", "work": 1, "backward": 2.5, "kept_bytes": 7},
            {"name": "b", "work": 1, "param_bytes": 8, "trainable_bytes": 4, "backward_share": 0.5},
        ],
        "tensors": [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 4}],
    }
    graph = read_native(json.dumps(document).encode(), "x")
    assert graph.backward == (Fraction(5, 2), None)
    assert graph.kept_bytes == (7, None)
    assert graph.trainable_bytes == (None, 4)
    assert graph.backward_share == (None, Fraction(1, 2))
    assert json.loads(write_native(graph)) == document
    again = CostGraph.from_networkx(graph.to_networkx())
    assert again.training_columns == graph.training_columns
    assert "backward" not in ticks_document(graph, [1, 1], [1])["ops"][0]
    plain = CostGraph.build(name="p", time_unit="ms", ops=[Op("a", 1)], tensors=[])
    assert set(plain.training_columns.values()) == {()}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("backward", -1, "/ops/0/backward"),
        ("backward", "1", "/ops/0/backward"),
        ("backward", None, "/ops/0/backward"),
        ("kept_bytes", -1, "/ops/0/kept_bytes"),
        ("kept_bytes", 1.5, "/ops/0/kept_bytes"),
        ("kept_bytes", 2**62, "/ops/0/kept_bytes"),
        ("trainable_bytes", -1, "/ops/0/trainable_bytes"),
        ("trainable_bytes", 1, "/ops/0/trainable_bytes"),
        ("backward_share", 1.5, "/ops/0/backward_share"),
        ("backward_share", -1, "/ops/0/backward_share"),
        ("backward_share", True, "/ops/0/backward_share"),
    ],
)
def test_bad_keys_for_training(key: str, value: Any, said: str) -> None:
    """Costs of backward passes are checked as other costs are, and the place is named."""
    ops = [{"name": "a", "work": 1, key: value}]
    document = {"format": "mtpp-graph", "version": 1, "name": "x", "time_unit": "ms", "ops": ops, "tensors": []}
    assert refusal(read_native, json.dumps(document).encode(), "x").where == said
