"""Layer graphs with tensor-parallel configurations, the input of the Piper planner (Tarnawski et al. 2021), as JSON.

Format (section 3.6 of the paper; github.com/msr-fiddle/piper, README)::

    {"maxDevices": 10, "maxMemoryPerDevice": bytes, "bandwidth": bytes/s, "maxBatchSize": 1920,
     "nodes": [{"id": 3, "name": "Layer",
                "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 0.03, "parameterSize": bytes,
                                 "memoryUsageA": bytes, "memoryUsageB": bytes,
                                 "syncTimeFw": {"2": bytes}, "syncTimeBw": {"5": bytes}}, …], "2": […]}}, …],
     "edges": [{"sourceId": 3, "destId": 5, "communicationCost": bytes}, …]}

``TMPCs`` lists the configurations of a layer by degree t of tensor parallelism. ``name`` is optional, other keys are
passed over. What the paper's code and its description disagree about, or leave open:

* ``maxBatchSize`` is called ``mbsInBatch`` in the published files: N, micro-batches in a batch. Either is read.
* ``syncTimeFw`` and ``syncTimeBw`` are bytes, not times: what it takes to hand a tensor to all t devices, by the id of
  the node at the other end of the edge, a predecessor for ``Fw`` and a successor for ``Bw``.
* The unit of time is not said: the published ``bert32a100.json`` is in seconds, ``gnmt.json`` and ``resnet.json`` are
  in milliseconds. ``bandwidth`` is in bytes per second in all of them.

What :func:`graph_from_piper` makes of it
-----------------------------------------
An inference graph of the configurations for t = 1: ``vanilla`` where there are several, so never the one called
``activation recomp``. Work is the ``timePerSample`` as it stands: forward *and* backward pass of one micro-batch.
``parameterSize`` are the parameters. Out-edges of a node with the same cost carry the same tensor, those with different
costs different ones.

The unit of time is what the caller says. Without that it is guessed, and ``metadata["assumptions"]`` says so: layers
get through their parameters at 50 MB/s to 50 GB/s (0.2 to 6 GB/s in the published profiles), and only one unit from
nanoseconds to seconds can put them into that range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.distinct import distinct_names, untaken
from mtpp.formats.json_shape import (
    attributed,
    pointer,
    require_cost,
    require_list,
    require_object,
    require_size,
    require_text,
    require_whole,
    shown,
)
from mtpp.formats.numbered_nodes import (
    NumberedEdge,
    NumberedNode,
    looks_like,
    node_id,
    read_edges,
    read_nodes,
    required,
)
from mtpp.graph import CostGraph, Op, Tensor
from mtpp.units import PICOSECONDS, Exact

VANILLA = "vanilla"
"""What the published files call the configuration without recomputation of activations."""

_SLOWEST_BYTES_PER_S, _FASTEST_BYTES_PER_S = 5 * 10**7, 5 * 10**10
_GUESSED_UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class Configuration:
    """One way to run a layer on t devices, the paper's TMPC.

    Attributes
    ----------
    time_per_sample
        Forward and backward pass, in the file's unit.
    memory_a, memory_b
        Bytes on each device: a for each micro-batch in flight, and b.
    forward_sync_bytes, backward_sync_bytes
        Bytes that spreading a tensor over the devices takes, by the id of the predecessor or successor.
    """

    id: str
    time_per_sample: Exact
    parameter_bytes: int
    memory_a: int
    memory_b: int
    forward_sync_bytes: Mapping[int, int]
    backward_sync_bytes: Mapping[int, int]


@dataclass(frozen=True)
class Layer:
    """One node; *configurations* are by degree of tensor parallelism. *name* is the only one of its kind."""

    id: int
    name: str
    configurations: Mapping[int, Sequence[Configuration]]


@dataclass(frozen=True)
class Edge:
    """One edge, by ids of layers."""

    source: int
    target: int
    communication_bytes: int


@dataclass(frozen=True)
class Workload:
    """A whole document, without an opinion on its unit of time; what a planner needs. None: not given."""

    layers: Mapping[int, Layer]
    edges: Sequence[Edge]
    max_devices: int | None
    memory_bytes_per_device: int | None
    bandwidth_bytes_per_s: int | None
    micro_batches: int | None


def looks_like_piper(document: Any) -> bool:
    """Return whether a JSON document is a workload of this kind."""
    return looks_like(document, "TMPCs", ("maxDevices", "maxMemoryPerDevice"))


def read_workload(document: Any, source: str) -> Workload:
    """Check a parsed document and return what it says.

    Raises
    ------
    InputError
        With a JSON pointer into this document.
    """
    with attributed(source):
        document = require_object(document, "")
        nodes = read_nodes(document)
        edges = read_edges(document, nodes)
        names = distinct_names({identity: node.name for identity, node in nodes.items()})
        keys = [key for key in ("maxBatchSize", "mbsInBatch") if document.get(key) is not None]
        if len({document[key] for key in keys if isinstance(document[key], int)}) > 1:
            raise InputError("maxBatchSize and mbsInBatch differ", where="/mbsInBatch", remedy="give one of them")
        return Workload(
            layers={identity: _layer(node, names[identity], nodes) for identity, node in nodes.items()},
            edges=[_edge(edge) for edge in edges],
            max_devices=_whole(document, "maxDevices"),
            memory_bytes_per_device=_bytes(document, "maxMemoryPerDevice"),
            bandwidth_bytes_per_s=_bytes(document, "bandwidth"),
            micro_batches=_whole(document, keys[0]) if keys else None,
        )


def _whole(document: Mapping[str, Any], key: str) -> int | None:
    if document.get(key) is None:
        return None
    number = require_whole(document[key], f"/{key}")
    if number < 1:
        raise InputError("must be at least 1", where=f"/{key}")
    return number


def _bytes(document: Mapping[str, Any], key: str) -> int | None:
    return None if document.get(key) is None else require_size(document[key], f"/{key}")


def _layer(node: NumberedNode, name: str, nodes: Mapping[int, NumberedNode]) -> Layer:
    where = f"{node.where}/TMPCs"
    configurations: dict[int, Sequence[Configuration]] = {}
    for key, rows in require_object(required(node.row, "TMPCs", node.where), where).items():
        place = f"{where}/{pointer(key)[1:]}"
        degree = _number_of_key(key, place, "a degree of tensor parallelism")
        if degree < 1:
            raise InputError("a degree of tensor parallelism must be at least 1", where=place)
        configurations[degree] = [
            _configuration(row, f"{place}/{i}", nodes) for i, row in enumerate(require_list(rows, place))
        ]
    return Layer(node.id, name, configurations)


def _number_of_key(key: str, where: str, what: str) -> int:
    digits = key.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19) or str(int(key)) != key:
        raise InputError(f"{shown(key)} is not {what}", where=where, remedy="write it as a whole number in quotes")
    return int(key)


def _configuration(row: Any, where: str, nodes: Mapping[int, NumberedNode]) -> Configuration:
    row = require_object(row, where)
    return Configuration(
        id=require_text(row.get("id", ""), f"{where}/id"),
        time_per_sample=require_cost(required(row, "timePerSample", where), f"{where}/timePerSample"),
        parameter_bytes=require_size(required(row, "parameterSize", where), f"{where}/parameterSize"),
        memory_a=require_size(row.get("memoryUsageA", 0), f"{where}/memoryUsageA"),
        memory_b=require_size(row.get("memoryUsageB", 0), f"{where}/memoryUsageB"),
        forward_sync_bytes=_sync(row, "syncTimeFw", where, nodes),
        backward_sync_bytes=_sync(row, "syncTimeBw", where, nodes),
    )


def _sync(row: Mapping[str, Any], key: str, where: str, nodes: Mapping[int, NumberedNode]) -> dict[int, int]:
    where = f"{where}/{key}"
    sizes = {}
    for neighbour, size in require_object(row.get(key, {}), where).items():
        place = f"{where}/{pointer(neighbour)[1:]}"
        identity = node_id(_number_of_key(neighbour, place, "a node's id"), place)
        if identity not in nodes:
            raise InputError(f"no node has the id {identity}", where=place)
        sizes[identity] = require_size(size, place)
    return sizes


def _edge(edge: NumberedEdge) -> Edge:
    cost = required(edge.row, "communicationCost", edge.where)
    return Edge(edge.source, edge.target, require_size(cost, f"{edge.where}/communicationCost"))


def graph_from_piper(document: Any, source: str, *, name: str = "graph", time_unit: str | None = None) -> CostGraph:
    """Make an inference graph of the configurations for t = 1, as the module says.

    Parameters
    ----------
    time_unit
        Unit of the file's times; by default it is guessed from them and the sizes of the parameters.

    Raises
    ------
    InputError
        With a JSON pointer into this document; also if there is nothing to guess the unit of time from.
    """
    workload = read_workload(document, source)
    with attributed(source):
        chosen = [_without_parallelism(layer, i) for i, layer in enumerate(workload.layers.values())]
        assumptions = ["times are of the forward and the backward pass, without tensor parallelism"]
        if time_unit is None:
            time_unit = _guessed_unit(chosen)
            assumptions.insert(0, f"times are taken to be in {time_unit}: the file does not say (--time-unit does)")
        layers = workload.layers.values()
        try:
            return CostGraph.build(
                name=name,
                time_unit=time_unit,
                ops=[
                    Op(layer.name, one.time_per_sample, "", one.parameter_bytes)
                    for layer, one in zip(layers, chosen, strict=True)
                ],
                tensors=_tensors(workload),
                metadata={
                    "source_format": "piper",
                    "nodes": {layer.name: [layer.id] for layer in layers},
                    "assumptions": assumptions,
                },
            )
        except InputError as error:
            where = "/edges" if error.where == "/tensors" else error.where
            raise InputError(error.problem, where=where, remedy=error.remedy) from None


def _without_parallelism(layer: Layer, index: int) -> Configuration:
    where = pointer("nodes", index, "TMPCs", "1")
    choices = layer.configurations.get(1, ())
    if not choices:
        raise InputError("the layer has no configuration for one device", where=where, remedy="add it")
    plain = [one for one in choices if one.id == VANILLA] or (choices if len(choices) == 1 else [])
    if len(plain) != 1:
        problem = f"{len(plain) or 'none'} of {len(choices)} configurations is called {VANILLA!r}"
        raise InputError(problem, where=where, remedy="one has to be")
    return plain[0]


def _guessed_unit(chosen: Sequence[Configuration]) -> str:
    time = sum(one.time_per_sample for one in chosen)
    size = sum(one.parameter_bytes for one in chosen)
    for unit in _GUESSED_UNITS:
        scaled = time * PICOSECONDS[unit]
        if scaled and _SLOWEST_BYTES_PER_S <= size * PICOSECONDS["s"] / scaled < _FASTEST_BYTES_PER_S:
            return unit
    raise InputError(
        "the file does not say what unit its times are in",
        where="/nodes",
        remedy="give it: --time-unit s, ms, us or ns",
    )


def _tensors(workload: Workload) -> list[Tensor]:
    readers: dict[int, dict[int, list[str]]] = {identity: {} for identity in workload.layers}
    for edge in workload.edges:
        target = workload.layers[edge.target].name
        readers[edge.source].setdefault(edge.communication_bytes, []).append(target)
    taken: set[str] = set()
    tensors = []
    for identity, by_size in readers.items():
        producer = workload.layers[identity].name
        for i, (size, consumers) in enumerate(by_size.items()):
            name = untaken(producer + (f":{i}" if i else ""), taken)
            tensors.append(Tensor(name, producer, tuple(consumers), size))
    return tensors
