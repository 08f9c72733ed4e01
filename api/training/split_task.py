"""Task of planning split points and a schedule: the model read, the problem made and planned for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.api.parameters import whole
from mtpp.api.training.graph_task import refuse_topology
from mtpp.api.training.machine_devices import machine_devices
from mtpp.api.training.running import limited, run_from_first, run_planner
from mtpp.api.training.task import read_training_model
from mtpp.errors import Deadlock, InputError, Interrupted
from mtpp.host.stop_reason import StopReason
from mtpp.names import SCHEDULES
from mtpp.ranges import MOST_SPLIT_DEVICES
from mtpp.training.model import TrainingModel
from mtpp.training.pfeife.line import CHOICES, graph_line, layer_line
from mtpp.training.pfeife.problem import BACKWARD_RATIO, LOOPS, STATE, SplitProblem, SplitRules
from mtpp.wording import did_you_mean

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.observer import Observer
    from mtpp.api.options.machine import Devices
    from mtpp.api.options.pfeife import Pfeife
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.host.deadline import Deadline
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine
    from mtpp.training.pfeife.line import ModelLine
    from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
    from mtpp.training.pfeife.schedule import PassSchedule

STDIN = "-"

_EXAMPLES = {"devices": "‹devices› 4", "micro_batches": "‹micro_batches› 8"}

_NAMED_LOOPS = {"interleaved": 2, "zero-bubble": 2, "bfs": 2}
"""Loops of named schedules where none are given."""


class SplitTerms(NamedTuple):
    """A planner with its options, devices, and the unit of times in a file that names none.

    *system* is that of a *machine*, which models without times are read for.
    """

    planner: Pfeife
    devices: Devices
    time_unit: str | None
    system: Device | None = None
    machine: Machine | None = None

    def on_machine(self, observer: Observer) -> SplitTerms:
        """Return the terms with figures of the machine's devices in place of the machine."""
        found = machine_devices(self.devices, observer)
        if found is None:
            return self
        planner, given = self.planner, {"speed": found.speeds, "latency": found.latency_ps or None}
        own: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in own:
            if getattr(planner, name) is not None:
                raise InputError("is a figure of the machine", parameter=name, remedy="leave it out")
        planner = replace(planner, **own)
        return self._replace(planner=planner, devices=found.devices, system=found.system, machine=found.machine)

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.devices.devices or 0

    @property
    def costs(self) -> dict[str, Any]:
        """Numbers that costs of passes and memory follow from, where the model does not say them."""
        asked: dict[str, Any] = self.planner.values()
        return {
            "backward_ratio": asked["backward_ratio"] or BACKWARD_RATIO,
            "state": asked["state"] or STATE,
            "latency": asked["latency"] or 0,
        }


@dataclass(frozen=True)
class SplitTask:
    """A model as read, without the bytes of its file, and the planning problem that it makes.

    Attributes
    ----------
    about
        What a document says of the model.
    leaner
        The same with configurations of layers that hold less, to turn to where nothing fits.
    schedule_file
        Name of the file of the schedule in messages; None if it has a name, or is not from a file.
    """

    source: Source
    about: Mapping[str, Any]
    problem: SplitProblem
    leaner: Sequence[SplitProblem] = ()
    schedule_file: str | None = None


def read_split_task(given: Any, terms: SplitTerms, observer: Observer) -> SplitTask:
    """Read a model and make its planning problem; warn of what the reader assumed.

    Raises
    ------
    InputError
        If the model or the schedule is broken, something was not given, or parameters do not go together.
    """
    terms = terms.on_machine(observer)
    planner, devices = terms.planner, terms.devices
    refuse_topology(devices, planner.name)
    if planner.schedule == STDIN and given == STDIN:
        raise InputError("only one of model and schedule can be standard input", parameter="schedule")
    whole(devices.devices or 1, "devices", most=MOST_SPLIT_DEVICES)
    values = (devices.devices, planner.micro_batches)
    missing = [name for name, value in zip(_EXAMPLES, values, strict=True) if value is None]
    if missing:
        names = ", ".join(f"‹{name}›" for name in missing)
        raise InputError(f"{names} must be given", remedy=f"write {_EXAMPLES[missing[0]]}")
    return replace(_read(given, terms, observer), schedule_file=_schedule_file(planner.schedule))


