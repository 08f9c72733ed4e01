"""Kinds of repeated blocks: two stacks, a U-Net, blocks within blocks, and blocks that wait for one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from graph_strategies import random_graph
from refusals import refusal

from mtpp.formats.exporters.block_kinds import BlockKinds, find_block_kinds
from mtpp.formats.exporters.request import Request
from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.machine.presets import load_device

BLOCK = ("norm.Norm", "mixer.q.Linear", "mixer.o.Linear", ".Add")
"""Module within a block and kind of its ops."""


def graph_of(edges: Mapping[str, Sequence[str]], kinds: Mapping[str, str]) -> CostGraph:
    """Return a graph of ops called by their names, each with one tensor to its readers."""
    ops = [Op(name, 1, kinds.get(name, "Op")) for name in edges]
    return CostGraph.build(
        name="g", time_unit="us", ops=ops, tensors=[Tensor(f"t{n}", n, tuple(r), bytes=1) for n, r in edges.items()]
    )


def kinds_of(graph: CostGraph, modules: Mapping[str, str]) -> BlockKinds:
    """Find the kinds of a graph whose ops are of these modules."""
    return find_block_kinds(Request(graph, np.zeros(graph.op_count, dtype=np.int32), 1, modules))


def stacked(blocks: Sequence[str], skips: Sequence[tuple[int, int]] = ()) -> tuple[CostGraph, dict[str, str]]:
    """Return blocks at these paths, one after the other; skips lead from the end of one to the begin of another."""
    edges: dict[str, list[str]] = {"stem": []}
    modules, kinds, last, ends = {"stem": "stem"}, {"stem": "Conv"}, "stem", []
    begins = []
    for i, path in enumerate(blocks):
        for j, part in enumerate(BLOCK):
            within, _, kind = part.rpartition(".")
            name = f"op{i}_{j}"
            edges[last].append(name)
            edges[name], modules[name], kinds[name], last = [], f"{path}.{within}".rstrip("."), kind, name
        begins.append(f"op{i}_0")
        ends.append(last)
    for a, b in skips:
        edges[ends[a]].append(begins[b])
    edges[last].append("head")
    edges["head"], modules["head"], kinds["head"] = [], "head", "Linear"
    return graph_of(edges, kinds), modules


ENCODER_DECODER = [f"encoder.block.{i}" for i in range(3)] + [f"decoder.block.{i}" for i in range(2)]
UNET = ["down.0.res.0", "down.0.res.1", "down.1.res.0", "down.1.res.1", "mid.res.0", "mid.res.1", "up.0.res.0",
        "up.0.res.1", "up.1.res.0", "up.1.res.1"]  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "skips", "told", "sizes"),
    [
        (ENCODER_DECODER, [(2, 4)], "3 of encoder.block, 2 of decoder.block", [4] * 5),
        (UNET, [(0, 9), (1, 8), (2, 7), (3, 6)], "2 of down, mid, 2 of up", [8] * 5),
        (["layers.0", "layers.1.experts.0", "layers.1.experts.1", "layers.2"], [], "3 of layers", [4, 8, 4]),
        (["0", "1", "2"], [], "3 of the model", [4] * 3),
    ],
)  # fmt: skip
def test_kinds_are_lists_of_modules(
    blocks: list[str], skips: list[tuple[int, int]], told: str, sizes: list[int]
) -> None:
    """The outermost list of modules that are alike counts; a module like its blocks is one; merging leaves them."""
    graph, modules = stacked(blocks, skips)
    found = kinds_of(graph, modules)
    assert found.describe() == f"blocks kept whole: {told}"
    assert [len(block) for block in found.groups] == sizes
    merged = contract(Instance.build(graph, Machine.uniform(2, load_device())), found.groups)
    assert merged.instance.op_count == len(sizes) + 2
    assert len({merged.group_of[block[0]] for block in found.groups}) == len(sizes)


def test_what_is_not_alike_is_no_kind() -> None:
    """A Sequential of an embedding, a stack and a head has the stack's layers as blocks."""
    graph, modules = stacked([f"1.layers.{i}" for i in range(3)])
    modules |= {"stem": "0", "head": "2.out"}
    assert kinds_of(graph, modules).describe() == "blocks kept whole: 3 of 1.layers"
    alone = graph_of({"a": ["b"], "b": []}, {})
    assert "no repeated blocks" in refusal(kinds_of, alone, {"a": "stem", "b": "head"}).problem
    assert "does not say which modules" in refusal(kinds_of, alone, {}).problem


@pytest.mark.parametrize("seed", range(3))
def test_entangled_blocks_are_counted_and_share_a_stage(seed: int) -> None:
    """Blocks of ops here and there: those on a circle, by their definition, are one op once blocks are merged."""
    rng = Random(seed)
    graph = random_graph(seed, 14, time_unit="us", consumers_per_tensor=0.7)
    modules = {name: f"layers.{rng.randrange(5)}" if rng.random() < 0.7 else "rest" for name in graph.op_names}
    found = kinds_of(graph, modules)
    reach = np.eye(graph.op_count, dtype=bool)
    for u, v in zip(*(ends.tolist() for ends in graph.edges), strict=True):
        reach[u, v] = True
    for block in found.groups:
        reach[np.ix_(block, block)] = True
    for via in range(graph.op_count):
        reach |= np.outer(reach[:, via], reach[via])
    both = reach & reach.T
    expected = sum(any(both[a[0], b[0]] for b in found.groups if b is not a) for a in found.groups)
    assert found.entangled == expected
    assert ("wait for one another" in found.describe()) == bool(expected)
    merged = contract(Instance.build(graph, Machine.uniform(2, load_device())), found.groups)
    assert np.array_equal(merged.group_of[:, None] == merged.group_of, both)
