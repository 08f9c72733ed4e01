"""Samples through ONNX and as exported programs: the same architecture costs the same, and is cut alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mtpp
from mtpp.api.inputs.model import Model
from mtpp.datasets import sample_path
from mtpp.inference.graph import CostGraph

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

    These are copies, biases that ONNX adds to a product, and normalisations that its exporter folds into convolutions.
    """
    reads = [0] * graph.op_count
    for reader in graph.edges[1].tolist():
        reads[reader] += 1
    work = [
        0
        if kind in COPIES or kind == "aten.batch_norm" or (kind == "Add" and parameters > 4096 and reads[v] == 1)
        else cost
        for v, (kind, parameters, cost) in enumerate(zip(graph.op_kinds, graph.param_bytes, graph.work, strict=True))
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
