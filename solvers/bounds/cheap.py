"""Cheap bounds beside a search for partitions: those that ``certify`` tries first, in little of the search's time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from mtpp.inference.certificate import LowerBound
from mtpp.inference.partition import Partition
from mtpp.names import FRACTION, NODE
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.registry import WEAK_SHARE, bound_entry
from mtpp.solvers.limits import SearchLimits
from mtpp.solvers.reduction.reduced_instance import ReducedInstance

CHEAP = NODE, FRACTION

_NODE_LOOKS = 64
"""Looks at the clock that the node bound may take where no clock ends the search: flows for some thousand ops."""

_NODE_OPS = 200_000
"""The same divided by the number of ops, of large graphs: a flow may go through all of them."""

_FRACTION_LOOKS = 3_000
"""The same for the fraction bound, divided by the number of ops; one sweep over all of them in any case."""

_OPS_A_LOOK = 16


def cheap_bound(
    name: str, reduced: ReducedInstance, start: Partition, upper: int, lower: int, limits: SearchLimits
) -> LowerBound | None:
    """Return a bound on the optimum above *lower* ticks, None if there is none in the time.

    Parameters
    ----------
    name
        One of :data:`CHEAP`.
    start, upper
        A partition of the reduced instance, and its bottleneck.

    Notes
    -----
    Without a deadline the work is limited by its own steps alone, so that the result is the same on every machine:
    about a tenth of a second on a few hundred ops.
    """
    inner = reduced.instance
    looks = max(1, min(_NODE_LOOKS, _NODE_OPS // inner.op_count))
    if name == FRACTION:
        looks = max(2 * -(-inner.op_count // _OPS_A_LOOK), _FRACTION_LOOKS // inner.op_count) + 2
    timed = limits.deadline.limit_s is not None
    asked = BoundLimits(
        upper,
        start,
        lower,
        deadline=limits.deadline.share(WEAK_SHARE),
        jobs=limits.jobs,
        observer=limits.observer,
        interrupted=limits.interrupted if timed else _after(looks, limits.interrupted),
        reduced=reduced,
    )
    limits.observer.phase(name)
    found = bound_entry(name).load()(inner, asked).lower
    if found is None or found.value <= lower:
        return None
    return replace(found, proof={"merges": reduced.record(), **found.proof})


def _after(looks: int, interrupted: Callable[[], bool]) -> Callable[[], bool]:
    """Return what tells that it is enough after so many looks, or where the user says so."""
    asked = count()
    return lambda: next(asked) >= looks or interrupted()
