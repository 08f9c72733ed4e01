"""The native format of models to be trained, ``mtpp-training-model`` version 1, as JSON.

Layers are known by their names. Times are exact decimals in ``time_unit``, sizes are whole numbers of bytes on each
device. ``sync_in`` and ``sync_out`` are what handing a tensor to all t devices takes, by the layer before or behind;
for t > 1 there has to be one for every edge, for t = 1 what is not there is 0. ``micro_batch_size`` says of how many
samples times and bytes are; ``micro_batches`` has costs of other numbers of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mtpp.document_shape import Path, Rule, anything, array, flag, mapping, record, refuse, text
from mtpp.errors import InputError
from mtpp.formats.graphs.native import plain_metadata
from mtpp.formats.io.json_shape import (
    at_least,
    attributed,
    cost_number,
    degree,
    headed,
    pointer,
    shaped,
    whole_key,
    whole_size,
)
from mtpp.formats.io.json_text import dump_lines
from mtpp.training.model import (
    LARGEST_COST,
    Configuration,
    Edge,
    Layer,
    LayerId,
    ModelPlaces,
    SampleCosts,
    TrainingModel,
    require_synchronisation,
)
from mtpp.units import ceil_ratio

FORMAT = "mtpp-training-model"
VERSION = 1

_ROWS = ("layers", "edges")


def _name(value: Any, path: Path) -> None:
    text(value, path)
    if not value:
        refuse("empty name", path, "give it one")


def _samples(key: Any, path: Path) -> None:
    whole_key("a number of samples")(key, path)
    at_least(1, LARGEST_COST)(int(key), path)


_CONFIGURATION = record(
    {
        "id": _name,
        "time": cost_number,
        "parameter_bytes": whole_size,
        "memory_bytes_per_micro_batch": whole_size,
        "memory_bytes": whole_size,
    },
    {
        "sync_in": mapping(whole_size),
        "sync_out": mapping(whole_size),
        "recompute": flag,
        "micro_batches": mapping(
            record({"forward": cost_number, "backward": cost_number, "memory_bytes": whole_size}), _samples
        ),
    },
)
_LAYER = record(
    {"name": _name, "configurations": mapping(array(_CONFIGURATION), degree)}, {"trainable_bytes": whole_size}
)
_DEFAULTS = ("devices", "memory_bytes", "bandwidth_bytes_per_s", "micro_batches")
_MODEL: Rule = headed(
    FORMAT,
    VERSION,
    {
        "name": text,
        "time_unit": text,
        "layers": array(_LAYER),
        "edges": array(record({"source": _name, "target": _name, "bytes": whole_size})),
    },
    {
        "micro_batch_size": at_least(1, LARGEST_COST),
        "defaults": record({}, dict.fromkeys(_DEFAULTS, at_least(1))),
        "metadata": anything,
    },
)


def training_model_from_document(document: Any, source: str) -> TrainingModel:
    """Make a model of a parsed ``mtpp-training-model`` document; *source* is what messages call it.

    Raises
    ------
    InputError
        On an unknown or missing key, a value of the wrong type, and whatever :class:`TrainingModel` refuses.
    """
    with attributed(source):
        shaped(_MODEL, document)
        return require_synchronisation(
            TrainingModel(
                document["name"],
                document["time_unit"],
                [_layer(row, i) for i, row in enumerate(document["layers"])],
                [Edge(row["source"], row["target"], row["bytes"]) for row in document["edges"]],
                document.get("defaults", {}),
                metadata=plain_metadata(document.get("metadata", {})),
                places=ModelPlaces(source),
                micro_batch_size=document.get("micro_batch_size"),
            )
        )


def _layer(row: Mapping[str, Any], index: int) -> Layer:
    trainable = row.get("trainable_bytes")
    configurations: dict[int, Sequence[Configuration]] = {
        int(t): [_trained(_configuration(one), int(t), trainable) for one in rows]
        for t, rows in row["configurations"].items()
    }
    held = max((t * one.parameter_bytes for t, choices in configurations.items() for one in choices), default=0)
    if trainable is not None and trainable > held:
        problem = f"{trainable} of {held} bytes of parameters are trained"
        raise InputError(problem, where=pointer("layers", index, "trainable_bytes"))
    return Layer(row["name"], row["name"], configurations, trainable)


def _trained(one: Configuration, degree: int, trainable: int | None) -> Configuration:
    """Return a configuration of a layer of which only some bytes are trained: each device has a part of these."""
    if trainable is None:
        return one
    return replace(one, trainable_bytes=min(one.parameter_bytes, ceil_ratio(trainable, degree)))


def _configuration(row: Mapping[str, Any]) -> Configuration:
    return Configuration(
        row["id"],
        row["time"],
        row["parameter_bytes"],
        row["memory_bytes_per_micro_batch"],
        row["memory_bytes"],
        dict(row.get("sync_in", {})),
        dict(row.get("sync_out", {})),
        row.get("recompute", False),
        {int(size): SampleCosts(**costs) for size, costs in row.get("micro_batches", {}).items()},
    )


def write_training_model(model: TrainingModel) -> str:
    """Return the text of an ``mtpp-training-model`` file, one layer and one edge per line; costs stay as they are."""
    names = {layer.id: layer.name for layer in model.layers}
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "time_unit": model.time_unit,
        **({} if model.micro_batch_size is None else {"micro_batch_size": model.micro_batch_size}),
        "layers": [
            {
                "name": layer.name,
                **({} if layer.trainable_bytes is None else {"trainable_bytes": layer.trainable_bytes}),
                "configurations": {
                    str(t): [_configuration_row(model, layer, t, one, names) for one in choices]
                    for t, choices in layer.configurations.items()
                },
            }
            for layer in model.layers
        ],
        "edges": [
            {"source": names[edge.source], "target": names[edge.target], "bytes": edge.communication_bytes}
            for edge in model.edges
        ],
    }
    for key, value in (("defaults", model.defaults), ("metadata", model.metadata)):
        if value:
            document[key] = dict(value)
    return dump_lines(document, _ROWS) + "\n"


def _configuration_row(
    model: TrainingModel, layer: Layer, degree: int, one: Configuration, names: Mapping[LayerId, str]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": one.id,
        "time": one.time_per_sample,
        "parameter_bytes": one.parameter_bytes,
        "memory_bytes_per_micro_batch": one.memory_a,
        "memory_bytes": one.memory_b,
    }
    before, after = model.neighbours[layer.id]
    for key, others, sizes in (
        ("sync_in", before, one.forward_sync_bytes),
        ("sync_out", after, one.backward_sync_bytes),
    ):
        known = {names[other]: sizes.get(other, 0) for other in others if degree > 1 or sizes.get(other)}
        if known:
            row[key] = known
    if one.recomputes:
        row["recompute"] = True
    if one.micro_batches:
        row["micro_batches"] = {
            str(size): {"forward": costs.forward, "backward": costs.backward, "memory_bytes": costs.memory_bytes}
            for size, costs in one.micro_batches.items()
        }
    return row
