"""Task of planning split points and a schedule: parameters checked, the model read, the problem made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from mtpp.api.parameters import choice, path_text, quantity, shortened, time_unit_or_none, whole, whole_or_none
from mtpp.api.training.graph_task import latency_ticks, whole_numbers
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.training.pfeife.problem import (
    BACKWARD_RATIO,
    BUFFERS,
    LOOP_BATCHES,
    LOOPS,
    ORDERS,
    SEARCHES,
    STATE,
    TRANSPORTS,
)

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.formats.io.source import Source
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.training.model import TrainingModel
    from mtpp.training.pfeife.line import ModelLine
    from mtpp.training.pfeife.problem import SplitProblem, SplitRules
    from mtpp.training.pfeife.schedule import PassSchedule
    from mtpp.units import Exact

MOST_DEVICES, MOST_MICRO_BATCHES = 10_000, 10**6
"""Of a plan; all its passes together have a limit of their own."""

OWN: Mapping[str, Any] = {
    "micro_batches": None,
    "loops": None,
    "loop_batch": LOOP_BATCHES[0],
    "prefetch": None,
    "backward_ratio": None,
    "state": None,
    "transport": TRANSPORTS[0],
    "order": ORDERS[0],
    "search": SEARCHES[0],
    "buffers": BUFFERS[0],
    "speed": None,
    "schedule": None,
    "dims": None,
    "costs": None,
}
"""Parameters that mean something to this planner alone, and what they are where they were not given."""

IDLE: Mapping[str, Any] = {
    "topology": None,
    "max_micro_batches": None,
    "batch_size": None,
    "micro_batch_size": None,
    "gradient_accumulation": None,
    "exact_micro_batches": False,
    "convention": "paper",
    "knapsack": "exact",
    "data_parallel": True,
    "tensor_parallel": True,
    "recompute": True,
    "micro_batch_sizes": None,
    "per_stage_micro_batch": False,
    "kfkb": (1,),
    "in_flight": "any",
    "sequential": False,
}
"""Parameters that mean nothing to it."""

STDIN = "-"

_EXAMPLES = {"devices": "‹devices› 4", "micro_batches": "‹micro_batches› 8"}

_LARGEST, _FINEST = 10**6, 10**9
"""Of numbers that times and sizes are multiplied or divided by: the largest value and the largest denominator."""

_NAMED_LOOPS = {"interleaved": 2, "zero-bubble": 2, "bfs": 2}
"""Loops of named schedules where none are given."""


@dataclass(frozen=True)
class SplitPlanRequest:
    """A model, its devices and micro-batches, and the splits and schedules that are allowed.

    Attributes
    ----------
    memory_bytes, speeds
        One value, or one for each device; None: no limit, and equal speeds.
    backward_ratio, state
        None where they were not given.
    costs
        Path of a file with measured times of a graph's ops.
    schedule
        Name, path of a file, or the passes themselves.
    from_format
        Name of the format of the model, which then is a graph; None: by its content.
    """

    model: Any
    devices: int | None
    micro_batches: int | None
    bandwidth: int | str | None
    memory_bytes: Sequence[int] | None
    speeds: Sequence[Exact] | None
    loops: Sequence[int] | None
    loop_batch: str
    prefetch: Sequence[int] | None
    backward_ratio: Exact | None
    state: Exact | None
    latency_ticks: int
    transport: str
    order: str
    search: str
    schedule: str | PassSchedule | None
    buffers: str = BUFFERS[0]
    dims: SizeTerms | str | None = None
    costs: str | None = None
    time_unit: str | None = None
    deadline: Deadline = field(default_factory=Deadline)
    jobs: int | None = None
    from_format: str | None = None


def split_request(model: Any, deadline: Deadline, parameters: Mapping[str, Any]) -> SplitPlanRequest:
    """Return the request of a call.

    Parameters
    ----------
    parameters
        Those of :func:`mtpp.plan_training` that mean something to this planner, as the caller gave them.

    Raises
    ------
    InputError
        If a value is of the wrong kind, by the parameter's name.
    """
    from mtpp.training.pfeife.schedule import PassSchedule

    schedule, prefetch, loops = (parameters[name] for name in ("schedule", "prefetch", "loops"))
    if schedule is not None:
        for name, what in (("prefetch", "what is prefetched"), ("loop_batch", "how micro-batches go through loops")):
            if parameters[name] != OWN[name]:
                raise InputError(f"the schedule says {what}", parameter=name, remedy="leave one of them out")
        if schedule == STDIN and model == STDIN:
            raise InputError("only one of model and schedule can be standard input", parameter="schedule")
    return SplitPlanRequest(
        model,
        whole_or_none(parameters["devices"], "devices", most=MOST_DEVICES),
        whole_or_none(parameters["micro_batches"], "micro_batches", most=MOST_MICRO_BATCHES),
        parameters["bandwidth"],
        _each(parameters["memory"], _size),
        _each(parameters["speed"], partial(_number, parameter="speed")),
        None if loops is None else whole_numbers(loops, "loops"),
        choice(parameters["loop_batch"], "loop_batch", LOOP_BATCHES),
        None if prefetch is None else _counts(prefetch),
        None if parameters["backward_ratio"] is None else _number(parameters["backward_ratio"], "backward_ratio"),
        None if parameters["state"] is None else _number(parameters["state"], "state"),
        quantity(parameters["latency"], "latency", latency_ticks, least=0) or 0,
        choice(parameters["transport"], "transport", TRANSPORTS),
        choice(parameters["order"], "order", ORDERS),
        choice(parameters["search"], "search", SEARCHES),
        schedule if schedule is None or isinstance(schedule, PassSchedule) else path_text(schedule, "schedule"),
        choice(parameters["buffers"], "buffers", BUFFERS),
        parameters["dims"],
        None if parameters["costs"] is None else path_text(parameters["costs"], "costs"),
        time_unit_or_none(parameters["time_unit"]),
        deadline,
        whole_or_none(parameters["jobs"], "jobs"),
    )


def _each(value: Any, one: Callable[[Any], Any]) -> list[Any] | None:
    """Return one value or several, given as a list or as a text with commas; None for None."""
    if value is None:
        return None
    if isinstance(value, str):
        value = value.split(",")
    elif not isinstance(value, Iterable):
        value = [value]
    return [one(part.strip() if isinstance(part, str) else part) for part in value]


def _size(value: Any) -> int:
    """Return the memory of a device, in bytes."""
    from mtpp.units import parse_bytes

    size = quantity(value, "memory", partial(parse_bytes, round_down=True))
    if not size:
        problem = "must be above zero" if size == 0 else f"{shortened(value)} is no size"
        raise InputError(problem, parameter="memory", remedy="leave it out for no limit")
    return size


def _number(value: Any, parameter: str) -> Exact:
    """Return an exact number above zero: an int, a Fraction, a float as it prints, or a decimal text."""
    from mtpp.units import exact_decimal

    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        number: Exact = value
    else:
        try:
            number = exact_decimal(str(value))
        except ValueError:
            raise InputError(f"{shortened(value)} is not a number", parameter=parameter) from None
    if not 0 < number <= _LARGEST:
        remedy = f"it must be above 0 and at most {_LARGEST:,}"
        raise InputError(f"{shortened(value)} is out of range", parameter=parameter, remedy=remedy)
    if number.denominator > _FINEST:
        raise InputError(f"{shortened(value)} has too many digits", parameter=parameter, remedy="round it to nine")
    return number


def _counts(value: Any) -> Sequence[int]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{shortened(value)} is no list of whole numbers", parameter="prefetch")
    return tuple(whole(one, "prefetch", least=0, most=10**6) for one in value)


@dataclass(frozen=True)
class SplitTask:
    """A model as read, without the bytes of its file, and the planning problem that it makes.

    Attributes
    ----------
    about
        What a document says of the model.
    leaner
        The same with configurations of layers that hold less, to turn to where nothing fits.
    """

    source: Source
    about: Mapping[str, Any]
    problem: SplitProblem
    leaner: Sequence[SplitProblem] = ()


def read_split_task(request: SplitPlanRequest, observer: Observer) -> SplitTask:
    """Read the model of a request and make its planning problem; warn of what the reader assumed.

    Raises
    ------
    InputError
        If the model or the schedule is broken, something was not given, or parameters do not go together.
    """
    from mtpp.api.inputs.model import MAX_INPUT_BYTES, Model
    from mtpp.api.inputs.python_models import source_at
    from mtpp.api.inputs.reading import source_of
    from mtpp.api.training.task import read_training_model
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.training.models import looks_like_training_model, training_model_from_source
    from mtpp.training.model import TrainingModel

    missing = [name for name in _EXAMPLES if getattr(request, name) is None]
    if missing:
        names = ", ".join(f"‹{name}›" for name in missing)
        raise InputError(f"{names} must be given", remedy=f"write {_EXAMPLES[missing[0]]}")
    if isinstance(request.model, TrainingModel):
        _refuse_graph_terms(request)
        return _of_layers(request, *read_training_model(request.model, request.time_unit), observer)
    if isinstance(request.model, Model):
        for name in ("dims", "costs", "time_unit", "bandwidth"):
            if getattr(request, name):
                raise InputError("was said when the model was read", parameter=name, remedy="leave it out")
        return _of_graph(request, request.model, observer)
    if request.from_format is not None:
        source = source_at(request.model, request.from_format, MAX_INPUT_BYTES)
        return _of_graph(request, _graph_of(request, source, observer), observer)
    source = source_of(request.model, None, "model", folders=True)
    if not looks_like_training_model(Content(source)):
        return _of_graph(request, _graph_of(request, source, observer), observer)
    _refuse_graph_terms(request)
    return _of_layers(request, training_model_from_source(source, request.time_unit), source, observer)


def _refuse_graph_terms(request: SplitPlanRequest) -> None:
    """Raise InputError if something was given that only graphs have."""
    for name in ("dims", "costs"):
        if getattr(request, name):
            raise InputError("has no effect on a model of layers", parameter=name, remedy="leave it out")


def _graph_of(request: SplitPlanRequest, source: Source, observer: Observer) -> Model:
    """Return the graph in a file on the reference system, with the link that was asked for."""
    from mtpp.api.inputs.model import read_model
    from mtpp.api.options.reading import Reading

    how = Reading(
        bandwidth=request.bandwidth,
        dims=request.dims,
        costs=request.costs,
        from_format=request.from_format,
        time_unit=request.time_unit,
    )
    return read_model(source.display, how, observer.warn, source=source)


def _of_graph(request: SplitPlanRequest, model: Model, observer: Observer) -> SplitTask:
    from mtpp.formats.io.json_shape import attributed
    from mtpp.training.pfeife.line import graph_line

    for text in model.assumptions()[1:]:
        observer.say(f"{model.source.display}: {text}")
    with attributed(model.source.display):
        ratio, state = request.backward_ratio or BACKWARD_RATIO, request.state or STATE
        line = graph_line(
            model.graph, model.instance(1), backward_ratio=ratio, state=state, latency=request.latency_ticks
        )
        if line.trained is False:
            observer.warn(f"{model.source.display}: no parameter of it is trained, so backward passes take no time")
        if request.latency_ticks and not line.timed:
            raise InputError("is a time, and the graph has no unit of time", parameter="latency")
        problem = _problem(request, line, model.system.bandwidth_bytes_per_s)
    about: dict[str, Any] = {
        "kind": "graph",
        "name": model.graph.name,
        "sha256": model.source.sha256,
        "ops": model.graph.op_count,
        "tensors": model.graph.tensor_count,
        "dims": dict(model.dims),
        **({"proposed_dims": list(model.proposed_dims)} if model.proposed_dims else {}),
        "system": model.system.to_document(),
    }
    if model.costs_sha256 is not None:
        about["costs_sha256"] = model.costs_sha256
    return SplitTask(replace(model.source, data=b""), about, problem)


def _of_layers(request: SplitPlanRequest, model: TrainingModel, source: Source, observer: Observer) -> SplitTask:
    from mtpp.api.options.reading import Machine
    from mtpp.formats.io.json_shape import attributed
    from mtpp.training.pfeife.line import CHOICES, layer_line

    if request.state is not None:
        raise InputError("has no effect: layers say what memory they need", parameter="state", remedy="leave it out")
    bandwidth = Machine(bandwidth=request.bandwidth).machine.bandwidth_bytes_per_s

    def problem(choice: str) -> SplitProblem:
        line = layer_line(
            model,
            bandwidth_bytes_per_s=bandwidth,
            backward_ratio=request.backward_ratio or BACKWARD_RATIO,
            memory_bytes=max(request.memory_bytes) if request.memory_bytes else None,
            choice=choice,
            latency=request.latency_ticks,
        )
        return _problem(request, line, bandwidth)

    with attributed(source.display):
        fastest, *others = map(problem, CHOICES if request.memory_bytes else CHOICES[:1])
    for text in model.assumptions:
        observer.warn(f"{source.display}: {text}")
    about = {
        "kind": "layers",
        "name": model.name,
        "sha256": source.sha256,
        "layers": len(model.layers),
        "edges": len(model.edges),
    }
    return SplitTask(replace(source, data=b""), about, fastest, others)


def _problem(request: SplitPlanRequest, line: ModelLine, bandwidth: int) -> SplitProblem:
    from mtpp.training.pfeife.problem import SplitProblem

    devices, micro_batches = request.devices or 0, request.micro_batches or 0
    return SplitProblem.build(
        line,
        devices=devices,
        micro_batches=micro_batches,
        bandwidth_bytes_per_s=bandwidth,
        memory_bytes=_of_devices(request.memory_bytes, devices),
        speeds=_of_devices(request.speeds, devices),
        backward_ratio=request.backward_ratio or BACKWARD_RATIO,
        state=request.state or STATE,
        rules=_rules(request, devices, micro_batches),
    )


def _of_devices(values: Sequence[Any] | None, devices: int) -> Sequence[Any] | None:
    return values if values is None or len(values) != 1 else list(values) * devices


def _rules(request: SplitPlanRequest, devices: int, micro_batches: int) -> SplitRules:
    from mtpp.training.pfeife.problem import SplitRules

    schedule = None
    if request.schedule is not None:
        schedule = _schedule(request.schedule, request.loops, devices, micro_batches)
    return SplitRules(
        request.loops or LOOPS,
        request.loop_batch,  # type: ignore[arg-type]
        request.prefetch,
        schedule,
        request.transport,  # type: ignore[arg-type]
        request.order,  # type: ignore[arg-type]
        request.search,  # type: ignore[arg-type]
        request.buffers,  # type: ignore[arg-type]
    )


def _schedule(
    given: str | PassSchedule, loops: Sequence[int] | None, devices: int, micro_batches: int
) -> tuple[str, PassSchedule]:
    """Return the schedule that is meant, and what it is called.

    Raises
    ------
    InputError
        If the file is broken, or a name does not go with the numbers.
    """
    from mtpp.formats.io.source import read_source
    from mtpp.formats.training.pass_schedule import EXPECTED, pass_schedule_from_source
    from mtpp.names import SCHEDULES
    from mtpp.training.pfeife.named import named_schedule

    if isinstance(given, str) and given in SCHEDULES:
        if loops is not None and len(loops) != 1:
            raise InputError("a schedule has one number of loops", parameter="loops", remedy="give one number")
        count = loops[0] if loops else _NAMED_LOOPS.get(given, 1)
        return given, named_schedule(given, devices, micro_batches, count)
    if isinstance(given, str):
        if given != STDIN and not os.path.exists(given):
            remedy = f"give a file, or one of {', '.join(SCHEDULES)}"
            raise InputError(
                f"there is no file {given!r}, nor a schedule of that name", parameter="schedule", remedy=remedy
            )
        source = read_source(given, expected=EXPECTED)
        schedule, name = pass_schedule_from_source(source), os.path.basename(source.display)
        name = f"./{name}" if name in SCHEDULES else name  # names of schedules say which passes they have
    else:
        schedule, name = given, given.name or "given"
        if name in SCHEDULES and not _is_named(name, given):
            name = "given"
    if loops is not None:
        raise InputError("the schedule says how many loops there are", parameter="loops", remedy="leave it out")
    return name, schedule


def _is_named(name: str, given: PassSchedule) -> bool:
    """Tell whether a schedule has the passes that its name stands for."""
    from mtpp.training.pfeife.named import named_schedule

    try:
        due = named_schedule(name, given.devices, given.micro_batches, given.stages // given.devices)
    except InputError:
        return False
    return list(map(list, given.rows)) == list(map(list, due.rows)) and not given.dependencies
