"""Calls of modules that run several times are blocks of their own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from mtpp.formats.exporters.block_kinds import BlockKinds, find_block_kinds
from mtpp.formats.exporters.module_calls import with_calls_apart
from mtpp.formats.exporters.request import Request
from mtpp.inference.graph import CostGraph, Op, Tensor

Calls = list[tuple[str, Mapping[str, int]]]


def _layers(*calls: tuple[str, Mapping[str, int]]) -> Calls:
    """Return two ops of each call of a layer, between a stem and a head."""
    parts = [(f"{path}.{part}", visits) for path, visits in calls for part in ("attention", "mlp")]
    return [("stem", {}), *parts, ("head", {})]


def _kinds(calls: Calls) -> BlockKinds:
    """Return the kinds of a chain of ops of these modules."""
    names = [f"op{i}" for i in range(len(calls))]
    ops = [Op(name, 1, path.rpartition(".")[2]) for name, (path, _) in zip(names, calls, strict=True)]
    tensors = [Tensor(f"t{i}", names[i], (names[i + 1],), bytes=1) for i in range(len(names) - 1)]
    graph = CostGraph.build(name="g", time_unit="us", ops=ops, tensors=tensors)
    paths = {name: path for name, (path, _) in zip(names, calls, strict=True)}
    visits = {name: own for name, (_, own) in zip(names, calls, strict=True) if own}
    return find_block_kinds(Request(graph, np.zeros(len(names), dtype=np.int32), 1, paths, visits=visits))


SHARED = [("layer", {"layer": i} if i else {}) for i in range(4)]
IN_LISTS = [(f"enc.groups.0.layers.{j}", {"enc.groups.0": i, f"enc.groups.0.layers.{j}": i} if i else {})
            for i in range(3) for j in range(2)]  # fmt: skip
IN_ONE = [("enc.groups.0.layers.0", {"enc.groups.0": i, "enc.groups.0.layers.0": i} if i else {}) for i in range(4)]
STACK = [(f"stack.layers.{j}", {"stack": i, f"stack.layers.{j}": i} if i else {}) for i in range(2) for j in range(3)]


@pytest.mark.parametrize(
    ("layers", "ops", "told"),
    [
        (SHARED, 2, "4 calls of layer"),
        (IN_ONE, 2, "4 calls of enc.groups"),
        (IN_LISTS, 4, "3 calls of enc.groups"),
        (STACK, 2, "6 calls of stack.layers"),
        ([(f"layers.{i}", {}) for i in range(4)], 2, "4 of layers"),
    ],
)
def test_a_block_for_each_call(layers: Calls, ops: int, told: str) -> None:
    """Of a layer alone, in a list, in a list within a list, and in a stack that is called again."""
    kinds = _kinds(_layers(*layers))
    inner = list(range(1, 2 * len(layers) + 1))
    assert kinds.groups == [tuple(inner[i : i + ops]) for i in range(0, len(inner), ops)]
    assert kinds.describe() == f"blocks kept whole: {told}"
    assert kinds.entangled == 0


def test_small_modules_that_run_again_are_no_blocks() -> None:
    """An activation that all layers share stays where it is."""
    layers = [(f"layers.{i}", {}) for i in range(3)]
    calls = _layers(*layers)
    calls.insert(2, ("act", {}))
    calls.insert(5, ("act", {"act": 1}))
    assert _kinds(calls).describe() == "blocks kept whole: 3 of layers"
    inner: Calls = [(f"layers.{i}.{part}", {f"layers.{i}.{part}": n} if n else {})
                    for i in range(2) for n in range(2) for part in ("norm", "act")]  # fmt: skip
    paths = [path for path, _ in inner]
    assert with_calls_apart(paths, [own for _, own in inner]) == (paths, frozenset())


def test_an_op_of_several_calls_is_in_none() -> None:
    """It stays with the module around the calls."""
    paths = ["layer.a", "layer.b", "layer.a", "layer.norm", "layers.0.a", "layers.0.a", "layers.0.b"]
    visits: list[Mapping[str, int]] = [
        {}, {}, {"layer": 1}, {"layer": -1}, {"layers.0": 2}, {"layers.0": -1}, {"layers.0.b": 1},
    ]  # fmt: skip
    due = ["layer.0.a", "layer.0.b", "layer.1.a", "layer", "layers.2.a", "layers", "layers.0.b"]
    assert with_calls_apart(paths, visits) == (due, {"layer", "layers"})
