"""Real graphs whose formats have no reader yet: PipeDream's profiles and the placement graphs.

Costs are kept where they are plain; what matters here is the structure. See ``../shared/data/README.md`` for the traps.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.system import load_system


def pipedream_graph(path: Path) -> CostGraph:
    """Read ``graph.txt``: a line per node, one with a tab per edge. The time of ``Input`` is data loading: 0 here."""
    ops: list[Op] = []
    sizes: dict[str, int] = {}
    readers: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("\t"):
            producer, consumer = line.strip().split(" -- ")
            readers[producer].append(consumer)
        elif line.strip():
            name, kind, values = line.split(" -- ")
            figures = dict(item.split("=") for item in values.split(", "))
            work = Fraction(0) if kind == "Input" else Fraction(figures["forward_compute_time"])
            ops.append(Op(name, work, kind.partition("(")[0], int(float(figures["parameter_size"]))))
            # Several outputs are given as a list, though edges do not say which one they carry.
            sizes[name] = int(sum(map(float, figures["activation_size"].strip("[]").split("; "))))
            readers[name] = []
    tensors = [Tensor(f"{op.name} out", op.name, tuple(readers[op.name]), sizes[op.name]) for op in ops]
    return CostGraph.build(name=path.stem, time_unit="ms", ops=ops, tensors=tensors)


def placement_graph(path: Path, *, keep_parameters: bool = False) -> CostGraph:
    """Read an inference graph of ``placement/``; sources without time are parameters and left out."""
    document: dict[str, Any] = json.loads(path.read_text())
    fed = {edge["destId"] for edge in document["edges"]}
    nodes = {
        node["id"]: node
        for node in document["nodes"]
        if keep_parameters or node["id"] in fed or node["cpuLatency"] or node["fpgaLatency"]
    }
    readers: dict[int, dict[int, int]] = {node: {} for node in nodes}
    for edge in document["edges"]:
        if edge["sourceId"] in nodes and edge["destId"] in nodes:
            readers[edge["sourceId"]][edge["destId"]] = int(edge["size"])
    ops = [Op(f"op{i}", Fraction(str(node["fpgaLatency"])), str(node["name"])) for i, node in nodes.items()]
    tensors = [
        Tensor(f"t{i}", f"op{i}", tuple(f"op{j}" for j in found), max(found.values(), default=0))
        for i, found in readers.items()
    ]
    return CostGraph.build(name=path.stem, time_unit="ms", ops=ops, tensors=tensors)


def placement_instance(path: Path, k: int = 1, *, keep_parameters: bool = False) -> Instance:
    """Read a graph of ``placement/`` and merge the ops of each colour class, and those on a cycle that this makes."""
    graph = placement_graph(path, keep_parameters=keep_parameters)
    number = {name: v for v, name in enumerate(graph.op_names)}
    classes: dict[int, list[int]] = {}
    for node in json.loads(path.read_text())["nodes"]:
        if node.get("colorClass") is not None and f"op{node['id']}" in number:
            classes.setdefault(node["colorClass"], []).append(number[f"op{node['id']}"])
    return contract(Instance.build(graph, load_system(), k), list(classes.values())).instance
