"""Training task: a model to be trained with its devices, batch and rules, which a planner or a sweep takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtpp.api.parameters import shortened
from mtpp.api.training.machine_devices import equal_devices
from mtpp.errors import InputError
from mtpp.names import KNAPSACKS
from mtpp.training.model import TrainingModel
from mtpp.units import exact_bytes, format_picoseconds

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.options.line_planners import LinePlanner
    from mtpp.api.options.machine import Devices
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.training_plan import AnyTrainingProblem, TrainingTask
    from mtpp.machine.machine import Machine
    from mtpp.training.micro_batches import MicroBatches

SuppliedModel = str | bytes | Mapping[str, Any] | TrainingModel
"""Path of a file, ``-`` for standard input; or its content as bytes or as parsed JSON; or the model itself."""

_EXAMPLES = {
    "devices": "‹devices› 64",
    "memory": "‹memory› 16GiB",
    "bandwidth": "‹bandwidth› 25GB/s",
    "max_micro_batches": "‹max_micro_batches› 512, or ‹batch_size› 1024 ‹micro_batch_size› 2",
}


def read_training_task(
    given: SuppliedModel, planner: LinePlanner, devices: Devices, time_unit: str | None, observer: Observer
) -> TrainingTask:
    """Read a model and make its planning problem; warn of what the reader assumed.

    Parameters
    ----------
    time_unit
        Of times in a file that names none.

    Raises
    ------
    InputError
        If the model is broken, something was not given, or parameters do not go together.
    """
    from mtpp.api.options.line_planners import Piper
    from mtpp.formats.results.training_plan import TrainingTask

    devices, machine = equal_devices(devices, planner.name)
    devices.refuse_pairs()  # before the model is read
    devices.equal_memory()
    model, source = read_training_model(given, time_unit)
    problem, micro_batches = _problem(planner, devices, machine, model, source), planner.micro_batches
    assert micro_batches is not None
    stated = model.micro_batch_size
    if stated is not None and micro_batches.size not in (None, stated):
        text = f"the model's times are of {stated:,} sample{'' if stated == 1 else 's'}"
        raise InputError(text, parameter="micro_batch_size", remedy=f"write ‹micro_batch_size› {stated}")
    knapsack = planner.knapsack if isinstance(planner, Piper) else KNAPSACKS[0]
    if knapsack != KNAPSACKS[0] and _nested(devices):
        raise InputError("has no effect with several levels of devices", parameter="knapsack", remedy="leave it out")
    for text in model.assumptions:
        observer.warn(f"{source.display}: {text}")
    return TrainingTask(replace(source, data=b""), problem, micro_batches, planner.name, knapsack)


def read_training_model(supplied: SuppliedModel, time_unit: str | None) -> tuple[TrainingModel, Source]:
    """Return the model of a request, and where it is from.

    Parameters
    ----------
    time_unit
        Of times in a file that names none.

    Raises
    ------
    InputError
        If the model is broken.
    """
    from mtpp.api.inputs.language_models import names_language_model
    from mtpp.api.inputs.reading import source_of
    from mtpp.formats.io.source import source_of_bytes
    from mtpp.formats.training.models import EXPECTED, TakenByPfeife, training_model_from_source
    from mtpp.formats.training.native import write_training_model

    if isinstance(supplied, TrainingModel):
        return supplied, source_of_bytes(write_training_model(supplied).encode(), "<model>")
    if names_language_model(supplied):
        raise TakenByPfeife("a language model", str(supplied))
    source = source_of(supplied, None, "model", expected=EXPECTED)
    return training_model_from_source(source, time_unit), source


def model_parameter(value: Any) -> SuppliedModel:
    """Return a model as tasks read it."""
    if isinstance(value, bytes | Mapping | TrainingModel):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value:
        expected = "give a path, bytes, a document or a TrainingModel"
        raise InputError(f"{shortened(value)} is no model to be trained", parameter="model", remedy=expected)
    return value


def _nested(devices: Devices) -> bool:
    return devices.levels is not None and len(devices.levels.levels) > 1


def _problem(
    planner: LinePlanner, devices: Devices, machine: Machine | None, model: TrainingModel, source: Source
) -> AnyTrainingProblem:
    """Return the problem that *model* makes on the devices, those of a machine if any, with the rules asked for."""
    from mtpp.formats.io.json_shape import attributed
    from mtpp.training.nested_problem import NestedProblem
    from mtpp.training.problem import PlanningProblem, Schemes

    given, micro_batches = (devices.count, devices.equal_memory(), devices.rate), planner.micro_batches
    if None in given or micro_batches is None:
        raise _incomplete(*given, micro_batches, model, source)
    rules: dict[str, Any] = {
        "machine": devices.as_machine(named=machine),
        "micro_batches": micro_batches.count,
        "exact_micro_batches": planner.exact_micro_batches,
        "convention": planner.convention,
        "schemes": Schemes(**planner.values_of(Schemes)),
    }
    with attributed(source.display):
        return NestedProblem.build(model, **rules) if _nested(devices) else PlanningProblem(model, **rules)


def _incomplete(
    devices: int | None,
    memory: int | None,
    bandwidth: int | None,
    micro_batches: MicroBatches | None,
    model: TrainingModel,
    source: Source,
) -> InputError:
    parts = (
        ("devices", devices, "devices", str),
        ("memory", memory, "memory_bytes", exact_bytes),
        ("bandwidth", bandwidth, "bandwidth_bytes_per_s", lambda rate: f"{exact_bytes(rate)}/s"),
        ("max_micro_batches", micro_batches, "micro_batches", str),
    )
    missing = [name for name, value, *_ in parts if value is None]
    written_for = [
        f"‹{name}› {write(model.defaults[key])}"
        for name, value, key, write in parts
        if value is None and model.defaults.get(key)
    ]
    remedy = f"the file is written for {' '.join(written_for)}" if written_for else f"write {_EXAMPLES[missing[0]]}"
    names = ", ".join(f"‹{name}›" for name in missing)
    return InputError(f"{names} must be given", source=source.display, remedy=remedy)


class Picoseconds:
    """Ticks of planning problems, described for people."""

    def describe(self, ticks: float) -> str:
        """Return so many ticks with their unit."""
        return format_picoseconds(float(ticks))


def model_of_plan(file: Source, plan_unit: str, given_unit: str | None = None) -> TrainingModel:
    """Read the model of a training plan; where neither the caller nor the file says what unit times are in, it does.

    Raises
    ------
    InputError
        If the model is malformed, or none.
    """
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.training import native as training_native
    from mtpp.formats.training.models import training_model_from_source

    content = Content(file)
    document = content.document if content.is_json else None
    names_unit = isinstance(document, dict) and document.get("format") == training_native.FORMAT
    return training_model_from_source(file, plan_unit if given_unit is None and not names_unit else given_unit)
