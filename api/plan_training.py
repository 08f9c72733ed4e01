"""Plans for training: pipeline stages with data and tensor parallelism and recomputation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from mtpp.api.inputs.reading_in_time import reading_given
from mtpp.api.observer import Observer, listener
from mtpp.api.output import SavedResult
from mtpp.api.parameters import choice, deadline_of
from mtpp.api.training.graph_result import GraphPlanResult
from mtpp.api.training.graph_task import (
    IDLE,
    OWN,
    GraphPlanRequest,
    graph_request,
    plan_graph_task,
    read_graph_task,
    refuse_idle,
    whole_numbers,
)
from mtpp.api.training.parameters import CHOICES, batch_parameters, request_of, system_parameters
from mtpp.api.training.running import run_planner
from mtpp.api.training.task import Picoseconds, TrainingPlanRequest, await_kernels, read_training_task
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.planners.registry import GRAPH_PLANNERS

if TYPE_CHECKING:
    import os

    from mtpp.api.training.keywords import AnyParameters, GraphParameters, LineParameters
    from mtpp.formats.results.training_plan import AnyTrainingPlan
    from mtpp.solvers.planners.limits import NoPlan, PlanLimits
    from mtpp.training.device_tree import DeviceTree
    from mtpp.training.model import TrainingModel
    from mtpp.views.training.training_results import Planned, TrainingTask


@overload
def plan_training(
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel,
    *,
    planner: Literal["piper", "equi", "pipedream-2bw"] = "piper",
    **parameters: Unpack[LineParameters],
) -> TrainingPlanResult: ...


@overload
def plan_training(
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel,
    *,
    planner: Literal["graphpipe"],
    **parameters: Unpack[GraphParameters],
) -> GraphPlanResult: ...


@overload
def plan_training(
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel,
    *,
    planner: str,
    **parameters: Unpack[AnyParameters],
) -> TrainingPlanResult | GraphPlanResult: ...


def plan_training(
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel,
    *,
    devices: int | None = None,
    memory: str | int | None = None,
    bandwidth: str | int | None = None,
    topology: str | os.PathLike[str] | DeviceTree | None = None,
    planner: str = "piper",
    max_micro_batches: int | None = None,
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    gradient_accumulation: int | None = None,
    exact_micro_batches: bool = False,
    convention: str = "paper",
    data_parallel: bool = True,
    tensor_parallel: bool = True,
    recompute: bool = True,
    knapsack: str = "exact",
    latency: str | int | None = None,
    micro_batch_sizes: Iterable[int] | None = None,
    per_stage_micro_batch: bool = False,
    kfkb: Iterable[int] = (1,),
    in_flight: str = "any",
    sequential: bool = False,
    time_unit: str | None = None,
    time_limit_s: float | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
) -> TrainingPlanResult | GraphPlanResult:
    """Plan how to train a model on K devices, and prove how close to the best plan that is.

    Parameters
    ----------
    model
        Layers with their configurations: the path of a file in one of the formats of ``docs/formats.md``, its content
        as bytes or as parsed JSON, or a :class:`mtpp.training.model.TrainingModel`.
    devices
        Devices that there are, K; a plan may use fewer.
    memory
        Of each device: bytes, or a text such as ``"16GiB"``.
    bandwidth
        Of each device's link: bytes a second, or a text such as ``"25GB/s"``.
    topology
        Networks within networks, in place of *devices* and *bandwidth*: a TOML file, or levels of devices.
    planner
        ``piper`` for stages of any kind in a line, or a baseline of equal stages: ``equi``, ``pipedream-2bw``. These
        make least the time that the slowest stage takes for a micro-batch. ``graphpipe`` for stages that form any
        acyclic graph: it makes least the time of an iteration.
    max_micro_batches
        N: degrees of data parallelism add up to at most N.
    batch_size, micro_batch_size, gradient_accumulation
        Sizes in samples, and passes to an update (by default 1), that give N = ⌊B / (g · b)⌋ in its place. With
        ``graphpipe``, *batch_size* is the mini-batch of an iteration, and *micro_batch_size* says what the model's
        times are of, where the model does not.
    exact_micro_batches
        Degrees of data parallelism add up to exactly N.
    convention
        Costs of ``paper`` or ``program``, see :data:`mtpp.training.problem.CONVENTIONS`.
    data_parallel, tensor_parallel, recompute
        Schemes that plans may use.
    knapsack
        Choose configurations of layers as well as possible (``exact``), or by bang per buck (``heuristic``).
    latency
        With ``graphpipe``, as all that follow: of each transfer, picoseconds or a text such as ``"10us"``.
    micro_batch_sizes
        Samples b of micro-batches to try; None: those that the model has costs of, or powers of two, as far as they
        divide the mini-batch.
    per_stage_micro_batch
        Let stages have micro-batches of different sizes.
    kfkb
        Numbers k of backward passes that follow each other, and of forward passes; 1 is 1F1B.
    in_flight
        Micro-batches in flight: ``any`` number, or the ``least`` by GraphPipe's rule, which is for free transfers and
        passes that take equally long.
    sequential
        One line of stages, each waiting for the one before.
    time_unit
        Of times in a file that names none: ps, ns, us, ms or s.
    time_limit_s
        Seconds from this call on, after which the best plan so far is returned; None: no limit.
    jobs
        Threads; None: one for each core. The result does not depend on it.
    observer
        Is told of warnings, of phases of the search, and of plans and bounds in picoseconds.

    Returns
    -------
    The best plan found. With the planner ``piper``, without limits and with the exact knapsack it is optimal, and with
    ``graphpipe`` for models of few layers; in any case ``ratio`` is a proven bound on its distance to the optimum. That
    of ``graphpipe`` is a :class:`GraphPlanResult`.

    Raises
    ------
    InputError
        If the model is broken, or a parameter is missing or cannot be.
    Infeasible
        If no plan fits, or none was found in the time; the text says which, and which memory would do.
    LimitReached
        If the time limit passed, or the memory did not suffice, while the model was read.
    Interrupted
        If Ctrl-C ended the search before there was a plan. With a plan that is returned, its ``stopped`` being
        ``interrupted``.

    Examples
    --------
    >>> from mtpp.datasets.transformer_training import transformer_training
    >>> model = transformer_training(2, hidden=64, heads=4)
    >>> plan = plan_training(model, devices=4, memory="2GiB", bandwidth="25GB/s", max_micro_batches=4)
    >>> plan.optimal, plan.ratio
    (True, 1.0)
    >>> sorted(name for stage in plan.stages for name in stage.layers)
    ['embedding', 'head', 'layer 0', 'layer 1']
    """
    deadline = deadline_of(time_limit_s)
    own = {
        "latency": latency,
        "micro_batch_sizes": micro_batch_sizes,
        "per_stage_micro_batch": per_stage_micro_batch,
        "kfkb": whole_numbers(kfkb, "kfkb"),
        "in_flight": in_flight,
        "sequential": sequential,
    }
    if choice(planner, "planner", CHOICES["planner"]) in GRAPH_PLANNERS:
        idle = {
            "topology": topology,
            "max_micro_batches": max_micro_batches,
            "gradient_accumulation": gradient_accumulation,
            "exact_micro_batches": exact_micro_batches,
            "convention": convention,
            "knapsack": knapsack,
            "tensor_parallel": tensor_parallel,
        }
        refuse_idle(idle, IDLE, planner)
        flat = system_parameters(devices=devices, memory=memory, bandwidth=bandwidth, topology=None, micro_batches=None)
        given = {
            **own,
            "batch_size": batch_size,
            "micro_batch_size": micro_batch_size,
            "data_parallel": data_parallel,
            "recompute": recompute,
            "time_unit": time_unit,
            "jobs": jobs,
        }
        return _plan_graph(graph_request(model, flat, deadline, given), listener(observer))
    refuse_idle(own, OWN, planner)
    system = system_parameters(
        devices=devices,
        memory=memory,
        bandwidth=bandwidth,
        topology=topology,
        micro_batches=batch_parameters(max_micro_batches, batch_size, micro_batch_size, gradient_accumulation),
    )
    parameters = {
        "planner": planner,
        "knapsack": knapsack,
        "convention": convention,
        "exact_micro_batches": exact_micro_batches,
        "data_parallel": data_parallel,
        "tensor_parallel": tensor_parallel,
        "recompute": recompute,
        "time_unit": time_unit,
        "jobs": jobs,
    }
    request = request_of(model, system, deadline, parameters)
    heard = listener(observer)
    with reading_given(model, "model", deadline):
        task = read_training_task(request, heard)
    planned = plan_task(task, request, heard)
    if planned.no_plan is not None:
        raise no_plan_error(planned.no_plan, planned.task.source.display)
    return TrainingPlanResult(planned.sealed())


def _plan_graph(request: GraphPlanRequest, observer: Observer) -> GraphPlanResult:
    with reading_given(request.model, "model", request.deadline):
        task = read_graph_task(request, observer)
    planned = plan_graph_task(task, request, observer)
    if planned.no_plan is not None:
        from mtpp.views.training.graph_plan_texts import no_graph_plan_text

        raise Infeasible(no_graph_plan_text(planned.no_plan), source=planned.source.display)
    return GraphPlanResult(planned)


@dataclass(frozen=True)
class TrainingStage:
    """A stage of a plan.

    Attributes
    ----------
    layers
        Names of its layers, from sources to sinks.
    data_parallel, tensor_parallel
        d and t: copies of the stage, and devices that share a layer.
    devices
        Devices that it runs on, in all its copies.
    in_flight
        Micro-batches whose activations are kept.
    memory_bytes, time_s
        Of each of its devices: bytes held, and seconds per sample.
    configurations
        What each layer runs as.
    """

    layers: Sequence[str]
    data_parallel: int
    tensor_parallel: int
    devices: int
    in_flight: int
    memory_bytes: int
    time_s: float
    configurations: Mapping[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class TrainingPlanResult(SavedResult):
    """A plan for training, and what is proven about it; shown as the table that ``mtpp plan`` prints."""

    planned: Planned

    @property
    def plan(self) -> AnyTrainingPlan:
        """The plan with exact times, in ticks of a picosecond."""
        plan = self.planned.plan
        assert plan is not None
        return plan

    @property
    def time_per_sample_s(self) -> float:
        """Seconds that the slowest stage takes for a micro-batch."""
        return _seconds(self.plan.time_per_sample)

    @property
    def lower_bound_s(self) -> float:
        """Seconds that every plan takes at least."""
        return _seconds(self.plan.lower.value)

    @property
    def ratio(self) -> float | None:
        """Time per sample / lower bound; None where nothing is proven."""
        return self.plan.ratio

    @property
    def optimal(self) -> bool:
        """Whether no plan is faster, proven."""
        return self.plan.optimal

    @property
    def stopped(self) -> StopReason:
        """Reason that the search ended, such as ``finished``, ``time-limit`` or ``interrupted``."""
        return self.planned.stopped

    @property
    def devices_used(self) -> int:
        """Devices that have something to do."""
        return self.plan.devices_used

    @cached_property
    def stages(self) -> Sequence[TrainingStage]:
        """Stages in pipeline order, from the model's sources to its sinks."""
        return tuple(self._stage(i) for i in range(len(self.plan.stages)))

    def _stage(self, index: int) -> TrainingStage:
        from mtpp.formats.results.training_plan import level_one
        from mtpp.inference.frozen import frozen
        from mtpp.training.nested_plan import NestedPlan
        from mtpp.training.plan import chosen_of

        stage, figures, model = self.plan.stages[index], self.plan.figures[index], self.plan.problem.model
        place = {layer: at for at, layer in enumerate(model.order)}
        chosen = chosen_of(level_one(self.plan.problem), stage)
        named = {layer: one.configuration.id for layer, one in zip(stage.layers, chosen, strict=True)}
        ordered = sorted(stage.layers, key=place.__getitem__)
        copies = self.plan.replicas[index] if isinstance(self.plan, NestedPlan) else stage.data_parallel
        return TrainingStage(
            tuple(model.layers[layer].name for layer in ordered),
            stage.data_parallel,
            stage.tensor_parallel,
            copies * stage.tensor_parallel,
            figures.in_flight,
            figures.memory_bytes,
            _seconds(figures.time),
            frozen({model.layers[layer].name: named[layer] for layer in ordered}),
        )

    def document(self) -> dict[str, Any]:
        """Return the ``mtpp-training-plan`` document, which ``mtpp verify`` checks, as a copy that may be changed."""
        from mtpp.inference.frozen import thawed

        document: dict[str, Any] = thawed(self.planned.document())
        return document

    def to_json(self) -> str:
        """Return the text of the document."""
        from mtpp.views.training.training_plan import plan_json

        return plan_json(self.planned)

    def __repr__(self) -> str:
        from mtpp.views.tables import plain_terminal
        from mtpp.views.training.training_plan import training_plan_text

        return training_plan_text(self.planned, "table", plain_terminal()).removesuffix("\n")

    def _repr_html_(self) -> str:
        from mtpp.views.training.training_plan import training_plan_text

        return training_plan_text(self.planned, "html")