def _read(given: Any, terms: SplitTerms, observer: Observer) -> SplitTask:
    from mtpp.api.inputs.model import MAX_INPUT_BYTES, Model
    from mtpp.api.inputs.python_models import source_at
    from mtpp.api.inputs.reading import source_of
    from mtpp.formats.graphs.graph_format import Content
    from mtpp.formats.training.models import looks_like_training_model, training_model_from_source

    from_format = terms.planner.from_format
    if isinstance(given, TrainingModel):
        _refuse(terms, "has no effect on a model of layers", "dims", "costs", "from_format")
        return _of_layers(terms, *read_training_model(given, terms.time_unit), observer)
    if isinstance(given, Model):
        linked = terms.system is not None and terms.system.link.rate == given.system.link.rate
        asked = ("dims", "costs", "time_unit", *(() if linked else ("bandwidth",)), "from_format")
        _refuse(terms, "was said when the model was read", *asked)
        return _of_graph(terms, given, observer)
    if from_format is not None and isinstance(given, str):
        source = source_at(given, from_format, MAX_INPUT_BYTES)
    else:
        source = source_of(given, None, "model", folders=True)
    if from_format is not None or not looks_like_training_model(Content(source)):
        return _of_graph(terms, _graph_of(terms, source, observer), observer)
    _refuse(terms, "has no effect on a model of layers", "dims", "costs")
    return _of_layers(terms, training_model_from_source(source, terms.time_unit), source, observer)


def _refuse(terms: SplitTerms, why: str, *names: str) -> None:
    """Raise InputError of the first of the parameters that was given."""
    given = {**terms.devices.values(), **terms.planner.values(), "time_unit": terms.time_unit}
    for name in names:
        if given[name]:
            raise InputError(why, parameter=name, remedy="leave it out")


def _graph_of(terms: SplitTerms, source: Source, observer: Observer) -> Model:
    """Return the graph in a file on the reference system, with the link that was asked for."""
    from mtpp.api.inputs.model import read_model
    from mtpp.api.options.reading import Reading

    bandwidth, unit = terms.devices.bandwidth, terms.time_unit
    on: dict[str, Any] = {"bandwidth": bandwidth} if terms.system is None else {"system": terms.system}
    how = Reading(**on, time_unit=unit, **terms.planner.values_of(Reading))
    return read_model(source.display, how, observer.warn, source=source)


def _of_graph(terms: SplitTerms, model: Model, observer: Observer) -> SplitTask:
    from mtpp.formats.io.json_shape import attributed

    for text in model.assumptions()[1:]:
        observer.say(f"{model.source.display}: {text}")
    with attributed(model.source.display):
        line = graph_line(model.graph, model.instance(1), **terms.costs)
        if line.trained is False:
            observer.warn(f"{model.source.display}: no parameter of it is trained, so backward passes take no time")
        if terms.planner.latency and not line.timed:
            raise InputError("is a time, and the graph has no unit of time", parameter="latency")
        problem = _problem(terms, line, model.system.link.bandwidth_bytes_per_s)
    about: dict[str, Any] = {
        "kind": "graph",
        "name": model.graph.name,
        **model.recorded,
        "ops": model.graph.op_count,
        "tensors": model.graph.tensor_count,
        "dims": dict(model.dims),
        **({"proposed_dims": list(model.proposed_dims)} if model.proposed_dims else {}),
        "system": model.system.to_document(),
    }
    return SplitTask(replace(model.source, data=b""), about, problem)


def _of_layers(terms: SplitTerms, model: TrainingModel, source: Source, observer: Observer) -> SplitTask:
    from mtpp.api.options.machine import System
    from mtpp.formats.io.json_shape import attributed

    _refuse(terms, "has no effect: layers say what memory they need", "state")
    bandwidth = System(bandwidth=terms.devices.bandwidth).device.link.bandwidth_bytes_per_s
    given: Any = terms.devices.memory
    memory = given if given is None or isinstance(given, int) else max(given)
    costs = {name: value for name, value in terms.costs.items() if name != "state"}

    def problem(choice: str) -> SplitProblem:
        line = layer_line(
            model,
            bandwidth_bytes_per_s=bandwidth,
            memory_bytes=memory,
            choice=choice,
            **costs,
        )
        return _problem(terms, line, bandwidth)

    with attributed(source.display):
        fastest, *others = map(problem, CHOICES if memory else CHOICES[:1])
    for text in model.assumptions:
        observer.warn(f"{source.display}: {text}")
    about = {
        "kind": "layers",
        "name": model.name,
        **source.identity,
        "layers": len(model.layers),
        "edges": len(model.edges),
    }
    return SplitTask(replace(source, data=b""), about, fastest, others)


