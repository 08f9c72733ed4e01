"""Training task: a model to be trained with its devices, batch and rules, which a planner or a sweep takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.parameters import shortened
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.training.model import TrainingModel

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.training_plan import AnyTrainingProblem
    from mtpp.host.interruption import Interruption
    from mtpp.host.progress import Observer as SearchListener
    from mtpp.solvers.planners.limits import PlanLimits
    from mtpp.training.device_tree import DeviceTree
    from mtpp.training.micro_batches import MicroBatches
    from mtpp.training.problem import Schemes
    from mtpp.views.training.training_results import TrainingTask

_EXAMPLES = {
    "devices": "‹devices› 64",
    "memory": "‹memory› 16GiB",
    "bandwidth": "‹bandwidth› 25GB/s",
    "max_micro_batches": "‹max_micro_batches› 512, or ‹batch_size› 1024 ‹micro_batch_size› 2",
}


@dataclass(frozen=True)
class TrainingSystem:
    """Devices and batch as far as they are known; None: not given.

    Attributes
    ----------
    device_tree
        Levels of devices where there are several; *devices* and *bandwidth_bytes_per_s* are that of a flat network.
    """

    devices: int | None = None
    memory_bytes: int | None = None
    bandwidth_bytes_per_s: int | None = None
    device_tree: DeviceTree | None = None
    micro_batches: MicroBatches | None = None

    @classmethod
    def of_levels(
        cls, device_tree: DeviceTree, memory_bytes: int | None, micro_batches: MicroBatches | None
    ) -> TrainingSystem:
        """Return the system of a tree of devices; one level is a flat network."""
        several = device_tree if len(device_tree.levels) > 1 else None
        rate = device_tree.levels[0].bandwidth_bytes_per_s
        return cls(device_tree.devices, memory_bytes, rate, several, micro_batches)


@dataclass(frozen=True)
class TrainingRules:
    """Plans that are allowed, and the convention that they are costed by.

    Attributes
    ----------
    exact_micro_batches
        Whether degrees of data parallelism have to add up to exactly N.
    schemes
        None: all of them.
    """

    convention: str = "paper"
    exact_micro_batches: bool = False
    schemes: Schemes | None = None


@dataclass(frozen=True)
class TrainingPlanRequest:
    """A model, and how to plan its training.

    Attributes
    ----------
    model
        Path of a file, ``-`` for standard input; or its content as bytes or as parsed JSON; or the model itself.
    time_unit
        Unit of times in a file that names none.
    knapsack
        One of :data:`mtpp.solvers.planners.limits.KNAPSACKS`.
    jobs
        Threads; None: one for each core.
    """

    model: str | bytes | Mapping[str, Any] | TrainingModel
    system: TrainingSystem
    rules: TrainingRules = field(default_factory=TrainingRules)
    planner: str = "piper"
    knapsack: str = "exact"
    time_unit: str | None = None
    deadline: Deadline = field(default_factory=Deadline)
    jobs: int | None = None

    def limits(self, listener: SearchListener, interruption: Interruption) -> PlanLimits:
        """Return how long a planner may take, and how it works."""
        from mtpp.host.cores import available_cores
        from mtpp.solvers.planners.limits import PlanLimits

        return PlanLimits(
            deadline=self.deadline,
            jobs=self.jobs or available_cores(),
            knapsack=self.knapsack,
            observer=listener,
            interrupted=lambda: interruption.requested,
        )


def read_training_task(request: TrainingPlanRequest, observer: Observer) -> TrainingTask:
    """Read the model of a request and make its planning problem; warn of what the reader assumed.

    Raises
    ------
    InputError
        If the model is broken, something was not given, or parameters do not go together.
    """
    from mtpp.solvers.planners.registry import PLANNERS
    from mtpp.views.training.training_results import TrainingTask

    model, source = read_training_model(request.model, request.time_unit)
    system = request.system
    problem = _problem(request, model, source)
    assert system.micro_batches is not None
    stated, given = model.micro_batch_size, system.micro_batches.size
    if stated is not None and given not in (None, stated):
        text = f"the model's times are of {stated:,} sample{'' if stated == 1 else 's'}"
        raise InputError(text, parameter="micro_batch_size", remedy=f"write ‹micro_batch_size› {stated}")
    planner = PLANNERS[request.planner]
    if request.knapsack == "heuristic" and not (planner.knapsack and system.device_tree is None):
        where = f"on the planner {planner.name}" if system.device_tree is None else "with several levels of devices"
        raise InputError(f"has no effect {where}", parameter="knapsack", remedy="leave it out")
    for text in model.assumptions:
        observer.warn(f"{source.display}: {text}")
    return TrainingTask(replace(source, data=b""), problem, system.micro_batches, planner, request.knapsack)


def read_training_model(
    supplied: str | bytes | Mapping[str, Any] | TrainingModel, time_unit: str | None
) -> tuple[TrainingModel, Source]:
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
    from mtpp.api.inputs.reading import source_of
    from mtpp.formats.io.source import source_of_bytes
    from mtpp.formats.training.models import EXPECTED, training_model_from_source
    from mtpp.formats.training.native import write_training_model

    if isinstance(supplied, TrainingModel):
        return supplied, source_of_bytes(write_training_model(supplied).encode(), "<model>")
    source = source_of(supplied, None, "model", expected=EXPECTED)
    return training_model_from_source(source, time_unit), source


def model_parameter(value: Any) -> str | bytes | Mapping[str, Any] | TrainingModel:
    """Return a model as requests hold it.

    Raises
    ------
    InputError
        If it is neither a path, nor bytes, nor a document, nor a model to be trained.
    """
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


def _problem(request: TrainingPlanRequest, model: TrainingModel, source: Source) -> AnyTrainingProblem:
    """Return the problem that *model* makes on the system, with the rules asked for.

    Raises
    ------
    InputError
        If something was not given; the model's file may say what it was written for, but is not asked unsaid: its
        numbers are examples as often as not (the published ones plan 5.9 billion parameters for 10 devices).
    """
    from mtpp.formats.io.json_shape import attributed
    from mtpp.training.nested_problem import NestedProblem
    from mtpp.training.problem import PlanningProblem, Schemes

    system, rules = request.system, request.rules
    if (
        system.devices is None
        or system.memory_bytes is None
        or system.bandwidth_bytes_per_s is None
        or system.micro_batches is None
    ):
        raise _incomplete(system, model, source)
    with attributed(source.display):
        if system.device_tree is not None:
            return NestedProblem.build(
                model,
                system.device_tree,
                memory_bytes=system.memory_bytes,
                micro_batches=system.micro_batches.count,
                exact_micro_batches=rules.exact_micro_batches,
                convention=rules.convention,
                schemes=rules.schemes,
            )
        return PlanningProblem(
            model,
            devices=system.devices,
            memory_bytes=system.memory_bytes,
            bandwidth_bytes_per_s=system.bandwidth_bytes_per_s,
            micro_batches=system.micro_batches.count,
            exact_micro_batches=rules.exact_micro_batches,
            convention=rules.convention,
            schemes=rules.schemes or Schemes(),
        )


def _incomplete(system: TrainingSystem, model: TrainingModel, source: Source) -> InputError:
    from mtpp.units import exact_bytes

    parts = (
        ("devices", system.devices, "devices", str),
        ("memory", system.memory_bytes, "memory_bytes", exact_bytes),
        ("bandwidth", system.bandwidth_bytes_per_s, "bandwidth_bytes_per_s", lambda rate: f"{exact_bytes(rate)}/s"),
        ("max_micro_batches", system.micro_batches, "micro_batches", str),
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
        from mtpp.units import format_picoseconds

        return format_picoseconds(float(ticks))
