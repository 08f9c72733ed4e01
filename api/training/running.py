"""Planner at work, within its time and memory."""

from __future__ import annotations

from collections.abc import Callable
from traceback import clear_frames
from typing import TYPE_CHECKING, TypeVar

from mtpp.host.stop_reason import StopReason

if TYPE_CHECKING:
    from mtpp.solvers.limits import Limits

R = TypeVar("R")


def run_planner(plan: Callable[[], R], limits: Limits) -> R | StopReason:
    """Return the result of a planner, or the reason that it did not come back."""
    from mtpp.host.memory_limit import limited_memory, spare_memory
    from mtpp.host.overrun import Overrun, run_in_time

    if limits.deadline.limit_s is None and not limited_memory():
        return plan()
    try:
        return run_in_time(plan, limits.deadline, lambda: limits.stop)
    except Overrun as overrun:
        stopped = overrun.stopped
    except MemoryError as error:
        clear_frames(error.__traceback__)  # or they would keep what has used it up
        stopped = StopReason.MEMORY_LIMIT
    spare_memory()
    return stopped
