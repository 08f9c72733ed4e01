"""The wiring of a graph: names defined once and before they are used, no cycles, what a body captures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import onnx

from mtpp.errors import InputError
from mtpp.formats.onnx.scope import Scope
from mtpp.inference.topological import cycle_text, find_cycle, first_come_order

LEAST_WITH_DEFAULTS = 4
"""IR version from which on an initializer that is an input as well is its default; below, all had to be."""


def subgraphs(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Yield the bodies of a node with the names of the attributes that hold them."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH or attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def parameter_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of a graph's initializers, dense and sparse."""
    names = {tensor.name for tensor in graph.initializer}
    return names | {tensor.values.name for tensor in graph.sparse_initializer}


def overridable_names(model: onnx.ModelProto) -> set[str]:
    """Return the initializers that are defaults of inputs: a caller may give them other values."""
    if model.ir_version < LEAST_WITH_DEFAULTS:
        return set()
    return parameter_names(model.graph) & {value.name for value in model.graph.input}


def captured(graph: onnx.GraphProto) -> list[str]:
    """Return the names that a body, or a body nested in it, reads from the graphs around it; each once."""
    local = {value.name for value in graph.input} | parameter_names(graph)
    for node in graph.node:
        local.update(node.output)
    names = dict.fromkeys(name for node in graph.node for name in reads(node))
    names.update(dict.fromkeys(value.name for value in graph.output))
    return [name for name in names if name and name not in local]


def reads(node: onnx.NodeProto) -> list[str]:
    """Return the names a node reads, those its bodies capture included; each once, empty ones left out."""
    names = [*node.input]
    for _, body in subgraphs(node):
        names += captured(body)
    return [name for name in dict.fromkeys(names) if name]


def describe(node: onnx.NodeProto) -> str:
    """Return a node's place for messages: its type, and its name or else its first output."""
    label = node.name or next((name for name in node.output if name), "")
    return f"{node.op_type} {label!r}" if label else node.op_type


def loop_name(node: onnx.NodeProto) -> str:
    """Return what a loop is called where its trips are given: its name, or else its first output."""
    return node.name or next((name for name in node.output if name), node.op_type)


def loop_names(graph: onnx.GraphProto) -> list[str]:
    """Return what the loops of a graph are called, those in bodies included."""
    names = []
    for node in graph.node:
        if node.op_type == "Loop":
            names.append(loop_name(node))
        for _, body in subgraphs(node):
            names += loop_names(body)
    return names


class PlacedNode(NamedTuple):
    """A node, its position in the file, and the names it reads."""

    position: int
    node: onnx.NodeProto
    reads: list[str]


def check_and_sort(graph: onnx.GraphProto, outer: Scope | None, source: str) -> list[PlacedNode]:
    """Return the nodes in topological order (file order if that is one)."""
    initial = _initial_names(graph, source)
    producers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in producers or name in initial):
                raise InputError(f"tensor {name!r} is defined twice", source=source, where=describe(node))
            producers[name] = index
    producers.pop("", None)
    sorted_already = True
    needs: list[list[int]] = []
    nodes: list[PlacedNode] = []
    for index, node in enumerate(graph.node):
        sources = set()
        names = reads(node)
        nodes.append(PlacedNode(index, node, names))
        for name in names:
            producer = producers.get(name)
            if producer is not None:
                sources.add(producer)
                sorted_already = sorted_already and producer < index
            elif name not in initial and (outer is None or outer.find(name) is None):
                raise InputError(f"reads tensor {name!r}, which nothing defines", source=source, where=describe(node))
        needs.append(sorted(sources))
    for value in graph.output:
        name = value.name
        if name not in producers and name not in initial and (outer is None or outer.find(name) is None):
            raise InputError(f"output {name!r} is defined nowhere", source=source, where="graph outputs")
    return nodes if sorted_already else [nodes[index] for index in _sorted(graph, needs, source)]


def _initial_names(graph: onnx.GraphProto, source: str) -> set[str]:
    """Return the names defined without a node; inputs may repeat initializers (defaults, or IR below 4)."""
    names: set[str] = set()
    for group in (
        [tensor.name for tensor in graph.initializer],
        [tensor.values.name for tensor in graph.sparse_initializer],
    ):
        for name in group:
            if name in names:
                raise InputError(f"tensor {name!r} is defined twice", source=source, where="initializers")
            names.add(name)
    inputs: set[str] = set()
    for value in graph.input:
        if value.name in inputs:
            raise InputError(f"tensor {value.name!r} is defined twice", source=source, where="graph inputs")
        inputs.add(value.name)
    return names | inputs


def _sorted(graph: onnx.GraphProto, needs: list[list[int]], source: str) -> list[int]:
    """Order the nodes: of all whose inputs are there, the first in the file comes next."""
    edges = [(producer, index) for index, sources in enumerate(needs) for producer in sources]
    order = first_come_order(len(needs), edges)
    if len(order) < len(needs):
        cycle = [describe(graph.node[index]) for index in find_cycle(len(needs), edges, order)]
        raise InputError(f"the graph has a cycle: {cycle_text(cycle)}", source=source, where="graph")
    return order
