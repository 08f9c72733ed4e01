"""Figures of a plan by ``graphpipe``, re-derived and compared: stages, transfers, memory, the iteration."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mtpp.checker.document import PICOSECONDS_PER_UNIT
from mtpp.checker.facts import counted
from mtpp.checker.report import Check
from mtpp.checker.training.graphpipe.path_bound import path_bound
from mtpp.checker.training.graphpipe.pipeline import (
    Channel,
    GraphStage,
    Pipeline,
    TimedStage,
    depth_of,
    memory_bytes,
    time_per_sample,
)
from mtpp.checker.training.graphpipe.simulation import MOST_MESSAGES, messages, simulated_iteration

ITERATION = "iteration"
DERIVED = ("stage figures", "transfers", "stage memory", "depth", "time per sample", ITERATION)
"""Rows on figures, which need stages that are a plan."""

_SECOND = PICOSECONDS_PER_UNIT["s"]


def check_stage_figures(
    rows: Sequence[dict[str, Any]], stages: Sequence[GraphStage], timed: Sequence[TimedStage]
) -> Check:
    """Check what each stage is said to take and to need."""
    name = "stage figures"
    for i, (row, stage, mine) in enumerate(zip(rows, stages, timed, strict=True)):
        due = {
            "forward_ticks": mine.forward,
            "backward_ticks": mine.backward,
            "synchronisation_ticks": mine.synchronisation,
            "memory_bytes": memory_bytes(stage),
        }
        for key, value in due.items():
            if row[key] != value:
                return Check(name, False, f"stage {i}: the plan says {key} {row[key]}, it is {value}")
    return Check(name, True, counted(len(stages), "stage"))


def check_transfers(rows: Sequence[dict[str, Any]], channels: Sequence[Channel]) -> Check:
    """Check that the transfers are those between stages, in ascending order, and what they take."""
    name = "transfers"
    ends, due = [(row["source"], row["target"]) for row in rows], [(one.source, one.target) for one in channels]
    if ends != due:
        wrong = next((f"{s} to {t}" for s, t in due if (s, t) not in ends), None)
        if wrong is not None:
            return Check(name, False, f"the one from stage {wrong} is missing")
        wrong = next((f"{s} to {t}" for s, t in ends if (s, t) not in due), None)
        if wrong is not None:
            return Check(name, False, f"nothing passes from stage {wrong}")
        return Check(name, False, "they are not in ascending order, each once")
    for row, one in zip(rows, channels, strict=True):
        for key, value in (("forward_ticks", one.forward), ("backward_ticks", one.backward)):
            if row[key] != value:
                where = f"from stage {one.source} to {one.target}"
                return Check(name, False, f"{where}: the plan says {key} {row[key]}, it is {value}")
    return Check(name, True, f"{len(channels)} between stages")


def check_depth(plan: dict[str, Any], pipeline: Pipeline) -> Check:
    """Check the stages on the longest path."""
    name = "depth"
    due = depth_of(len(pipeline.stages), pipeline.channels)
    if plan["depth"] != due:
        return Check(name, False, f"the plan says {plan['depth']}, it is {due}")
    return Check(name, True, f"{counted(due, 'stage')} on the longest path")


def check_time_per_sample(plan: dict[str, Any], pipeline: Pipeline) -> Check:
    """Check what the slowest stage or channel takes for a sample."""
    name = "time per sample"
    stated, due = Fraction(*plan["time_per_sample_ticks"]), time_per_sample(pipeline)
    if stated != due:
        return Check(name, False, f"the plan says {stated} ticks, it is {due}")
    return Check(name, True, f"{due} ticks")


def check_iteration(plan: dict[str, Any], pipeline: Pipeline) -> tuple[Check, int | None]:
    """Check the iteration by a simulation, and its floats; return it besides, None if passes wait for each other."""
    if messages(pipeline) > MOST_MESSAGES:
        return Check(ITERATION, None, f"channels move more than {MOST_MESSAGES} micro-batches"), None
    due = simulated_iteration(pipeline)
    if due is None:
        return Check(ITERATION, False, "passes wait for each other: it does not end"), None
    least = path_bound(pipeline)
    if due < least:
        return Check(ITERATION, False, f"the verifier contradicts itself: {due} ticks, paths take {least}"), None
    if plan["iteration_ticks"] != due:
        return Check(ITERATION, False, f"the plan says {plan['iteration_ticks']} ticks, it is {due}"), due
    unit = plan["time_unit"]
    time = float(Fraction(due, PICOSECONDS_PER_UNIT[unit]))
    speed = float(Fraction(pipeline.mini_batch * _SECOND, due)) if due else None
    for key, mine in (("iteration_time", time), ("samples_per_s", speed)):
        said = None if plan[key] is None else float(plan[key])
        if said != mine:
            return Check(ITERATION, False, f"the plan says {key} {said!r}, it is {mine!r}"), due
    as_time = "" if unit == "ps" else f", {time!r} {unit}"
    return Check(ITERATION, True, f"{due} ticks{as_time}; paths alone take {least}"), due
