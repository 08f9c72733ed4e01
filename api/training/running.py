"""Planner at work, within its time and memory."""

from __future__ import annotations

from collections.abc import Callable
from traceback import clear_frames
from typing import TYPE_CHECKING, TypeVar

from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.solvers.limits import Limits

R = TypeVar("R")
F = TypeVar("F")


def run_from_first(
    plan: Callable[[], R],
    limits: Limits,
    first: Callable[[StopReason], F | None],
    cut_short: Callable[[R], StopReason | None],
) -> R | F | StopReason:
    """Return the result of a planner; where it found no plan by its end, one that was made before.

    Parameters
    ----------
    first
        Makes a plan that says why the search ended, in next to no time; None if none of its few fits.
    cut_short
        Tells why a search ended that found no plan, None if it came to its own end or found one.
    """
    from mtpp.host.memory_limit import limited_memory

    limited = limits.deadline.limit_s is not None or limited_memory()
    ready = first(StopReason.TIME_LIMIT) if limited else None
    result = run_planner(plan, limits)
    stopped = result if isinstance(result, StopReason) else cut_short(result)
    if stopped is None:
        return result
    if ready is not None and stopped is StopReason.TIME_LIMIT:
        return ready
    if ready is not None or not limited:
        made = first(stopped)
        return result if made is None else made
    return result


def run_planner(plan: Callable[[], R], limits: Limits) -> R | StopReason:
    """Return the result of a planner, or the reason that it did not come back: a limit, or an interruption."""
    from mtpp.host.memory_limit import spare_memory
    from mtpp.host.overrun import Overrun, run_in_time

    try:
        return run_in_time(plan, limits.deadline, lambda: limits.stop)
    except Overrun as overrun:
        stopped = overrun.stopped
    except MemoryError as error:
        clear_frames(error.__traceback__)  # or they would keep what has used it up
        stopped = StopReason.MEMORY_LIMIT
    spare_memory()
    return stopped
