"""Simulation of training pipelines: when each pass and each transfer begins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from mtpp.api.inputs.pipeline import read_pipeline
from mtpp.api.observer import Observer, compilation_told, listener
from mtpp.api.options.simulating import Simulating
from mtpp.api.training.simulated import SimulatedPipeline, SimulatedSchedule, check_gantt, check_trace
from mtpp.errors import FalseClaim

if TYPE_CHECKING:
    from mtpp.api.training.plan_results import GraphPlanResult, SplitPlanResult, TrainingPlanResult
    from mtpp.training.model import TrainingModel
    from mtpp.training.pfeife.schedule_run import ScheduleRun
    from mtpp.training.pfeife.timed_schedule import TimedSchedule
    from mtpp.training.stage_graph import StageGraph

__all__ = ["SimulatedPipeline", "SimulatedSchedule", "check_gantt", "check_trace", "simulate"]


@overload
def simulate(
    pipeline: StageGraph | TrainingPlanResult | GraphPlanResult,
    *,
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel | None = None,
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    time_unit: str | None = None,
    observer: Observer | None = None,
) -> SimulatedPipeline: ...


@overload
def simulate(pipeline: SplitPlanResult, *, observer: Observer | None = None) -> SimulatedSchedule: ...


@overload
def simulate(
    pipeline: str | os.PathLike[str] | bytes | Mapping[str, Any],
    *,
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel | None = None,
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    time_unit: str | None = None,
    observer: Observer | None = None,
) -> SimulatedPipeline | SimulatedSchedule: ...


def simulate(
    pipeline: str
    | os.PathLike[str]
    | bytes
    | Mapping[str, Any]
    | StageGraph
    | TrainingPlanResult
    | GraphPlanResult
    | SplitPlanResult,
    *,
    model: str | os.PathLike[str] | bytes | Mapping[str, Any] | TrainingModel | None = None,
    batch_size: int | None = None,
    micro_batch_size: int | None = None,
    time_unit: str | None = None,
    observer: Observer | None = None,
) -> SimulatedPipeline | SimulatedSchedule:
    """Simulate one iteration of a training pipeline: every pass starts as soon as it can.

    Keywords that are not listed are fields of :class:`mtpp.api.options.simulating.Simulating`.

    A stage runs its passes one after the other, in its order. Forward pass j waits for the forward passes of the stages
    before that have samples of its micro-batch, its backward pass for the backward passes of the stages behind. Each
    transfer has a channel of its own in each direction, beside computing: first come, first served. After its last pass
    a stage synchronises gradients.

    A plan of the planner ``pfeife`` says its schedule and all times: each device runs the passes of its stages one
    after the other, and each pair of devices has a channel in each direction.

    Parameters
    ----------
    pipeline
        A stage graph, ``mtpp-stage-graph`` in ``docs/formats.md``, or a training plan: the path of its file, its
        content as bytes or as parsed JSON; or a :class:`mtpp.training.stage_graph.StageGraph`, or what
        :func:`mtpp.plan_training` returned.
    model
        That a training plan is for, as :func:`mtpp.plan_training` takes it; one in memory brings its own. Plans of the
        planner ``pfeife`` need none.
    observer
        Is told if inner loops have to be compiled first.

    Returns
    -------
    For plans of the planner ``pfeife`` a :class:`~mtpp.api.training.simulated.SimulatedSchedule`, with figures of
    devices and the critical path; else a :class:`~mtpp.api.training.simulated.SimulatedPipeline`.

    Raises
    ------
    InputError
        If the pipeline or the model is broken, they do not go together, or a size is missing or divides nothing: the
        message names the place.
    Deadlock
        An InputError too: passes wait for each other, so that the iteration never ends; the text names them.
    FalseClaim
        An InputError too: the plan says another iteration than its passes take; the text has both.

    Notes
    -----
    Stages of a plan run in a line, each waiting for the one before, while tensors go straight to their readers. Costs
    of sizes that the model does not list are in proportion, its backward passes twice its forward passes.

    O(passes · transfers of their stage); 32 stages with 512 micro-batches take milliseconds.

    Examples
    --------
    >>> stage = {"micro_batch": 1, "forward": 1, "backward": 2}
    >>> pipeline = {
    ...     "format": "mtpp-stage-graph", "version": 1, "name": "four in a line", "time_unit": "ms", "mini_batch": 8,
    ...     "stages": [{**stage, "in_flight": 4 - s} for s in range(4)],
    ...     "transfers": [{"source": s, "target": s + 1, "forward": 0, "backward": 0} for s in range(3)],
    ... }
    >>> simulated = simulate(pipeline)
    >>> simulated.iteration_s
    0.033
    >>> [stage.peak_in_flight for stage in simulated.stages]
    [4, 3, 2, 1]
    """
    from mtpp.formats.io.json_shape import attributed
    from mtpp.solvers.last_look.simulations import look_at_simulation
    from mtpp.solvers.planners.simulation.simulate import simulate as simulated
    from mtpp.training.stage_graph import StageGraph

    heard = listener(observer)
    asked = Simulating(batch_size=batch_size, micro_batch_size=micro_batch_size, time_unit=time_unit)
    given = {"model": model, **asked.values()}
    read = read_pipeline(pipeline, {name: value for name, value in given.items() if value is not None}, heard)
    with attributed(read.display), compilation_told(heard):
        if isinstance(read.pipeline, StageGraph):
            found = simulated(read.pipeline)
            look_at_simulation(found)
            return SimulatedPipeline(found, read.inputs, read.files)
        return SimulatedSchedule(_run(read.pipeline, read.due), read.inputs, read.files)


def _run(timed: TimedSchedule, due: int | None) -> ScheduleRun:
    """Simulate a schedule that should take *due* ticks."""
    from mtpp.solvers.last_look.simulations import look_at_schedule_run
    from mtpp.solvers.planners.simulation.simulate import simulate_schedule

    run = simulate_schedule(timed)
    look_at_schedule_run(run)
    if due is not None and run.iteration != due:
        raise FalseClaim(
            f"{due:,} ticks, but its passes take {run.iteration:,}",
            where="/iteration_ticks",
            remedy="the plan has been changed since it was made; make it anew",
        )
    return run
