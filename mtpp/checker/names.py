"""Names of algorithms, planners and ends of searches: each is one that there is, and has what it stands for.

Part of the independent verifier (:mod:`mtpp.checker.plan`), so the names are its own. How a result was found cannot be
derived from it: a row is due only where a name is none, or where the result is not such as its name says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

from mtpp.checker.graph import TickGraph
from mtpp.checker.report import Check, Tier

FOUND_BY = "found by"
"""Name of the row."""

GIVEN = "given"
"""A partition that the user brought along."""

ALGORITHMS = (
    *("auto", "downset", "anneal", "brkga", "mla", "mla-weighted", "random", "series-parallel", "slice"),
    *("even", "memory", "fill", "piper"),
)
"""Partitioners, ``piper`` being another name of ``downset``."""

BOUNDS = (
    *("simple", "downset", "node", "crossings", "fraction", "capacity"),
    *("bottleneck-no-dag", "bottleneck-no-cut-io", "bottleneck"),
    *("bottleneck-guess", "relaxation", "node-convex", "convex-weights", "position-weights", "configuration"),
    *("branch-and-bound", "exact-mip"),
)
"""Lower bounds; some of them find partitions on their way."""

_SIZED = re.compile(r"(.+)-([1-9][0-9]{0,11})")
"""Name of an algorithm that is given a number of evaluations: ``random-100``."""

_RULES = ("even", "memory", "fill")
"""Rules of engines: ranges of the file's order, as those of ``slice`` are."""

_NOT_REPEATED = ("slice", "series-parallel", *_RULES)
_EVOLVED = ("brkga", "mla", "mla-weighted")
"""Algorithms that have as many generations as chromosomes in one: their number is a square."""

EQUAL_WORK = "equal work"
"""The file's order cut into stages of about equal work, where a limit came before anything better."""

ONE_DEVICE = "one device"
"""All ops on one of several devices that differ."""

WHOLE = "whole"
"""All ops on each of several devices, which take turns."""

FINDERS = (*ALGORITHMS, *BOUNDS, EQUAL_WORK, ONE_DEVICE, WHOLE)

OPTIMAL = "optimal"
INFEASIBLE = "infeasible"
PLAN_ENDS = ("finished", OPTIMAL, "budget", "time-limit", "memory-limit", "interrupted", INFEASIBLE)
ROW_ENDS = ("target", "solver-target", "finished", "time-limit", "memory-limit", "interrupted")
"""Reasons why work ended: at a plan, and at a row of a table."""

PLANNERS = ("piper", "equi", "pipedream-2bw")
"""Planners of training plans of version 1."""


def plan_name_rows(plan: dict[str, Any], graph: TickGraph | None) -> list[Check]:
    """Return the row on a plan's names if one of them is wrong; without its graph as far as that can be told."""
    return _rows(_plan_fault(plan) or (None if graph is None else _slice_fault(plan, graph)))


def row_name_rows(row: dict[str, Any]) -> list[Check]:
    """Return the row on the names in a row of a table if one of them is wrong."""
    if "upper" in row and row["upper_algorithm"] not in FINDERS:
        return _rows(_unknown("algorithm", row["upper_algorithm"]))
    method = next((method for method in row["bounds"] if method not in BOUNDS), None)
    if method is not None:
        return _rows(_unknown("bound", method))
    if row["stopped"] not in ROW_ENDS:
        return _rows(_no_end(row["stopped"]))
    if row["stopped"] == "solver-target" and row["tier"] != Tier.SOLVER:
        return _rows(f"it ended by a bound of tier solver, and its best one is of tier {row['tier']}")
    return []


def training_name_rows(plan: dict[str, Any]) -> list[Check]:
    """Return the row on the names in a training plan of version 1 if one of them is wrong."""
    planner = plan["planner"]
    if planner not in PLANNERS:
        return _rows(_unknown("planner", planner))
    return _rows(_end_fault(plan) or (None if planner == "piper" else _equal_fault(plan)))


def any_training_name_rows(plan: dict[str, Any]) -> list[Check]:
    """Return the row on the names in a training plan of any version if one of them is wrong."""
    return training_name_rows(plan) if plan["version"] == 1 else end_rows(plan)


def end_rows(plan: dict[str, Any]) -> list[Check]:
    """Return the row on why planning ended if that is no end."""
    return _rows(_end_fault(plan))


def _rows(fault: str | None) -> list[Check]:
    return [] if fault is None else [Check(FOUND_BY, False, fault)]


def _unknown(what: str, name: str) -> str:
    return f"no {what} is called {name[:60]!r}"


def _no_end(stated: str) -> str:
    return f"{stated[:60]!r} is no reason why a search ends"


def _end_fault(plan: dict[str, Any]) -> str | None:
    stopped = plan["stopped"]
    if stopped not in PLAN_ENDS:
        return _no_end(stopped)
    if stopped == OPTIMAL and not plan.get("optimal"):
        return "it ended as the optimum was proven, and the plan does not say optimal"
    if stopped == INFEASIBLE and plan.get("feasible", True):
        return "it ended without a plan, and there is one"
    return None


def _is_algorithm(name: str) -> bool:
    sized = _SIZED.fullmatch(name)
    if name in ALGORITHMS or sized is None:
        return name in ALGORITHMS
    base, evaluations = sized[1], int(sized[2])
    if base not in ALGORITHMS or base in _NOT_REPEATED:
        return False
    return base not in _EVOLVED or isqrt(evaluations) ** 2 == evaluations


def _plan_fault(plan: dict[str, Any]) -> str | None:
    algorithm, found_by = plan["algorithm"], plan.get("found_by", plan["algorithm"])
    if algorithm != GIVEN and not _is_algorithm(algorithm):
        return _unknown("algorithm", algorithm)
    if found_by not in (GIVEN, algorithm, *FINDERS):
        return _unknown("algorithm", found_by)
    if (algorithm == GIVEN) != (found_by == GIVEN):
        return f"the algorithm is {algorithm}, and the partition was found by {found_by}"
    if "stopped" in plan and (fault := _end_fault(plan)) is not None:
        return fault
    return None


def _slice_fault(plan: dict[str, Any], graph: TickGraph) -> str | None:
    """Return what keeps a partition from being a cut of the graph's own order, by its algorithm; None if nothing."""
    name = plan["algorithm"]
    if name not in ("slice", *_RULES):
        return None
    if plan.get("found_by", name) not in (name, EQUAL_WORK):
        return f"{name} cuts the graph's own order, and the partition was found by {plan['found_by']}"
    stage_of = plan["assignment"]
    if plan["together"] or not all(name in stage_of for name in graph.op_names):
        return None  # groups are moved together first
    stages = [stage_of[graph.op_names[v]] for v in graph.order]
    return None if _ascending(stages) else f"{name} cuts the graph's own order, and the stages are no runs of it"


def _ascending(values: Sequence[int]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def _equal_fault(plan: dict[str, Any]) -> str | None:
    """Return what keeps stages from being equal, as those planners make them; None if nothing does."""
    planner, stages = plan["planner"], plan["stages"]
    if plan["system"]["topology"] is not None:
        return f"{planner} plans for one level of devices"
    for key, what in (("data_parallel", "data"), ("tensor_parallel", "tensor")):
        if len({stage[key] for stage in stages}) > 1:
            return f"{planner} makes equal stages, and the degrees of {what} parallelism differ"
    if planner == "pipedream-2bw" and any(stage["tensor_parallel"] != 1 for stage in stages):
        return "pipedream-2bw has no tensor parallelism, and the stages have"
    return None
