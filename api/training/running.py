"""Planner at work, within its time and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from mtpp.api.observer import Costs, Observer, compilation_told
from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.host.deadline import Deadline
    from mtpp.solvers.limits import Limits

R = TypeVar("R")
F = TypeVar("F", bound=Any)
L = TypeVar("L", bound="Limits")


@contextmanager
def limited(
    kind: type[L], deadline: Deadline, jobs: int | None, observer: Observer, costs: Costs, **more: Any
) -> Iterator[L]:
    """Give the limits of a search that *observer* hears and Ctrl-C ends, with all cores for no number of *jobs*.

    The observer is told of compilation, too.
    """
    from mtpp.host.capacity import available_cores
    from mtpp.host.interruption import Interruption

    with compilation_told(observer), Interruption() as interruption, observer.search(costs) as listener:
        yield kind(
            deadline=deadline,
            jobs=jobs or available_cores(),
            observer=listener,
            interrupted=lambda: interruption.requested,
            **more,
        )


def run_from_first(
    plan: Callable[[], R],
    limits: Limits,
    first: Callable[[StopReason], F | None],
    chosen: Callable[[Any, Any], Any],
) -> R | F | StopReason:
    """Return the result of a planner, or a plan that was made before it began.

    A time limit that passes meanwhile does not keep the first plan from being made; an interruption does.

    Parameters
    ----------
    first
        Makes a plan that says why the search ended, in next to no time; None if none of its few fits.
    chosen
        Chooses between a result and the first plan.
    """
    ready = _made_first(lambda: first(StopReason.TIME_LIMIT), limits)
    stopped = limits.stop
    if stopped is None or (ready is None and stopped is not StopReason.INTERRUPTED):
        result = run_planner(plan, limits)
        if not isinstance(result, StopReason):
            return result if ready is None else chosen(result, ready)
        stopped = result
    return stopped if ready is None else replace(ready, stopped=stopped)


def _made_first(first: Callable[[], F | None], limits: Limits) -> F | None:
    """Return a first plan; None if there is none, the memory does not suffice or the user does not want to wait."""
    from mtpp.host.deadline import Deadline
    from mtpp.host.ending import EndedEarly, run_in_time
    from mtpp.host.memory_limit import spare_memory

    try:
        return run_in_time(first, Deadline(), lambda: StopReason.INTERRUPTED if limits.interrupted() else None)
    except EndedEarly:
        spare_memory()
        return None


def run_planner(plan: Callable[[], R], limits: Limits) -> R | StopReason:
    """Return the result of a planner, or the reason that it did not come back: a limit, or an interruption."""
    from mtpp.host.ending import EndedEarly, run_in_time
    from mtpp.host.memory_limit import spare_memory

    try:
        return run_in_time(plan, limits.deadline, lambda: limits.stop)
    except EndedEarly as end:
        spare_memory()
        return end.stopped