def no_plan_error(none: NoPlan, source: str) -> Infeasible:
    """Return the error that says why there is no plan for a model, and which memory would do."""
    from mtpp.views.training.training_texts import no_plan_text

    return Infeasible(no_plan_text(none), source=source)


def plan_task(task: TrainingTask, request: TrainingPlanRequest, observer: Observer) -> Planned:
    """Plan as asked; the search has the time and the threads of the request.

    Raises
    ------
    InputError
        If the planner is not for the devices asked for.
    Interrupted
        If the user interrupted it before there was any plan.
    """
    from mtpp.host.interruption import Interruption
    from mtpp.solvers.planners.limits import NoPlan
    from mtpp.solvers.planners.piper.bang_per_buck import slower_by_bang_per_buck
    from mtpp.views.training.training_results import Planned

    run = _planner_of(task)
    await_kernels(task, observer)
    with Interruption() as interruption, observer.search(Picoseconds()) as listener:
        limits = request.limits(listener, interruption)
        start = time.monotonic()
        result = _in_time(task, run, limits)
        elapsed_s = time.monotonic() - start
    if isinstance(result, NoPlan):
        if result.stopped == StopReason.INTERRUPTED:
            raise Interrupted
        return Planned(task, elapsed_s, no_plan=result)
    differs = []
    if task.knapsack == "exact":
        differs = slower_by_bang_per_buck(task.flat, result.stages, [one.in_flight for one in result.figures])
    return Planned(task, elapsed_s, result, heuristic_differs=differs)


