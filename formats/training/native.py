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

from mtpp.errors import InputError
from mtpp.formats.graphs.native import plain_metadata
from mtpp.formats.io.json_shape import (
    attributed,
    check_header,
    check_keys,
    kind_of,
    pointer,
    require_cost,
    require_degree,
    require_list,
    require_object,
    require_size,
    require_text,
    require_whole,
    require_whole_key,
)
from mtpp.formats.io.json_text import dump_lines
from mtpp.formats.training.synchronisation import require_synchronisation
from mtpp.training.model import LARGEST_COST, Configuration, Edge, Layer, LayerId, SampleCosts, TrainingModel
from mtpp.training.model_places import ModelPlaces
from mtpp.units import ceil_ratio

FORMAT = "mtpp-training-model"
VERSION = 1

_ROWS = ("layers", "edges")
_TOP_KEYS = ("format", "version", "name", "time_unit", "layers", "edges")
_DEFAULTS = ("devices", "memory_bytes", "bandwidth_bytes_per_s", "micro_batches")
_CONFIGURATION = ("id", "time", "parameter_bytes", "memory_bytes_per_micro_batch", "memory_bytes")


def training_model_from_document(document: Any, source: str) -> TrainingModel:
    """Make a model of a parsed ``mtpp-training-model`` document; *source* is what messages call it.

    Raises
    ------
    InputError
        On an unknown or missing key, a value of the wrong type, and whatever :meth:`TrainingModel.build` refuses.
    """
    with attributed(source):
        document = check_header(document, FORMAT, VERSION)
        check_keys(document, "", _TOP_KEYS, ("micro_batch_size", "defaults", "metadata"))
        return require_synchronisation(
            TrainingModel.build(
                require_text(document["name"], "/name"),
                require_text(document["time_unit"], "/time_unit"),
                [
                    _layer(row, pointer("layers", i))
                    for i, row in enumerate(require_list(document["layers"], "/layers"))
                ],
                [_edge(row, pointer("edges", e)) for e, row in enumerate(require_list(document["edges"], "/edges"))],
                _defaults(document.get("defaults", {})),
                metadata=plain_metadata(document.get("metadata", {})),
                places=ModelPlaces(source),
                micro_batch_size=_micro_batch_size(document),
            )
        )


def _defaults(value: Any) -> dict[str, int]:
    row = require_object(value, "/defaults")
    check_keys(row, "/defaults", (), _DEFAULTS)
    for key, number in row.items():
        if require_whole(number, pointer("defaults", key)) < 1:
            raise InputError("must be at least 1", where=pointer("defaults", key))
    return row


def _micro_batch_size(document: dict[str, Any]) -> int | None:
    if "micro_batch_size" not in document:
        return None
    return _sample_count(require_whole(document["micro_batch_size"], "/micro_batch_size"), "/micro_batch_size")


def _sample_count(value: int, where: str) -> int:
    if not 1 <= value < LARGEST_COST:
        raise InputError("must be at least 1" if value < 1 else "must be below 2^62", where=where)
    return value


def _layer(row: Any, where: str) -> Layer:
    check_keys(require_object(row, where), where, ("name", "configurations"), ("trainable_bytes",))
    name = _name(row["name"], f"{where}/name")
    trainable = _size(row["trainable_bytes"], f"{where}/trainable_bytes") if "trainable_bytes" in row else None
    where = f"{where}/configurations"
    configurations: dict[int, Sequence[Configuration]] = {}
    for key, rows in require_object(row["configurations"], where).items():
        place = where + pointer(key)
        degree = require_degree(key, place)
        configurations[degree] = [
            _trained(_configuration(one, f"{place}/{c}"), degree, trainable)
            for c, one in enumerate(require_list(rows, place))
        ]
    held = max((t * one.parameter_bytes for t, choices in configurations.items() for one in choices), default=0)
    if trainable is not None and trainable > held:
        place = f"{where.removesuffix('/configurations')}/trainable_bytes"
        raise InputError(f"{trainable} of {held} bytes of parameters are trained", where=place)
    return Layer(name, name, configurations, trainable)


def _trained(one: Configuration, degree: int, trainable: int | None) -> Configuration:
    """Return a configuration of a layer of which only some bytes are trained: each device has a part of these."""
    if trainable is None:
        return one
    return replace(one, trainable_bytes=min(one.parameter_bytes, ceil_ratio(trainable, degree)))


def _name(value: Any, where: str) -> str:
    if not require_text(value, where):
        raise InputError("empty name", where=where, remedy="give it one")
    return str(value)


def _configuration(row: Any, where: str) -> Configuration:
    check_keys(require_object(row, where), where, _CONFIGURATION, ("sync_in", "sync_out", "recompute", "micro_batches"))
    recompute = row.get("recompute", False)
    if not isinstance(recompute, bool):
        raise InputError(f"must be true or false, not {kind_of(recompute)}", where=f"{where}/recompute")
    return Configuration(
        _name(row["id"], f"{where}/id"),
        require_cost(row["time"], f"{where}/time"),
        _size(row["parameter_bytes"], f"{where}/parameter_bytes"),
        _size(row["memory_bytes_per_micro_batch"], f"{where}/memory_bytes_per_micro_batch"),
        _size(row["memory_bytes"], f"{where}/memory_bytes"),
        _sync(row.get("sync_in", {}), f"{where}/sync_in"),
        _sync(row.get("sync_out", {}), f"{where}/sync_out"),
        recompute,
        _micro_batches(row.get("micro_batches", {}), f"{where}/micro_batches"),
    )


def _micro_batches(value: Any, where: str) -> dict[int, SampleCosts]:
    found = {}
    for key, row in require_object(value, where).items():
        place = where + pointer(key)
        size = _sample_count(require_whole_key(key, place, "a number of samples"), place)
        check_keys(require_object(row, place), place, ("forward", "backward", "memory_bytes"))
        found[size] = SampleCosts(
            require_cost(row["forward"], f"{place}/forward"),
            require_cost(row["backward"], f"{place}/backward"),
            _size(row["memory_bytes"], f"{place}/memory_bytes"),
        )
    return found


def _sync(value: Any, where: str) -> dict[LayerId, int]:
    return {name: _size(size, where + pointer(name)) for name, size in require_object(value, where).items()}


def _size(value: Any, where: str) -> int:
    return require_size(require_whole(value, where), where)


def _edge(row: Any, where: str) -> Edge:
    check_keys(require_object(row, where), where, ("source", "target", "bytes"))
    source, target = (_name(row[key], f"{where}/{key}") for key in ("source", "target"))
    return Edge(source, target, _size(row["bytes"], f"{where}/bytes"))


def write_training_model(model: TrainingModel) -> str:
    """Return the text of an ``mtpp-training-model`` file, one layer and one edge per line; costs stay as they are.

    Raises
    ------
    InputError
        On a time that is no finite decimal, and on metadata that JSON has no form for.
    """
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
