"""An inference graph of a workload of the Piper planner; :mod:`mtpp.formats.graphs.piper` has the format.

It is made of the configurations for t = 1: ``vanilla`` where there are several, so never the one called ``activation
recomp``. Work is the ``timePerSample`` as it stands: forward *and* backward pass of one micro-batch. ``parameterSize``
are the parameters. Out-edges of a node with the same cost carry the same tensor, those with different costs different
ones.

The unit of time is what the caller says. Without that it is guessed, and ``metadata["assumptions"]`` says so: layers
get through their parameters at 50 MB/s to 50 GB/s (0.2 to 6 GB/s in the published profiles), and only one unit from
nanoseconds to seconds can put them into that range.
"""

from __future__ import annotations

from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs.piper import Workload, guessed_unit, read_workload, without_parallelism
from mtpp.formats.io.json_shape import attributed
from mtpp.formats.modelled.naming import untaken
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.training.model import LayerId


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
