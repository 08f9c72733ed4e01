"""A model to be trained, of a workload of the Piper planner; :mod:`mtpp.formats.graphs.piper` has the format.

Ids of layers are those of the nodes. What the file says of a machine becomes :attr:`TrainingModel.defaults`.
``timePerSample`` is taken in the unit that the caller names: the file does not say. Configurations whose name says so
recompute activations.

Costs of synchronisation are read as the published files and program have them: ``syncTimeFw`` by predecessor,
``syncTimeBw`` by successor. A file in which every key is what the description says instead, and not all are what the
files have, is read as the description has it: then the two change places, and ``metadata["assumptions"]`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.graphs.piper import Workload, guessed_unit, read_workload, without_parallelism
from mtpp.formats.io.json_shape import attributed
from mtpp.training.model import Configuration, Layer, ModelPlaces, TrainingModel, require_synchronisation

_SWAPPED = "syncTimeFw is by successor and syncTimeBw by predecessor, as Piper's description has it (its files do not)"


def training_model_from_piper(document: Any, source: str, *, name: str, time_unit: str | None) -> TrainingModel:
    """Make a model to be trained, as the module says.

    Parameters
    ----------
    name
        Of the model.
    time_unit
        Unit of the file's times, one of :data:`mtpp.training.model.TIME_UNITS`.

    Raises
    ------
    InputError
        With a JSON pointer into this document; also without a unit of time.
    """
    workload = read_workload(document, source, for_training=True)
    with attributed(source):
        if time_unit is None:
            raise _no_unit(workload)
        places = ModelPlaces(source, "nodes", "edges", "TMPCs", "timePerSample", "syncTimeFw", "syncTimeBw")
        layers = list(workload.layers.values())
        assumptions = []
        if _is_as_described(workload):
            layers = [_swapped(layer) for layer in layers]
            places = replace(places, forward_sync=places.backward_sync, backward_sync=places.forward_sync)
            assumptions.append(_SWAPPED)
        found = {
            "devices": workload.max_devices,
            "memory_bytes": workload.memory_bytes_per_device,
            "bandwidth_bytes_per_s": workload.bandwidth_bytes_per_s,
            "micro_batches": workload.micro_batches,
        }
        return require_synchronisation(
            TrainingModel(
                name,
                time_unit,
                layers,
                workload.edges,
                {key: value for key, value in found.items() if value is not None},
                metadata={"source_format": "piper", **({"assumptions": assumptions} if assumptions else {})},
                places=places,
            )
        )


def _no_unit(workload: Workload) -> InputError:
    remedy = "give it: ‹time_unit› s, ms, us or ns"
    try:
        guess = guessed_unit([without_parallelism(layer, i) for i, layer in enumerate(workload.layers.values())])
    except InputError:  # layers that cannot run on one device
        guess = None
    if guess:
        remedy += f" (they look like {guess})"
    return InputError("the file does not say what unit its times are in", where="/nodes", remedy=remedy)


def _is_as_described(workload: Workload) -> bool:
    """Return whether all keys fit the description of the format, and some do not fit what the published files do."""
    edges = {(edge.source, edge.target) for edge in workload.edges}
    as_described, as_published = [], []
    for layer in workload.layers.values():
        for one in _configurations(layer):
            into = [(other, layer.id) for other in one.forward_sync_bytes]
            into += [(layer.id, other) for other in one.backward_sync_bytes]
            as_published.append(edges.issuperset(into))
            as_described.append(edges.issuperset((after, before) for before, after in into))
    return all(as_described) and not all(as_published)


def _configurations(layer: Layer) -> Iterable[Configuration]:
    return (one for choices in layer.configurations.values() for one in choices)


def _swapped(layer: Layer) -> Layer:
    return replace(
        layer,
        configurations={
            t: [
                replace(one, forward_sync_bytes=one.backward_sync_bytes, backward_sync_bytes=one.forward_sync_bytes)
                for one in choices
            ]
            for t, choices in layer.configurations.items()
        },
    )