def _in_time(
    task: TrainingTask, run: Callable[[PlanLimits], AnyTrainingPlan | NoPlan], limits: PlanLimits
) -> AnyTrainingPlan | NoPlan:
    """Return the result of a planner, or that there is no plan where it does not come back in time."""
    from mtpp.solvers.planners.limits import NoPlan

    result = run_planner(lambda: run(limits), limits)
    if not isinstance(result, StopReason):
        return result
    reason = "the memory did not suffice" if result == StopReason.MEMORY_LIMIT else "none was found in the time"
    return NoPlan(task.flat, task.planner.name, False, None, result, reason)


def _planner_of(task: TrainingTask) -> Callable[[PlanLimits], AnyTrainingPlan | NoPlan]:
    from mtpp.training.nested_problem import NestedProblem

    problem = task.problem
    if isinstance(problem, NestedProblem):
        nested = task.planner.load_nested()
        if nested is None:
            problem_text = f"the planner {task.planner.name} plans for one level of devices"
            raise InputError(problem_text, parameter="topology", remedy="use ‹planner› piper")
        return partial(nested, problem)
    return partial(task.planner.load(), problem)


def _seconds(ticks: Any) -> float:
    from mtpp.units import PICOSECONDS

    return float(ticks / PICOSECONDS["s"])
