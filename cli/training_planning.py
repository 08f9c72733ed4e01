"""From the options of ``mtpp plan`` to a plan, and from a plan to its readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.options.training import MicroBatches
    from mtpp.cli.terminal.console import Console
    from mtpp.formats.io.source import Source
    from mtpp.formats.results.training_plan import Plan, Problem
    from mtpp.host.interruption import Interruption
    from mtpp.host.progress import Observer
    from mtpp.solvers.planners.limits import NoPlan, PlanLimits
    from mtpp.solvers.planners.registry import PlannerEntry
    from mtpp.training.problem import PlanningProblem


@dataclass(frozen=True)
class TrainingTask:
    """What is to be planned: a model as read, without the bytes of its file, and the problem that it makes."""

    source: Source
    problem: Problem
    micro_batches: MicroBatches
    planner: PlannerEntry
    knapsack: str

    @property
    def flat(self) -> PlanningProblem:
        """The problem of the innermost level of devices; all of it where there is one level."""
        from mtpp.formats.results.training_plan import level_one

        return level_one(self.problem)


@dataclass(frozen=True)
class Planned:
    """A task with what came of it.

    Attributes
    ----------
    elapsed_s
        Seconds of planning.
    plan, no_plan
        The plan, or why there is none.
    heuristic_differs
        Stages that bang per buck would have made slower.
    """

    task: TrainingTask
    elapsed_s: float
    plan: Plan | None = None
    no_plan: NoPlan | None = None
    heuristic_differs: Sequence[int] = ()

    @property
    def stopped(self) -> str:
        """Why planning ended, one of ``solvers.search.STOPS``."""
        result = self.plan or self.no_plan
        assert result is not None
        return result.stopped


def read_task(path: str, options: Mapping[str, Any], console: Console) -> TrainingTask:
    """Read the model at *path*, make the problem that the options say, and warn of what the reader assumed."""
    from dataclasses import replace

    from mtpp.cli.options.training import TrainingSystem
    from mtpp.formats.io.source import read_source
    from mtpp.formats.training.models import EXPECTED, training_model_from_source
    from mtpp.solvers.planners.registry import PLANNERS

    system = TrainingSystem.of(options)
    source = read_source(path, expected=EXPECTED)
    model = training_model_from_source(source, options["time_unit"])
    problem = system.problem(model, source, options)
    assert system.micro_batches is not None
    planner = PLANNERS[options["planner"]]
    if options["knapsack"] == "heuristic" and not (planner.knapsack and system.topology is None):
        where = f"on the planner {planner.name}" if system.topology is None else "with several levels of devices"
        raise InputError(f"has no effect {where}", source="--knapsack", remedy="leave it out")
    for text in model.assumptions:
        console.warn(f"{source.display}: {text}")
    kept = replace(source, data=b"")
    return TrainingTask(kept, problem, system.micro_batches, planner, options["knapsack"])


def make_training_plan(task: TrainingTask, options: Mapping[str, Any], console: Console) -> Planned:
    """Plan as asked; progress goes to standard error.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted it before there was any plan.
    """
    from mtpp.host.interruption import Interruption
    from mtpp.solvers.planners.limits import NoPlan
    from mtpp.solvers.planners.piper.bang_per_buck import slower_by_bang_per_buck

    run = _planner_of(task)
    await_kernels(task, console)
    with Interruption() as interruption, console.search(Picoseconds()) as live:
        limits = planning_limits(options, live, interruption)
        start = time.monotonic()
        result = _in_time(task, run, limits)
        elapsed_s = time.monotonic() - start
    if isinstance(result, NoPlan):
        if result.stopped == "interrupted":
            raise KeyboardInterrupt
        return Planned(task, elapsed_s, no_plan=result)
    differs = []
    if task.knapsack == "exact":
        differs = slower_by_bang_per_buck(task.flat, result.stages, [one.in_flight for one in result.figures])
    return Planned(task, elapsed_s, result, heuristic_differs=differs)


def _in_time(task: TrainingTask, run: Callable[[PlanLimits], Plan | NoPlan], limits: PlanLimits) -> Plan | NoPlan:
    """Return what a planner comes to, and that there is no plan where it does not come back in time."""
    from mtpp.host.memory_limit import limited_memory, spare_memory
    from mtpp.host.overrun import Overrun, run_in_time
    from mtpp.solvers.planners.limits import NoPlan

    if limits.deadline.limit_s is None and not limited_memory():
        return run(limits)
    try:
        return run_in_time(lambda: run(limits), limits.deadline, lambda: limits.stop)
    except Overrun as overrun:
        stopped = overrun.stopped
    except MemoryError as error:
        clear_frames(error.__traceback__)  # or they would keep what has used it up
        stopped = "memory-limit"
    spare_memory()
    reason = "the memory did not suffice" if stopped == "memory-limit" else "none was found in the time"
    return NoPlan(task.flat, task.planner.name, False, None, stopped, reason)


def _planner_of(task: TrainingTask) -> Callable[[PlanLimits], Plan | NoPlan]:
    from mtpp.training.nested_problem import HierarchicalProblem

    problem = task.problem
    if isinstance(problem, HierarchicalProblem):
        nested = task.planner.load_hierarchical()
        if nested is None:
            problem_text = f"the planner {task.planner.name} plans for one level of devices"
            raise InputError(problem_text, source="--topology", remedy="use --planner piper")
        return partial(nested, problem)
    return partial(task.planner.load(), problem)


def await_kernels(task: TrainingTask, console: Console) -> None:
    """Say so if inner loops have to be compiled first, and compile them, so that the clock shows planning alone."""
    from mtpp.solvers.planners.compiling import compiled_planner, load_planner

    nested = task.flat is not task.problem
    if not compiled_planner(task.planner, nested=nested):
        console.say("compiling (once) …")
        load_planner(task.planner, nested=nested)


class Picoseconds:
    """The ticks of all planning problems, said to people."""

    def describe(self, ticks: float) -> str:
        """Return so many ticks with their unit."""
        from mtpp.units import format_picoseconds

        return format_picoseconds(float(ticks))


def planning_limits(options: Mapping[str, Any], observer: Observer, interruption: Interruption) -> PlanLimits:
    """Return how long a planner may take, and how it works, as the options say."""
    from mtpp.cli.planning import available_cores
    from mtpp.cli.terminal.clock import deadline_from_start
    from mtpp.solvers.planners.limits import PlanLimits

    return PlanLimits(
        deadline_from_start(options["time_limit"]),
        jobs=options["jobs"] or available_cores(),
        knapsack=options["knapsack"],
        observer=observer,
        interrupted=lambda: interruption.requested,
    )


def plan_json(planned: Planned) -> str:
    """Return the ``mtpp-training-plan`` document, version 1, of a plan or of there being none."""
    from mtpp.formats.results.training_plan import no_plan_document, plan_document, write_training_plan

    sha256, elapsed_s = planned.task.source.sha256, planned.elapsed_s
    if planned.plan is not None:
        return write_training_plan(
            plan_document(
                planned.plan,
                sha256=sha256,
                knapsack=planned.task.knapsack,
                heuristic_differs=planned.heuristic_differs,
                elapsed_s=elapsed_s,
            )
        )
    none = planned.no_plan
    assert none is not None
    return write_training_plan(
        no_plan_document(
            planned.task.problem,
            planner=none.planner,
            sha256=sha256,
            proven=none.proven,
            least_memory_bytes=none.least_memory_bytes,
            reason=none.reason,
            stopped=none.stopped,
            elapsed_s=elapsed_s,
        )
    )
