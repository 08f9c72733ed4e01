"""Schedule of a training plan of the planner ``pfeife``, with the times that the plan says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.training.pfeife.timed_schedule import TimedSchedule

_SAYS_ITSELF = ("batch_size", "micro_batch_size", "time_unit")


def planned_schedule(plan: dict[str, Any], given: Mapping[str, Any]) -> tuple[TimedSchedule, int]:
    """Return the schedule of a plan, and the ticks that the plan says an iteration takes.

    Parameters
    ----------
    plan
        The document.
    given
        What the caller says besides.
    """
    from mtpp.checker.training.versions import check_any_training_plan
    from mtpp.formats.results.planned_schedule import timed_schedule

    check_any_training_plan(plan, ())
    for name in _SAYS_ITSELF:
        if name in given:
            raise InputError("the plan states it itself", parameter=name, remedy="leave it out")
    if "model" in given:
        raise InputError("has no effect: the plan says all times", parameter="model", remedy="leave it out")
    return timed_schedule(plan), plan["iteration_ticks"]
