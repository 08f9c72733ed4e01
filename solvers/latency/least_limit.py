"""The least limit that some plan keeps to, where no plan keeps to the one asked for."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context

from mtpp.errors import Infeasible
from mtpp.inference.goal import Goal
from mtpp.inference.instance import Instance
from mtpp.names import AUTO, BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE
from mtpp.solvers.aim import Aim
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.registry import partitioner
from mtpp.units import PICOSECONDS

_DIGITS = 12


def with_least_limit(error: Infeasible, instance: Instance, goal: Goal, limits: SearchLimits) -> Infeasible:
    """Return the error of a limit on bottleneck or latency, with the least that was found to do, and whether it is.

    Notes
    -----
    One search more, with the limited figure as objective.
    """
    if goal.limit is None or error.parameter != goal.limited or limits.stop is not None:
        return error
    aim = Aim(instance, Goal(BOTTLENECK_OBJECTIVE if goal.of_latency else LATENCY_OBJECTIVE))
    lower = aim.first_bound()
    try:
        found = aim.search(partitioner(AUTO).load(), replace(limits, lower_bound=lower.value))
    except Infeasible:
        return error
    if found.bottleneck <= goal.limit:  # memory or time is what failed
        return error
    bounds = [lower] if found.lower is None else [lower, found.lower]
    proven = any(one.is_proof and one.value >= found.bottleneck for one in bounds)
    least = "the least, proven" if proven else "less may do, not proven"
    text = f"‹{goal.limited}› {_at_least(instance, found.bottleneck)} would do ({least})"
    return Infeasible(error.problem, parameter=error.parameter, remedy=f"allow more: {text}")


def _at_least(instance: Instance, ticks: int) -> str:
    """Write ticks as an option takes them: rounded up, and where it can be exactly."""
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    if not instance.timed:
        return f"{context.divide(ticks, instance.ticks_per_unit).normalize():f}"
    unit = next((unit for unit in ("s", "ms", "µs", "ns") if ticks >= PICOSECONDS[unit]), "ps")
    return f"{context.divide(ticks, PICOSECONDS[unit]).normalize():f}{unit.replace('µ', 'u')}"
