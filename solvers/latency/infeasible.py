"""Errors of goals that no plan meets, or that none was found for."""

from __future__ import annotations

from mtpp.errors import Infeasible
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.solvers.feasibility import none_found, proven_infeasible


def no_plan(instance: Instance, goal: Goal, *, proven: bool) -> Infeasible:
    """Return the error of a search that found no plan within the goal's limit and the memories.

    Parameters
    ----------
    proven
        Whether there is none.
    """
    if goal.limit is None:
        return proven_infeasible(instance) if proven else none_found(instance, "the orders tried")
    other = "bottleneck" if goal.of_latency else "latency"
    said = f"has a {other} of at most {instance.describe(goal.limit)}"
    memory = " and keeps to the memory" if instance.device.memory_bytes is not None else ""
    text = f"proven infeasible: no plan {said}{memory}" if proven else f"none found: no cut of the orders tried {said}"
    return Infeasible(text, parameter=goal.limited, remedy="allow more" if proven else "allow more, or more time")
