"""A small transformer with the modules that its ops came from, cut as tests like it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.formats.exporters.request import Request
from mtpp.inference.graph import CostGraph, Op, Tensor

OPS_PER_LAYER = ("norm", "attention", "residual", "up", "down", "add")
"""What each layer runs; the last one makes the only tensor that the next layer needs, the mask apart."""


def transformer(layers: int) -> tuple[CostGraph, dict[str, str]]:
    """Return a graph of ``embed``, ``mask``, layers of six ops, ``norm`` and ``head``, and the module of each op."""
    ops, tensors = [Op("embed", 1, "Gather", 100), Op("mask", 0, "Cast")], []
    modules = {"embed": "model.embed_tokens", "mask": ""}
    readers: dict[str, list[str]] = {"embed": [], "mask": []}
    value = "embed"
    for layer in range(layers):
        norm, attention, residual, up, down, add = (f"{name}{layer}" for name in OPS_PER_LAYER)
        for name, module, size in (
            (norm, ".norm", 1),
            (attention, ".attention", 9),
            (residual, "", 0),
            (up, ".mlp.up", 9),
            (down, ".mlp.down", 9),
            (add, "", 0),
        ):
            ops.append(Op(name, 3, "MatMul", size))
            modules[name] = f"model.layers.{layer}{module}"
            readers[name] = []
        for source, target in (
            (value, norm), (norm, attention), ("mask", attention), (attention, residual), (value, residual),
            (residual, up), (up, down), (down, add), (residual, add),
        ):  # fmt: skip
            readers[source].append(target)
        value = add
    for name in ("norm", "head"):
        ops.append(Op(name, 2, "MatMul", 50))
        modules[name] = "model.norm" if name == "norm" else "lm_head"
        readers[value].append(name)
        readers[name], value = [], name
    tensors = [Tensor(f"t_{name}", name, tuple(targets), bytes=8) for name, targets in readers.items()]
    return CostGraph.build(name="small", time_unit="us", ops=ops, tensors=tensors), modules


def cut(graph: CostGraph, modules: dict[str, str], ends: Sequence[str], k: int | None = None) -> Request:
    """Return a request whose stages end after the ops called *ends*, in file order."""
    stages = np.searchsorted([graph.op_names.index(name) for name in ends], np.arange(graph.op_count), side="left")
    return Request(graph, stages.astype(np.int32), k or len(ends) + 1, modules)
