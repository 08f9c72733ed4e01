"""Plans for training: pipeline stages with data and tensor parallelism and recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

from mtpp.api.inputs.reading_in_time import reading_given
from mtpp.api.observer import Observer, compilation_told, listener
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
from mtpp.api.training.line_result import TrainingPlanResult
from mtpp.api.training.parameters import CHOICES, batch_parameters, request_of, system_parameters
from mtpp.api.training.running import run_from_first
from mtpp.api.training.split_planning import plan_split_task
from mtpp.api.training.split_result import SplitPlanResult
from mtpp.api.training.split_task import IDLE as SPLIT_IDLE
from mtpp.api.training.split_task import OWN as SPLIT_OWN
from mtpp.api.training.split_task import SplitPlanRequest, read_split_task, split_request
from mtpp.api.training.task import (
    Picoseconds,
    TrainingPlanRequest,
    model_parameter,
    read_training_task,
)
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.host.stop_reason import StopReason
from mtpp.solvers.planners.registry import GRAPH_PLANNERS, SPLIT_PLANNERS

if TYPE_CHECKING:
    import os

    from mtpp.api.inputs.model import Model
    from mtpp.api.training.keywords import AnyParameters, GraphParameters, LineParameters, SplitParameters
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.formats.results.training_plan import AnyTrainingPlan
    from mtpp.inference.graph import CostGraph
    from mtpp.solvers.planners.limits import NoPlan, PlanLimits
    from mtpp.training.device_tree import DeviceTree
    from mtpp.training.model import TrainingModel
    from mtpp.training.pfeife.schedule import PassSchedule
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
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel | CostGraph | Model,
    *,
    planner: Literal["pfeife"],
    **parameters: Unpack[SplitParameters],
) -> SplitPlanResult: ...


@overload
def plan_training(
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel,
    *,
    planner: str,
    **parameters: Unpack[AnyParameters],
) -> TrainingPlanResult | GraphPlanResult | SplitPlanResult: ...


def plan_training(
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel | CostGraph | Model,
    *,
    devices: int | None = None,
    memory: str | int | Iterable[str | int] | None = None,
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
    micro_batches: int | None = None,
    speed: float | str | Iterable[float | str] | None = None,
    loops: Iterable[int] | None = None,
    loop_batch: str = "divisors",
    prefetch: Iterable[int] | None = None,
    schedule: str | os.PathLike[str] | PassSchedule | None = None,
    backward_ratio: float | str | None = None,
    state: float | str | None = None,
    transport: str = "neighbours",
    order: str = "file",
    search: str = "anneal",
    buffers: str = "in-flight",
    dims: SizeTerms | str | None = None,
    costs: str | os.PathLike[str] | None = None,
    time_unit: str | None = None,
    time_limit_s: float | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
) -> TrainingPlanResult | GraphPlanResult | SplitPlanResult:
    """Plan how to train a model on K devices, and prove how close to the best plan that is.

    Parameters
    ----------
    model
        Layers with their configurations: the path of a file in one of the formats of ``docs/formats.md``, its content
        as bytes or as parsed JSON, or a :class:`mtpp.training.model.TrainingModel`. With ``pfeife`` also any graph that
        :func:`mtpp.read` takes, such as an ONNX model, or what it returned.
    devices
        Devices that there are, K; a plan may use fewer.
    memory
        Of each device: bytes, or a text such as ``"16GiB"``. With ``pfeife``, one value or one for each device, or
        None for no limit.
    bandwidth
        Of each device's link: bytes a second, or a text such as ``"25GB/s"``, which is what ``pfeife`` takes for None.
    topology
        Networks within networks, in place of *devices* and *bandwidth*: a TOML file, or levels of devices.
    planner
        ``piper`` for stages of any kind in a line, or a baseline of equal stages: ``equi``, ``pipedream-2bw``. These
        make least the time that the slowest stage takes for a micro-batch. ``graphpipe`` for stages that form any
        acyclic graph, and ``pfeife`` for runs of ops with a schedule of their passes: they make least the time of an
        iteration.
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
        With ``graphpipe`` and ``pfeife``: of each transfer, picoseconds or a text such as ``"10us"``.
    micro_batch_sizes
        With ``graphpipe``, as all down to *sequential*: samples b of micro-batches to try; None: those that the model
        has costs of, or powers of two, as far as they divide the mini-batch.
    per_stage_micro_batch
        Let stages have micro-batches of different sizes.
    kfkb
        Numbers k of backward passes that follow each other, and of forward passes; 1 is 1F1B.
    in_flight
        Micro-batches in flight: ``any`` number, or the ``least`` by GraphPipe's rule, which is for free transfers and
        passes that take equally long.
    sequential
        One line of stages, each waiting for the one before.
    micro_batches
        With ``pfeife``, as all down to *costs*: micro-batches of an iteration, B.
    speed
        Of devices, one value or one for each, as multiples of what the model's times are of; None: 1.
    loops
        Numbers of stages of a device to try; None: 1, 2 and 3.
    loop_batch
        Micro-batches that go through a stage before its device turns to its next one: all ``divisors`` of B from the
        number of devices on, or ``any`` number from there on.
    prefetch
        Forward passes that each device runs before its first backward pass beyond those that it needs; None: whatever
        is best.
    schedule
        One schedule to keep to: ``gpipe``, ``1f1b``, ``interleaved``, ``bfs``, ``zero-bubble``, the path of a file, or
        the passes themselves.
    backward_ratio
        Backward pass / forward pass, where the model does not say; None: 2.
    state
        Bytes of training for each byte of a graph's parameters that are trained; None: 4.
    transport
        Tensors go through all ``neighbours`` between their stages, or ``direct`` to the stages that read them.
    order
        Cut the ops in the order of the ``file``, or ``search`` for a better one.
    search
        ``anneal``, or ``beam``, the search of Jhoo et al. (2025), for comparison.
    buffers
        Micro-batches whose received tensors and gradients a stage has room for: those ``in-flight``, or all, as
        ``torch-pipelining`` does.
    dims
        Sizes of symbolic dimensions of a model by name.
    costs
        File of measured times of a graph's ops, such as :func:`mtpp.profile` of an exported program with its backward
        passes; those that it does not have follow from *backward_ratio*.
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
    of ``graphpipe`` is a :class:`GraphPlanResult`, that of ``pfeife`` a :class:`SplitPlanResult` with two ratios: to a
    bound on all splits under its schedule, and to one on all schedules asked for.

    Raises
    ------
    InputError
        If the model is broken, or a parameter is missing or cannot be.
    Infeasible
        If no plan fits, or none was found in the time; the text says which, and which memory would do.
    Deadlock
        An InputError too: the passes of the schedule wait for each other.
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
    of_splits = {
        "micro_batches": micro_batches,
        "speed": speed,
        "loops": loops,
        "loop_batch": loop_batch,
        "prefetch": prefetch,
        "schedule": schedule,
        "backward_ratio": backward_ratio,
        "state": state,
        "transport": transport,
        "order": order,
        "search": search,
        "buffers": buffers,
        "dims": dims,
        "costs": costs,
    }
    own = {
        "latency": latency,
        "micro_batch_sizes": micro_batch_sizes,
        "per_stage_micro_batch": per_stage_micro_batch,
        "kfkb": whole_numbers(kfkb, "kfkb"),
        "in_flight": in_flight,
        "sequential": sequential,
    }
    if choice(planner, "planner", CHOICES["planner"]) in SPLIT_PLANNERS:
        idle = {
            **own,
            "topology": topology,
            "max_micro_batches": max_micro_batches,
            "batch_size": batch_size,
            "micro_batch_size": micro_batch_size,
            "gradient_accumulation": gradient_accumulation,
            "exact_micro_batches": exact_micro_batches,
            "convention": convention,
            "knapsack": knapsack,
            "data_parallel": data_parallel,
            "tensor_parallel": tensor_parallel,
            "recompute": recompute,
        }
        refuse_idle({name: idle[name] for name in SPLIT_IDLE}, SPLIT_IDLE, planner)
        given = {
            **of_splits,
            "devices": devices,
            "memory": memory,
            "bandwidth": bandwidth,
            "latency": latency,
            "time_unit": time_unit,
            "jobs": jobs,
        }
        return _plan_split(split_request(model, deadline, given), listener(observer))
    refuse_idle(of_splits, SPLIT_OWN, planner)
    if planner in GRAPH_PLANNERS:
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
    model = model_parameter(model)
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


