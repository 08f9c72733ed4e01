"""Plans for training: pipeline stages with data and tensor parallelism and recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from mtpp.api.inputs.reading_in_time import reading_given
from mtpp.api.observer import Observer, listener
from mtpp.api.options.machine import Devices
from mtpp.api.options.planners import GraphPipe, Pfeife, TrainingPlanner, planner_of, refuse_keywords
from mtpp.api.options.planning import Planning
from mtpp.api.options.reading import Formats
from mtpp.api.training.graph_task import plan_graph_task, read_graph_task
from mtpp.api.training.plan_results import GraphPlanResult, SplitPlanResult, TrainingPlanResult
from mtpp.api.training.running import limited, run_from_first
from mtpp.api.training.split_task import SplitTerms, plan_split_task, read_split_task
from mtpp.api.training.task import Picoseconds, SuppliedModel, model_parameter, read_training_task
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    import os

    from mtpp.api.inputs.model import Model
    from mtpp.formats.results.training_plan import AnyTrainingPlan, Planned, TrainingTask
    from mtpp.inference.graph import CostGraph
    from mtpp.machine.machine import Machine
    from mtpp.solvers.limits import PlanLimits
    from mtpp.training.plan import NoPlan

    AnyModel = SuppliedModel | os.PathLike[str] | CostGraph | Model

Result = TypeVar("Result")


@overload
def plan_training(
    model: AnyModel,
    *,
    planner: None = None,
    devices: int | None = None,
    memory: str | int | Iterable[str | int] | None = None,
    bandwidth: str | int | None = None,
    topology: str | os.PathLike[str] | Machine | None = None,
    machine: str | os.PathLike[str] | Machine | None = None,
    time_unit: str | None = None,
    time_limit_s: float | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
) -> TrainingPlanResult: ...


@overload
def plan_training(
    model: AnyModel,
    *,
    planner: TrainingPlanner[Result],
    devices: int | None = None,
    memory: str | int | Iterable[str | int] | None = None,
    bandwidth: str | int | None = None,
    topology: str | os.PathLike[str] | Machine | None = None,
    machine: str | os.PathLike[str] | Machine | None = None,
    time_unit: str | None = None,
    time_limit_s: float | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
) -> Result: ...


def plan_training(
    model: AnyModel,
    *,
    planner: TrainingPlanner[Any] | None = None,
    devices: int | None = None,
    memory: str | int | Iterable[str | int] | None = None,
    bandwidth: str | int | None = None,
    topology: str | os.PathLike[str] | Machine | None = None,
    machine: str | os.PathLike[str] | Machine | None = None,
    time_unit: str | None = None,
    time_limit_s: float | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
    **of_planner: object,
) -> Any:
    """Plan how to train a model on K devices, and prove how close to the best plan that is.

    Parameters
    ----------
    model
        Layers with their configurations: the path of a file in one of the formats of ``docs/formats.md``, its content
        as bytes or as parsed JSON, or a :class:`mtpp.training.model.TrainingModel`. With :class:`mtpp.Pfeife` also any
        graph that :func:`mtpp.read` takes, such as an ONNX model, or what it returned.
    planner
        :class:`mtpp.Piper` for stages of any kind in a line, or a baseline of equal stages: :class:`mtpp.Equi`,
        :class:`mtpp.PipeDream2BW`. These make least the time that the slowest stage takes for a micro-batch.
        :class:`mtpp.GraphPipe` for stages that form any acyclic graph, and :class:`mtpp.Pfeife` for runs of ops with a
        schedule of their passes: they make least the time of an iteration. Each has keywords of its own, such as
        ``mtpp.Pfeife(micro_batches=8)``. None: Piper with its defaults.
    devices, memory, bandwidth, topology, machine
        As in :class:`mtpp.api.options.machine.Devices`; *topology* is for planners of stages in a line, and a *machine*
        of devices that differ in speed or memory for :class:`mtpp.Pfeife`.
    time_unit, time_limit_s, jobs
        As in :class:`mtpp.api.options.reading.Formats` and :class:`mtpp.api.options.planning.Planning`.
    observer
        Is told of warnings, of phases of the search, and of plans and bounds in picoseconds.

    Returns
    -------
    The best plan found, with ``ratio``, a proven bound on its distance to the optimum. With Piper, without limits and
    with the exact knapsack it is optimal, and with GraphPipe for models of few layers. That of GraphPipe is a
    :class:`GraphPlanResult`, that of Pfeife a :class:`SplitPlanResult` with two ratios: to a bound on all splits under
    its schedule, and to one on all schedules asked for.

    Raises
    ------
    InputError
        If the model is broken, or a parameter is missing or cannot be.
    TypeError
        If a keyword is unknown, or one of a planner.
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
    >>> import mtpp
    >>> from mtpp.datasets.transformer_training import transformer_training
    >>> model = transformer_training(2, hidden=64, heads=4)
    >>> planner = mtpp.Piper(max_micro_batches=4)
    >>> plan = plan_training(model, planner=planner, devices=4, memory="2GiB", bandwidth="25GB/s")
    >>> plan.optimal, plan.ratio
    (True, 1.0)
    >>> sorted(name for stage in plan.stages for name in stage.layers)
    ['embedding', 'head', 'layer 0', 'layer 1']
    """
    refuse_keywords("plan_training", of_planner, planner)
    planning = Planning(time_limit_s=time_limit_s, jobs=jobs)
    deadline = Deadline(planning.time_limit_s)
    asked = planner_of(planner)
    system = Devices(devices=devices, memory=memory, bandwidth=bandwidth, topology=topology, machine=machine)
    unit, threads, heard = Formats(time_unit=time_unit).time_unit, planning.jobs, listener(observer)
    if isinstance(asked, Pfeife):
        with reading_given(model, "model", deadline):
            splits = read_split_task(model, SplitTerms(asked, system, unit), heard)
        split = plan_split_task(splits, deadline, threads, heard)
        if split.no_plan is not None:
            from mtpp.views.training.split_plan_texts import no_split_plan_text

            raise Infeasible(no_split_plan_text(split.no_plan), source=splits.source.display)
        return SplitPlanResult(split)
    given = model_parameter(model)
    if isinstance(asked, GraphPipe):
        with reading_given(given, "model", deadline):
            stages = read_graph_task(given, asked, system, unit, heard)
        graph = plan_graph_task(stages, deadline, threads, heard)
        if graph.no_plan is not None:
            from mtpp.views.training.training_texts import no_graph_plan_text

            raise Infeasible(no_graph_plan_text(graph.no_plan), source=graph.source.display)
        return GraphPlanResult(graph)
    with reading_given(given, "model", deadline):
        task = read_training_task(given, asked, system, unit, heard)
    planned = plan_task(task, deadline, threads, heard)
    if planned.no_plan is not None:
        from mtpp.views.training.training_texts import no_plan_text

        raise Infeasible(no_plan_text(planned.no_plan), source=task.source.display)
    return TrainingPlanResult(planned.sealed())


def plan_task(task: TrainingTask, deadline: Deadline, jobs: int | None, observer: Observer) -> Planned:
    """Plan as asked, until the deadline, with so many threads; all cores for None."""
    from mtpp.formats.results.training_plan import Planned
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.limits import PlanLimits
    from mtpp.solvers.planners.piper.bang_per_buck import slower_by_bang_per_buck
    from mtpp.training.plan import NoPlan

    run = _planner_of(task)
    with limited(PlanLimits, deadline, jobs, observer, Picoseconds(), knapsack=task.knapsack) as limits:
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
    from mtpp.solvers.planners.first_plans import first_nested_plan, result_beside_first
    from mtpp.solvers.planners.registry import PLANNERS
    from mtpp.training.nested_problem import NestedProblem
    from mtpp.training.plan import NoPlan

    def first(stopped: StopReason) -> AnyTrainingPlan | None:
        problem = task.problem
        if isinstance(problem, NestedProblem):
            return first_nested_plan(problem, task.planner, stopped)
        return PLANNERS[task.planner].load_first()(problem, stopped)

    result = run_from_first(lambda: run(limits), limits, first, result_beside_first)
    if not isinstance(result, StopReason):
        return cast("AnyTrainingPlan | NoPlan", result)
    reason = "the memory did not suffice" if result == StopReason.MEMORY_LIMIT else "none was found in the time"
    return NoPlan(task.flat, task.planner, False, None, result, reason)


def _planner_of(task: TrainingTask) -> Callable[[PlanLimits], AnyTrainingPlan | NoPlan]:
    from mtpp.solvers.planners.registry import PLANNERS
    from mtpp.training.nested_problem import NestedProblem

    entry, problem = PLANNERS[task.planner], task.problem
    if isinstance(problem, NestedProblem):
        nested = entry.load_nested()
        if nested is None:
            problem_text = f"the planner {task.planner} plans for one level of devices"
            raise InputError(problem_text, parameter="topology", remedy="use ‹planner› piper")
        return partial(nested, problem)
    return partial(entry.load(), problem)
