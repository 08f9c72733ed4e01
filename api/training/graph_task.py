"""Planning of stage graphs: the model read, the problem made, and planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mtpp.api.training.machine_devices import equal_devices
from mtpp.api.training.running import limited, run_from_first
from mtpp.api.training.task import Picoseconds, SuppliedModel, read_training_model
from mtpp.errors import InputError, Interrupted
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.options.graphpipe import GraphPipe
    from mtpp.api.options.machine import Devices
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.graph_plan import PlannedGraph
    from mtpp.host.deadline import Deadline
    from mtpp.training.graph_problem import GraphProblem

_EXAMPLES = {
    "devices": "‹devices› 8",
    "memory": "‹memory› 16GiB",
    "bandwidth": "‹bandwidth› 12.5GB/s",
    "batch_size": "‹batch_size› 128",
}


@dataclass(frozen=True)
class GraphTask:
    """A model as read, without the bytes of its file, and the planning problem that it makes."""

    source: Source
    problem: GraphProblem


def read_graph_task(
    given: SuppliedModel, planner: GraphPipe, devices: Devices, time_unit: str | None, observer: Observer
) -> GraphTask:
    """Read a model and make its planning problem; warn of what the reader assumed.

    Raises
    ------
    InputError
        If the model is broken, something was not given, or parameters do not go together.
    """
    from mtpp.formats.io.json_shape import attributed
    from mtpp.training.graph_problem import GraphProblem, GraphRules

    devices, machine = equal_devices(devices, planner.name)
    refuse_topology(devices, planner.name)
    values = (devices.devices, devices.equal_memory(), devices.rate, planner.batch_size)
    model, source = read_training_model(given, time_unit)
    missing = [name for name, value in zip(_EXAMPLES, values, strict=True) if value is None]
    if missing:
        names = ", ".join(f"‹{name}›" for name in missing)
        raise InputError(f"{names} must be given", source=source.display, remedy=f"write {_EXAMPLES[missing[0]]}")
    named: dict[str, Any] = {"per_stage": planner.per_stage_micro_batch, "intervals": planner.kfkb}
    with attributed(source.display):
        problem = GraphProblem.build(
            model,
            machine=devices.as_machine(latency_ps=int(planner.latency or 0), named=machine),
            mini_batch=planner.batch_size or 0,
            micro_batch_size=planner.micro_batch_size,
            rules=GraphRules(**named, **planner.values_of(GraphRules)),
        )
    for text in model.assumptions:
        observer.warn(f"{source.display}: {text}")
    return GraphTask(replace(source, data=b""), problem)


def refuse_topology(devices: Devices, planner: str) -> None:
    """Raise InputError if networks within networks were given to a planner of one level of devices."""
    if devices.topology is not None:
        raise InputError(f"has no effect on the planner {planner}", parameter="topology", remedy="leave it out")


def plan_graph_task(task: GraphTask, deadline: Deadline, jobs: int | None, observer: Observer) -> PlannedGraph:
    """Plan as asked, until the deadline, with so many threads; all cores for None."""
    from mtpp.formats.results.graph_plan import PlannedGraph
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.limits import Limits
    from mtpp.solvers.planners.first_plans import first_graph_plan, result_beside_first
    from mtpp.solvers.planners.graphpipe.least_memory import nothing_found
    from mtpp.solvers.planners.registry import GRAPH_PLANNERS
    from mtpp.training.graph_plan import PLANNER

    with limited(Limits, deadline, jobs, observer, Picoseconds()) as limits:
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
