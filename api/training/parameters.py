"""Keyword parameters of planning for training, turned into a typed request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mtpp import names
from mtpp.api.parameters import choice, flag, path_text, quantity, time_unit_or_none, whole_or_none
from mtpp.api.training.task import TrainingPlanRequest, TrainingRules, TrainingSystem, model_parameter
from mtpp.errors import InputError
from mtpp.solvers.planners.limits import KNAPSACKS
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, PLANNERS, SPLIT_PLANNERS
from mtpp.training.graph_problem import IN_FLIGHT, MOST_INTERVALS
from mtpp.training.micro_batches import MOST_MICRO_BATCHES, micro_batches_of
from mtpp.training.pfeife.problem import BUFFERS, LOOP_BATCHES, ORDERS, SEARCHES, TRANSPORTS
from mtpp.training.problem import CONVENTIONS, Schemes

if TYPE_CHECKING:
    from mtpp.host.deadline import Deadline
    from mtpp.training.device_tree import DeviceTree
    from mtpp.training.micro_batches import MicroBatches

__all__ = [
    "CHOICES",
    "MOST_DEVICES",
    "MOST_INTERVALS",
    "PLAN_GRAPHS",
    "PLAN_SPLITS",
    "batch_parameters",
    "request_of",
    "system_parameters",
]

MOST_DEVICES = 1_000_000

PLAN_GRAPHS = tuple(GRAPH_PLANNERS)
"""Planners whose stages form a graph."""

PLAN_SPLITS = tuple(SPLIT_PLANNERS)
"""Planners of split points and schedules together."""

CHOICES = {
    "planner": names.PLANNERS,
    "convention": CONVENTIONS,
    "knapsack": KNAPSACKS,
    "in_flight": IN_FLIGHT,
    "loop_batch": LOOP_BATCHES,
    "transport": TRANSPORTS,
    "order": ORDERS,
    "search": SEARCHES,
    "buffers": BUFFERS,
}
"""Values that parameters may have, the default first."""


def request_of(
    model: Any, system: TrainingSystem, deadline: Deadline, parameters: dict[str, Any]
) -> TrainingPlanRequest:
    """Return the request of a call.

    Parameters
    ----------
    parameters
        ``planner``, ``knapsack``, ``convention``, ``exact_micro_batches``, ``data_parallel``, ``tensor_parallel``,
        ``recompute``, ``time_unit`` and ``jobs``, as the caller gave them.

    Raises
    ------
    InputError
        If a value is of the wrong kind, by the parameter's name.
    """
    schemes = {name: flag(parameters[name], name) for name in ("data_parallel", "tensor_parallel", "recompute")}
    return TrainingPlanRequest(
        model_parameter(model),
        system,
        TrainingRules(
            choice(parameters["convention"], "convention", CHOICES["convention"]),
            flag(parameters["exact_micro_batches"], "exact_micro_batches"),
            Schemes(**schemes),
        ),
        choice(parameters["planner"], "planner", tuple(PLANNERS)),
        choice(parameters["knapsack"], "knapsack", CHOICES["knapsack"]),
        time_unit_or_none(parameters["time_unit"]),
        deadline,
        whole_or_none(parameters["jobs"], "jobs"),
    )


def system_parameters(
    *, devices: Any, memory: Any, bandwidth: Any, topology: Any, micro_batches: MicroBatches | None
) -> TrainingSystem:
    """Return the devices of a call, whose values may be texts with units.

    Raises
    ------
    InputError
        If a value is of the wrong kind, or *topology* comes with what it says itself.
    """
    from mtpp.units import parse_bandwidth, parse_bytes

    count = whole_or_none(devices, "devices", most=MOST_DEVICES)
    size = quantity(memory, "memory", partial(parse_bytes, round_down=True))
    if size == 0:
        raise InputError("must be above zero", parameter="memory")
    rate = quantity(bandwidth, "bandwidth", parse_bandwidth)
    if topology is None:
        return TrainingSystem(count, size, rate, None, micro_batches)
    for name, value in (("devices", devices), ("bandwidth", bandwidth)):
        if value is not None:
            raise InputError(f"says what ‹{name}› does", parameter="topology", remedy="give one of them")
    return TrainingSystem.of_levels(_device_tree(topology), size, micro_batches)


def batch_parameters(
    max_micro_batches: Any, batch_size: Any, micro_batch_size: Any, gradient_accumulation: Any
) -> MicroBatches | None:
    """Return N of a call; None where nothing was given.

    Raises
    ------
    InputError
        If a value is of the wrong kind, or they do not go together.
    """
    return micro_batches_of(
        whole_or_none(max_micro_batches, "max_micro_batches", most=MOST_MICRO_BATCHES),
        batch_size=whole_or_none(batch_size, "batch_size"),
        micro_batch_size=whole_or_none(micro_batch_size, "micro_batch_size"),
        gradient_accumulation=whole_or_none(gradient_accumulation, "gradient_accumulation"),
    )


def _device_tree(value: Any) -> DeviceTree:
    from mtpp.training.device_tree import DeviceTree, load_device_tree

    return value if isinstance(value, DeviceTree) else load_device_tree(path_text(value, "topology"))
