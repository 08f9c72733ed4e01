"""Planning of split points and a schedule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mtpp.api.training.running import limited, run_from_first, run_planner
from mtpp.errors import Deadlock, Interrupted
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.api.observer import Observer
    from mtpp.api.training.split_task import SplitTask
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.host.deadline import Deadline
    from mtpp.host.stop_reason import StopReason
    from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
    from mtpp.training.pfeife.problem import SplitProblem


def plan_split_task(task: SplitTask, deadline: Deadline, jobs: int | None, observer: Observer) -> PlannedSplit:
    """Plan as asked, until the deadline, with so many threads; all cores for None."""
    from mtpp.formats.results.split_plan import PlannedSplit
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.limits import Limits
    from mtpp.solvers.planners.ended_search import result_beside_first
    from mtpp.solvers.planners.first_plans import first_split_plan
    from mtpp.solvers.planners.pfeife.least_memory import nothing_found
    from mtpp.solvers.planners.registry import SPLIT_PLANNERS
    from mtpp.training.pfeife.plan import PLANNER, NoSplitPlan

    with limited(Limits, deadline, jobs, observer, _Ticks(task.problem)) as limits:
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


class _Ticks:
    """Ticks of a problem, described for people."""

    def __init__(self, problem: SplitProblem) -> None:
        self._line = problem.line

    def describe(self, ticks: float) -> str:
        """Return so many ticks with their unit."""
        from mtpp.units import format_picoseconds

        if self._line.timed:
            return format_picoseconds(float(ticks))
        return f"{float(ticks) / self._line.ticks_per_unit:,.6g}"