def _problem(terms: SplitTerms, line: ModelLine, bandwidth: int) -> SplitProblem:
    costs = terms.costs
    return SplitProblem.build(
        line,
        machine=terms.devices.as_machine(bandwidth, speeds=terms.planner.speed, named=terms.machine),
        micro_batches=terms.planner.micro_batches or 0,
        backward_ratio=costs["backward_ratio"],
        state=costs["state"],
        rules=_rules(terms),
    )


def _rules(terms: SplitTerms) -> SplitRules:
    asked: dict[str, Any] = terms.planner.values_of(SplitRules)
    if asked["schedule"] is not None:
        asked["schedule"] = _schedule(terms, asked["schedule"], asked["loops"])
    return SplitRules(**{**asked, "loops": asked["loops"] or LOOPS}, loop_batches=terms.planner.loop_batch)


def _schedule(terms: SplitTerms, given: str | PassSchedule, loops: Sequence[int] | None) -> tuple[str, PassSchedule]:
    """Return the schedule that is meant, and what it is called."""
    from mtpp.formats.io.source import read_source
    from mtpp.formats.training.pass_schedule import EXPECTED, pass_schedule_from_source
    from mtpp.training.pfeife.named import named_schedule

    if isinstance(given, str) and given in SCHEDULES:
        if loops is not None and len(loops) != 1:
            raise InputError("a schedule has one number of loops", parameter="loops", remedy="give one number")
        count = loops[0] if loops else _NAMED_LOOPS.get(given, 1)
        return given, named_schedule(given, terms.size, terms.planner.micro_batches or 0, count)
    if isinstance(given, str):
        if given != STDIN and not os.path.exists(given):
            remedy = did_you_mean(given, SCHEDULES, f"give a file, or one of {', '.join(SCHEDULES)}")
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


def _schedule_file(given: Any) -> str | None:
    if given == STDIN:
        return "<stdin>"
    return given if isinstance(given, str) and given not in SCHEDULES else None


def plan_split_task(task: SplitTask, deadline: Deadline, jobs: int | None, observer: Observer) -> PlannedSplit:
    """Plan as asked, until the deadline, with so many threads; all cores for None."""
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.limits import Limits
    from mtpp.solvers.planners.first_plans import first_split_plan, result_beside_first
    from mtpp.solvers.planners.pfeife.least_memory import nothing_found
    from mtpp.solvers.planners.registry import SPLIT_PLANNERS
    from mtpp.training.pfeife.plan import PLANNER, NoSplitPlan

    with limited(Limits, deadline, jobs, observer, task.problem.line) as limits:
        start = search_clock()
        planner = SPLIT_PLANNERS[PLANNER].load()
        try:
            result = run_from_first(
                lambda: planner(task.problem, limits),
                limits,
                lambda stopped: first_split_plan(task.problem, stopped),
                result_beside_first,
            )
        except Deadlock as deadlock:
            deadlock.source = deadlock.source or task.schedule_file
            raise
        for leaner in task.leaner:
            if not isinstance(result, NoSplitPlan) or limits.stop is not None:
                break
            other = run_planner(partial(planner, leaner, limits), limits)
            result = _leaner_of(result, other)
        elapsed_s = search_clock() - start
    if isinstance(result, StopReason):
        result = nothing_found(task.problem, result)
    planned = PlannedSplit(task.source, task.about, result, elapsed_s)
    if planned.plan is None and planned.stopped == StopReason.INTERRUPTED:
        raise Interrupted
    return planned


def _leaner_of(none: NoSplitPlan, other: SplitPlan | NoSplitPlan | StopReason) -> SplitPlan | NoSplitPlan:
    """Return the plan, or of two that do not fit the one that needs less memory."""
    from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan

    if isinstance(other, SplitPlan):
        return other
    if isinstance(other, NoSplitPlan) and other.least_memory_bytes is not None:
        mine = none.least_memory_bytes
        return other if mine is None or other.least_memory_bytes < mine else none
    return none
