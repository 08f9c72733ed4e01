"""Least memory of devices with which a plan was found, and what no plan is below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, Tier
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.candidate import Candidate, Scheduled
from mtpp.solvers.planners.pfeife.families import ScheduleCell
from mtpp.solvers.planners.pfeife.kernels.split_annealing import Cooling
from mtpp.solvers.planners.pfeife.search import SplitSearch
from mtpp.solvers.threads import Threads
from mtpp.training.pfeife.plan import NoSplitPlan
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.units import ceil_ratio

SHARES = "shares"
"""Method of the bound on memory: what all devices hold together, and what an op needs by itself."""

_STEPS = 4_000
_CUTS, _MOST_CUTS = 14, 64
"""Halvings of what the fullest device holds above the bound; the second where all splits are gone through."""
_MOST_SPLITS = 20_000
"""Splits that are gone through rather than searched, at most."""


def memory_bound(problem: SplitProblem) -> int:
    """Return bytes that the fullest device of no plan is below.

    Notes
    -----
    When a device runs its first backward pass, of a micro-batch in the last of its stages that has any, it keeps what
    the forward passes of that micro-batch left in all of its stages: their backward passes come behind. So all devices
    together hold the sum over ops of fixed bytes and of those kept for a micro-batch, if not at the same moment. A
    layer counts as the configuration that holds least, whichever it runs as, and a weight that several ops read once.
    """
    least = problem.line.least_held
    return max(*least, ceil_ratio(sum(least) - problem.line.repeated_bytes, problem.devices))


def leanest_found(
    problem: SplitProblem,
    search: SplitSearch,
    schedules: Sequence[ScheduleCell | Scheduled],
    threads: Threads,
    limits: Limits,
) -> Candidate | None:
    """Return the fastest candidate that fits, else the one whose fullest device needs least, annealed for less memory.

    None if no schedule can be run. One that fits may be found here alone: where the search for a fast one was ended, or
    did not come to any that fits.
    """
    limits.observer.phase("least memory")
    made = [one if isinstance(one, Scheduled) else one.leanest for one in schedules]
    least = [one for one in made if one is not None]
    found = [one for one in threads.map(lambda s: _shrunk(problem, search, s, limits), least) if one is not None]
    return min(
        found, key=lambda one: (one.excess > 0, _fullest(one) if one.excess else one.ticks, one.key), default=None
    )


def memory_that_would_do(problem: SplitProblem, best: Candidate | None, limits: Limits) -> NoSplitPlan:
    """Return that there is no plan, and the memory that a candidate needs."""
    bound = LowerBound(memory_bound(problem), SHARES, Tier.EXACT)
    stopped = limits.stop or StopReason.INFEASIBLE
    if best is None:
        return NoSplitPlan(problem, None, None, (), bound, stopped)
    looped = best.scheduled.looped
    schedule = looped.schedule if looped is not None else problem.rules.schedule[1] if problem.rules.schedule else None
    return NoSplitPlan(problem, schedule, looped, best.split.tolist(), bound, stopped)


def nothing_found(problem: SplitProblem, stopped: StopReason) -> NoSplitPlan:
    """Return that a search ended without anything."""
    return NoSplitPlan(problem, None, None, (), LowerBound(memory_bound(problem), SHARES, Tier.EXACT), stopped)


def _fullest(one: Candidate) -> int:
    return max(one.device_bytes)


def _shrunk(problem: SplitProblem, search: SplitSearch, scheduled: Scheduled, limits: Limits) -> Candidate | None:
    best = scheduled.of(search.even(scheduled.arrays.stages))
    low, high = memory_bound(problem), _fullest(best)
    every = search.splits(scheduled.arrays.stages) <= _MOST_SPLITS
    for cut in range(_MOST_CUTS if every else _CUTS):
        if low >= high or limits.ended():
            break
        middle = (low + high) // 2
        limit: Int64Array = np.full(problem.devices, middle, dtype=np.int64)
        within = scheduled.with_limit(limit)
        cooling = Cooling(_STEPS, 0.01, 0.0002, cut)
        tried = search.best_of_all([within]) if every else within.annealed(best.split, cooling)
        if tried is not None and tried.excess == 0:
            best, high = scheduled.of(tried.split), min(middle, _fullest(tried))
        else:
            low = middle + 1
    return best