def _plan_split(request: SplitPlanRequest, observer: Observer) -> SplitPlanResult:
    with reading_given(request.model, "model", request.deadline):
        task = read_split_task(request, observer)
    planned = plan_split_task(task, request, observer)
    if planned.no_plan is not None:
        from mtpp.views.training.split_plan_texts import no_split_plan_text

        raise Infeasible(no_split_plan_text(planned.no_plan), source=planned.source.display)
    return SplitPlanResult(planned)


def _plan_graph(request: GraphPlanRequest, observer: Observer) -> GraphPlanResult:
    with reading_given(request.model, "model", request.deadline):
        task = read_graph_task(request, observer)
    planned = plan_graph_task(task, request, observer)
    if planned.no_plan is not None:
        from mtpp.views.training.graph_plan_texts import no_graph_plan_text

        raise Infeasible(no_graph_plan_text(planned.no_plan), source=planned.source.display)
    return GraphPlanResult(planned)


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
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.planners.limits import NoPlan
    from mtpp.solvers.planners.piper.bang_per_buck import slower_by_bang_per_buck
    from mtpp.views.training.training_results import Planned

    run = _planner_of(task)
    with compilation_told(observer), Interruption() as interruption, observer.search(Picoseconds()) as listener:
        limits = request.limits(listener, interruption)
        start = search_clock()
        result = _in_time(task, run, limits)
        elapsed_s = search_clock() - start
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
    """Return the result of a planner, or a first plan where it does not come to a better one in time."""
    from mtpp.solvers.planners.ended_search import result_beside_first
    from mtpp.solvers.planners.first_plans import first_nested_plan
    from mtpp.solvers.planners.limits import NoPlan
    from mtpp.training.nested_problem import NestedProblem

    def first(stopped: StopReason) -> AnyTrainingPlan | None:
        problem = task.problem
        if isinstance(problem, NestedProblem):
            return first_nested_plan(problem, task.planner.name, stopped)
        return task.planner.load_first()(problem, stopped)

    result = run_from_first(lambda: run(limits), limits, first, result_beside_first)
    if not isinstance(result, StopReason):
        return cast("AnyTrainingPlan | NoPlan", result)
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
