"""Last look at split points and a schedule: order, memory and iteration are derived from the plan once more."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mtpp.errors import InconsistentResult
from mtpp.solvers.last_look.layers import look_at_least_memory, look_at_memory
from mtpp.solvers.last_look.replayed_schedule import replayed_iteration
from mtpp.solvers.planners.pfeife.candidate import Scheduled
from mtpp.solvers.planners.pfeife.schedule_arrays import arrays_of
from mtpp.training.pfeife.plan import NoSplitPlan, SplitPlan
from mtpp.training.pfeife.problem import SplitProblem

MOST_REPLAYED = 100_000
"""Passes that are replayed in plain Python; of more, the kernels that search evaluate the plan once more."""


def look_at_split_plan(problem: SplitProblem, found: SplitPlan | NoSplitPlan) -> None:
    """Derive a plan's iteration and memory from its split and its passes, and hold it to its problem.

    Raises
    ------
    InconsistentResult
        If anything is otherwise.

    Notes
    -----
    O(ops + tensors + passes), about 7 µs for each pass up to :data:`MOST_REPLAYED`, 2 µs from there on.
    """
    limits = problem.memory_bytes
    along = found.problem.line
    if sorted(map(str, along.names)) != sorted(map(str, problem.line.names)):
        raise InconsistentResult("the plan's ops are not those of the model")
    for one in along.costs.tensors:
        first = min(one.consumers, default=along.costs.ops)
        if first <= one.producer:
            raise InconsistentResult(
                f"the plan has {along.names[first]!r} at place {first} along its order of ops, not behind "
                f"{along.names[one.producer]!r} at place {one.producer} that it reads from"
            )
    if isinstance(found, NoSplitPlan):
        if found.schedule is None:
            return
        _look_at_split(found.split, found.schedule.stages, along.costs.ops)
        look_at_memory(found.peak_bytes, [None] * problem.devices, "device")
        fits = limits is not None and all(need <= limit for need, limit in zip(found.peak_bytes, limits, strict=True))
        look_at_least_memory(found.memory.value, found.least_memory_bytes, max(limits or (0,)) if fits else None)
        return
    _look_at_split(found.split, found.schedule.stages, along.costs.ops)
    look_at_memory(found.peak_bytes, limits or [None] * problem.devices, "device")
    if found.schedule.devices != problem.devices or found.schedule.micro_batches != problem.micro_batches:
        sizes = f"{found.schedule.devices} devices and {found.schedule.micro_batches} micro-batches"
        due = f"{problem.devices} and {problem.micro_batches}"
        raise InconsistentResult(f"the plan's schedule is of {sizes}, not of {due}")
    many = sum(map(len, found.schedule.rows)) > MOST_REPLAYED
    iteration = _swept_iteration(found) if many else replayed_iteration(found)
    if iteration != found.iteration:
        taken = "never ends" if iteration is None else f"takes {iteration}"
        raise InconsistentResult(f"the plan's iteration is {found.iteration} ticks, and replayed it {taken}")


def _swept_iteration(found: SplitPlan) -> int | None:
    arrays = arrays_of(found.schedule)
    if arrays is None:
        return None
    return Scheduled(found.problem, arrays, None).of(np.asarray(found.split, dtype=np.int64)).ticks


def _look_at_split(split: object, stages: int, ops: int) -> None:
    assert isinstance(split, list | tuple)
    ascending = all(begin < end for begin, end in pairwise(split))
    if len(split) != stages + 1 or split[0] != 0 or split[-1] != ops or not ascending:
        raise InconsistentResult(f"the plan cuts {ops} ops into {stages} stages at {split}")
