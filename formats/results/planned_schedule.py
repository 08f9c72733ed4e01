"""Schedules with their times, read back from training plans of the planner ``pfeife``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import shown
from mtpp.training.pfeife.schedule import Pass, PassSchedule, read_pass
from mtpp.training.pfeife.timed_schedule import Handover, TimedSchedule, neighbour_handovers


def timed_schedule(plan: dict[str, Any]) -> TimedSchedule:
    """Return the passes that a plan has, with the times that it says.

    Parameters
    ----------
    plan
        Well-formed, as :func:`mtpp.checker.training.versions.check_any_training_plan` says.

    Raises
    ------
    InputError
        If it says that there is no plan, or its parts do not go together: with the place.
    """
    if not plan["feasible"]:
        raise InputError("says that there is no plan", where="/feasible", remedy="plan with more memory")
    schedule, rows = _schedule(plan["schedule"]), plan["stages"]
    if len(rows) != schedule.stages:
        problem = f"there are {len(rows):,} stages, and the passes are of {schedule.stages:,}"
        raise InputError(problem, where="/stages")
    for s, row in enumerate(rows):
        for key, due in (("index", s), ("device", s % schedule.devices)):
            if row[key] != due:
                raise InputError(f"expected {due}, found {shown(row[key])}", where=f"/stages/{s}/{key}")
    if plan["system"]["transport"] == "direct":
        handovers: Sequence[Handover] = list(_straight_handovers(rows))
    else:
        handovers = neighbour_handovers([_handover(row, s) for s, row in enumerate(rows[:-1])])
    return TimedSchedule(
        plan["model"]["name"],
        plan["time_unit"],
        plan["ticks_per_unit"],
        schedule,
        forward_ticks=[row["forward_ticks"] for row in rows],
        backward_ticks=[row["backward_ticks"] for row in rows],
        handovers=handovers,
    )


def _handover(row: dict[str, Any], stage: int) -> int:
    if row["handover_ticks"] is None:
        raise InputError("expected a whole number, found null", where=f"/stages/{stage}/handover_ticks")
    return int(row["handover_ticks"])


def _straight_handovers(rows: Sequence[dict[str, Any]]) -> Iterator[Handover]:
    for s, row in enumerate(rows):
        if "handovers" not in row:
            raise InputError("missing key 'handovers'", where=f"/stages/{s}")
        targets = set()
        for i, (target, ticks) in enumerate(row["handovers"]):
            if not s < target < len(rows) or target in targets:
                problem = f"{target} is no other stage behind stage {s}"
                raise InputError(problem, where=f"/stages/{s}/handovers/{i}/0", remedy="give each at most once")
            targets.add(target)
            yield Handover(s, target, ticks)


def _schedule(document: dict[str, Any]) -> PassSchedule:
    place = "/schedule"
    rows = [
        [_pass(name, f"{place}/order/{d}/{i}") for i, name in enumerate(row)] for d, row in enumerate(document["order"])
    ]
    pairs = [
        (_pass(before, f"{place}/dependencies/{i}/0"), _pass(after, f"{place}/dependencies/{i}/1"))
        for i, (before, after) in enumerate(document["dependencies"])
    ]
    try:
        schedule = PassSchedule.build(rows, pairs)
    except InputError as error:
        error.where = f"{place}{error.where or ''}"
        raise
    if document["micro_batches"] != schedule.micro_batches:
        problem = f"{document['micro_batches']:,}, and there are passes of {schedule.micro_batches:,}"
        raise InputError(problem, where=f"{place}/micro_batches")
    return schedule


def _pass(name: str, where: str) -> Pass:
    try:
        return read_pass(name)
    except InputError as error:
        error.where = where
        raise
