"""Planning of stage graphs: parameters checked, the model read, the problem made, and planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.observer import Observer, compilation_told
from mtpp.api.parameters import choice, flag, quantity, shortened, time_unit_or_none, whole, whole_or_none
from mtpp.api.training.running import run_from_first
from mtpp.api.training.task import Picoseconds, model_parameter, read_training_model
from mtpp.errors import InputError, Interrupted
from mtpp.host.deadline import Deadline
from mtpp.training.graph_problem import IN_FLIGHT, GraphRules

if TYPE_CHECKING:
    from mtpp.api.training.task import TrainingSystem
    from mtpp.formats.io.source import Source
    from mtpp.training.graph_problem import GraphProblem
    from mtpp.training.model import TrainingModel
    from mtpp.views.training.planned_graph import PlannedGraph

_EXAMPLES = {
    "devices": "‹devices› 8",
    "memory": "‹memory› 16GiB",
    "bandwidth": "‹bandwidth› 12.5GB/s",
    "batch_size": "‹batch_size› 128",
}

IDLE: Mapping[str, Any] = {
    "topology": None,
    "max_micro_batches": None,
    "gradient_accumulation": None,
    "exact_micro_batches": False,
    "convention": "paper",
    "knapsack": "exact",
    "tensor_parallel": True,
}
"""Parameters that mean nothing to planners of iterations, and what they are where they were not given."""

OWN: Mapping[str, Any] = {
    "latency": None,
    "micro_batch_sizes": None,
    "per_stage_micro_batch": False,
    "kfkb": (1,),
    "in_flight": IN_FLIGHT[0],
    "sequential": False,
}
"""Parameters that mean something to planners of iterations alone, and what they are where they were not given."""


@dataclass(frozen=True)
class GraphPlanRequest:
    """A model, its devices and mini-batch, and the plans that are allowed."""

    model: str | bytes | Mapping[str, Any] | TrainingModel
    system: TrainingSystem
    batch_size: int | None
    micro_batch_size: int | None
    latency_ticks: int
    rules: GraphRules
    time_unit: str | None = None
    deadline: Deadline = field(default_factory=Deadline)
    jobs: int | None = None


def refuse_idle(given: Mapping[str, Any], defaults: Mapping[str, Any], planner: str) -> None:
    """Raise InputError if a parameter was given that means nothing to a planner."""
    for name, default in defaults.items():
        if given[name] is not default and given[name] != default:
            raise InputError(f"has no effect on the planner {planner}", parameter=name, remedy="leave it out")


def graph_request(
    model: Any, system: TrainingSystem, deadline: Deadline, parameters: Mapping[str, Any]
) -> GraphPlanRequest:
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
    sizes = parameters["micro_batch_sizes"]
    return GraphPlanRequest(
        model_parameter(model),
        system,
        whole_or_none(parameters["batch_size"], "batch_size"),
        whole_or_none(parameters["micro_batch_size"], "micro_batch_size"),
        quantity(parameters["latency"], "latency", latency_ticks, least=0) or 0,
        GraphRules(
            None if sizes is None else whole_numbers(sizes, "micro_batch_sizes"),
            flag(parameters["per_stage_micro_batch"], "per_stage_micro_batch"),
            whole_numbers(parameters["kfkb"], "kfkb"),
            choice(parameters["in_flight"], "in_flight", IN_FLIGHT),
            flag(parameters["sequential"], "sequential"),
            flag(parameters["data_parallel"], "data_parallel"),
            flag(parameters["recompute"], "recompute"),
        ),
        time_unit_or_none(parameters["time_unit"]),
        deadline,
        whole_or_none(parameters["jobs"], "jobs"),
    )


def latency_ticks(text: str) -> int:
    """Read a duration such as ``10us`` in picoseconds, rounded up."""
    from mtpp.units import ceil_ratio, parse_duration

    ticks = parse_duration(text)
    return ceil_ratio(ticks.numerator, ticks.denominator)


def whole_numbers(value: Any, parameter: str) -> Sequence[int]:
    """Return whole numbers above zero, one at least.

    Raises
    ------
    InputError
        If they are something else.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{shortened(value)} is no list of whole numbers", parameter=parameter)
    numbers = tuple(whole(one, parameter) for one in value)
    if not numbers:
        raise InputError("names nothing", parameter=parameter, remedy="give one number at least")
    return numbers


@dataclass(frozen=True)
class GraphTask:
    """A model as read, without the bytes of its file, and the planning problem that it makes."""

    source: Source
    problem: GraphProblem


def read_graph_task(request: GraphPlanRequest, observer: Observer) -> GraphTask:
    """Read the model of a request and make its planning problem; warn of what the reader assumed.

    Raises
    ------
    InputError
        If the model is broken, something was not given, or parameters do not go together.
    """
    from mtpp.formats.io.json_shape import attributed
    from mtpp.training.graph_problem import GraphProblem

    model, source = read_training_model(request.model, request.time_unit)
    system = request.system
    given = (system.devices, system.memory_bytes, system.bandwidth_bytes_per_s, request.batch_size)
    missing = [name for name, value in zip(_EXAMPLES, given, strict=True) if value is None]
    if missing:
        names = ", ".join(f"‹{name}›" for name in missing)
        raise InputError(f"{names} must be given", source=source.display, remedy=f"write {_EXAMPLES[missing[0]]}")
    devices, memory, bandwidth, batch = (value or 0 for value in given)
    with attributed(source.display):
        problem = GraphProblem.build(
            model,
            devices=devices,
            memory_bytes=memory,
            bandwidth_bytes_per_s=bandwidth,
            mini_batch=batch,
            latency_ticks=request.latency_ticks,
            micro_batch_size=request.micro_batch_size,
            rules=request.rules,
        )
    for text in model.assumptions:
        observer.warn(f"{source.display}: {text}")
    return GraphTask(replace(source, data=b""), problem)


def plan_graph_task(task: GraphTask, request: GraphPlanRequest, observer: Observer) -> PlannedGraph:
    """Plan as asked; the search has the time and the threads of the request.

    Raises
    ------
    Interrupted
        If the user interrupted it before there was any plan.
    """
    from mtpp.host.cores import available_cores
    from mtpp.host.interruption import Interruption
    from mtpp.host.stop_reason import StopReason
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.limits import Limits
    from mtpp.solvers.planners.ended_search import result_beside_first
    from mtpp.solvers.planners.first_plans import first_graph_plan
    from mtpp.solvers.planners.graphpipe.least_memory import nothing_found
    from mtpp.solvers.planners.registry import GRAPH_PLANNERS
    from mtpp.training.graph_plan import PLANNER
    from mtpp.views.training.planned_graph import PlannedGraph

    with compilation_told(observer), Interruption() as interruption, observer.search(Picoseconds()) as listener:
        limits = Limits(
            deadline=request.deadline,
            jobs=request.jobs or available_cores(),
            observer=listener,
            interrupted=lambda: interruption.requested,
        )
        start = search_clock()
        planner = GRAPH_PLANNERS[PLANNER].load()
        result = run_from_first(
            lambda: planner(task.problem, limits),
            limits,
            lambda stopped: first_graph_plan(task.problem, stopped),
            result_beside_first,
        )
        elapsed_s = search_clock() - start
    if isinstance(result, StopReason):
        result = nothing_found(task.problem, result)
    planned = PlannedGraph(task.source, result, elapsed_s)
    if planned.plan is None and planned.stopped == StopReason.INTERRUPTED:
        raise Interrupted
    return planned
