"""Layer graphs with tensor-parallel configurations, the input of the Piper planner (Tarnawski et al. 2021), as JSON.

Format (section 3.6 of the paper; github.com/msr-fiddle/piper, README)::

    {"maxDevices": 10, "maxMemoryPerDevice": bytes, "bandwidth": bytes/s, "maxBatchSize": 1920,
     "nodes": [{"id": 3, "name": "Layer",
                "TMPCs": {"1": [{"id": "vanilla", "timePerSample": 0.03, "parameterSize": bytes,
                                 "memoryUsageA": bytes, "memoryUsageB": bytes,
                                 "syncTimeFw": {"2": bytes}, "syncTimeBw": {"5": bytes}}, …], "2": […]}}, …],
     "edges": [{"sourceId": 3, "destId": 5, "communicationCost": bytes}, …]}

``TMPCs`` lists the configurations of a layer by degree t of tensor parallelism. ``name`` is optional, other keys are
passed over. Sizes are rounded up to whole bytes. What the paper's code and its description disagree about, or leave
open:

* ``maxBatchSize`` is called ``mbsInBatch`` in the published files: N, micro-batches in a batch. Either is read.
* ``syncTimeFw`` and ``syncTimeBw`` are bytes, not times: what it takes to hand a tensor to all t devices, by the id of
  the node at the other end of the edge. In the published files that is a predecessor for ``Fw`` and a successor for
  ``Bw``, and the program insists on it; the description has it the other way round.
* The unit of time is not said: the published ``bert32a100.json`` is in seconds, ``gnmt.json`` and ``resnet.json`` are
  in milliseconds. ``bandwidth`` is in bytes per second in all of them.

:func:`graph_from_piper` and :mod:`mtpp.formats.training.piper` say what becomes of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.document_shape import Path, Rule, array, mapping, nullable, record, refuse, text
from mtpp.errors import InputError
from mtpp.formats.graphs.numbered_nodes import (
    NumberedNode,
    looks_like,
    numbered_graph,
    read_edges,
    read_nodes,
)
from mtpp.formats.io.json_shape import (
    at_least,
    attributed,
    cost_number,
    degree,
    pointer,
    shaped,
    size_number,
    whole_bytes,
    whole_key,
)
from mtpp.formats.modelled.naming import distinct_names, untaken
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.training.model import Configuration, Edge, Layer, LayerId
from mtpp.units import PICOSECONDS

VANILLA = "vanilla"
"""What the published files call the configuration without recomputation of activations."""

_RECOMPUTATION = re.compile(r"activation[\s_-]*(?:recomp|checkpoint)|\brecomp", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:no|non|not|without|w/o)\b", re.IGNORECASE)

_SLOWEST_BYTES_PER_S, _FASTEST_BYTES_PER_S = 5 * 10**7, 5 * 10**10
_GUESSED_UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class Workload:
    """A whole document, without an opinion on its unit of time. None: not given."""

    layers: Mapping[LayerId, Layer]
    edges: Sequence[Edge]
    max_devices: int | None
    memory_bytes_per_device: int | None
    bandwidth_bytes_per_s: int | None
    micro_batches: int | None


def _named(value: Any, path: Path) -> None:
    text(value, path)
    if not value:
        refuse("a configuration without a name", path, "give it one")


def _above_zero(value: Any, path: Path) -> None:
    size_number(value, path)
    if not whole_bytes(value):
        refuse("must be above zero", path)


def _workload(required: dict[str, Rule], optional: dict[str, Rule]) -> Rule:
    """Make the rule of a workload whose configurations have such keys beside those that they all have."""
    synchronisation = mapping(size_number, whole_key("a node's id"))
    configuration = record(
        {**required, "timePerSample": cost_number, "parameterSize": size_number},
        {**optional, "syncTimeFw": synchronisation, "syncTimeBw": synchronisation},
        closed=False,
    )
    return numbered_graph(
        ({"TMPCs": mapping(array(configuration), degree)}, {}),
        record({"communicationCost": size_number}, closed=False),
        {
            "maxDevices": nullable(at_least(1)),
            "maxMemoryPerDevice": nullable(_above_zero),
            "bandwidth": nullable(_above_zero),
        },
    )


_MEMORY: dict[str, Rule] = {"memoryUsageA": size_number, "memoryUsageB": size_number}
_FOR_GRAPHS = _workload({}, {"id": text, **_MEMORY})
_FOR_TRAINING = _workload({"id": _named, **_MEMORY}, {})


def looks_like_piper(document: Any) -> bool:
    """Return whether a JSON document is a workload of this kind."""
    return looks_like(document, "TMPCs", ("maxDevices", "maxMemoryPerDevice"))


def read_workload(document: Any, source: str, *, for_training: bool = False) -> Workload:
    """Check a parsed document and return what it says.

    Parameters
    ----------
    for_training
        Whether ids and memory of all configurations are needed, as the published program does; else they may be left
        out.

    Raises
    ------
    InputError
        With a JSON pointer into this document.
    """
    with attributed(source):
        shaped(_FOR_TRAINING if for_training else _FOR_GRAPHS, document)
        nodes = read_nodes(document)
        edges = read_edges(document, nodes)
        names = distinct_names({identity: node.name for identity, node in nodes.items()})
        keys = [key for key in ("maxBatchSize", "mbsInBatch") if document.get(key) is not None]
        if len({document[key] for key in keys if isinstance(document[key], int)}) > 1:
            raise InputError("maxBatchSize and mbsInBatch differ", where="/mbsInBatch", remedy="give one of them")
        memory, bandwidth = (document.get(key) for key in ("maxMemoryPerDevice", "bandwidth"))
        return Workload(
            layers={identity: _layer(node, names[identity], nodes) for identity, node in nodes.items()},
            edges=[Edge(edge.source, edge.target, whole_bytes(edge.row["communicationCost"])) for edge in edges],
            max_devices=document.get("maxDevices"),
            memory_bytes_per_device=None if memory is None else whole_bytes(memory),
            bandwidth_bytes_per_s=None if bandwidth is None else whole_bytes(bandwidth),
            micro_batches=shaped(at_least(1), document[keys[0]], keys[0]) if keys else None,
        )


def _layer(node: NumberedNode, name: str, nodes: Mapping[int, NumberedNode]) -> Layer:
    configurations = {
        int(t): [_configuration(row, f"{node.where}/TMPCs/{t}/{i}", nodes) for i, row in enumerate(rows)]
        for t, rows in node.row["TMPCs"].items()
    }
    return Layer(node.id, name, configurations)


def _configuration(row: Mapping[str, Any], where: str, nodes: Mapping[int, NumberedNode]) -> Configuration:
    name = row.get("id", "")
    return Configuration(
        id=name,
        time_per_sample=row["timePerSample"],
        parameter_bytes=whole_bytes(row["parameterSize"]),
        memory_a=whole_bytes(row.get("memoryUsageA", 0)),
        memory_b=whole_bytes(row.get("memoryUsageB", 0)),
        forward_sync_bytes=_sync(row, "syncTimeFw", where, nodes),
        backward_sync_bytes=_sync(row, "syncTimeBw", where, nodes),
        recomputes=is_recomputation(name),
    )


def is_recomputation(name: str) -> bool:
    """Return whether a configuration of this name recomputes activations.

    The published files call it ``activation recomp``; ``activation-recomputation`` and ``dim 1, recompute`` are too.
    """
    return bool(_RECOMPUTATION.search(name.replace("_", " "))) and not _NEGATED.search(name)


def _sync(row: Mapping[str, Any], key: str, where: str, nodes: Mapping[int, NumberedNode]) -> dict[LayerId, int]:
    sizes: dict[LayerId, int] = {}
    for neighbour, count in row.get(key, {}).items():
        if int(neighbour) not in nodes:
            raise InputError(f"no node has the id {neighbour}", where=f"{where}/{key}/{neighbour}")
        sizes[int(neighbour)] = whole_bytes(count)
    return sizes


def guessed_unit(chosen: Sequence[Configuration]) -> str | None:
    """Return the only unit of time with which layers get through their parameters at 50 MB/s to 50 GB/s, or None.

    In the published profiles it is 0.2 to 6 GB/s. *chosen* is a configuration for one device of each layer.
    """
    time = sum(one.time_per_sample for one in chosen)
    size = sum(one.parameter_bytes for one in chosen)
    for unit in _GUESSED_UNITS:
        scaled = time * PICOSECONDS[unit]
        if scaled and _SLOWEST_BYTES_PER_S <= size * PICOSECONDS["s"] / scaled < _FASTEST_BYTES_PER_S:
            return unit
    return None


def without_parallelism(layer: Layer, index: int) -> Configuration:
    """Return how the layer at *index* of the file runs on one device: ``vanilla`` where there is a choice."""
    where = pointer("nodes", index, "TMPCs", "1")
    choices = layer.configurations.get(1, ())
    if not choices:
        raise InputError("the layer has no configuration for one device", where=where, remedy="add it")
    plain = [one for one in choices if one.id == VANILLA] or (choices if len(choices) == 1 else [])
    if len(plain) != 1:
        problem = f"{len(plain) or 'none'} of {len(choices)} configurations is called {VANILLA!r}"
        raise InputError(problem, where=where, remedy="one has to be")
    return plain[0]


def graph_from_piper(document: Any, source: str, *, name: str = "graph", time_unit: str | None = None) -> CostGraph:
    """Make an inference graph of the configurations for t = 1.

    That is ``vanilla`` where there are several, so never the one called ``activation recomp``. Work is the
    ``timePerSample`` as it stands: forward *and* backward pass of one micro-batch; ``parameterSize`` are parameters.
    Out-edges of a node with the same cost carry the same tensor, those with different costs different ones.

    The unit of time is what the caller says. Without that it is guessed, and ``metadata["assumptions"]`` says so:
    layers get through their parameters at 50 MB/s to 50 GB/s (0.2 to 6 GB/s in the published profiles), and only one
    unit from nanoseconds to seconds can put them into that range.

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
        layers = workload.layers.values()
        chosen = [without_parallelism(layer, i) for i, layer in enumerate(layers)]
        assumptions = ["times are of the forward and the backward pass, without tensor parallelism"]
        if time_unit is None:
            time_unit = guessed_unit(chosen)
            if time_unit is None:
                raise InputError(
                    "the file does not say what unit its times are in",
                    where="/nodes",
                    remedy="give it: ‹time_unit› s, ms, us or ns",
                )
            assumptions.insert(0, f"times are taken to be in {time_unit}: the file does not say (--time-unit does)")
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


def _tensors(workload: Workload) -> list[Tensor]:
    readers: dict[LayerId, dict[int, list[str]]] = {identity: {} for identity in workload.layers}
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
