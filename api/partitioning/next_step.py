"""Time limits that are likely to close the gap which a search has left between bottleneck and lower bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mtpp.host.stop_reason import StopReason
from mtpp.names import AUTO, BOTTLENECK_OBJECTIVE

if TYPE_CHECKING:
    from mtpp.api.partition_plan import PartitionPlan

_LIMITS_S = (60, 300)
"""Seconds that are proposed, for each number of stages."""

NEAR = 1.045
"""Ratio up to which a search of that time is likely to end with a proof; of graphs that have been tried, about half."""

_FIRST_S = 10
"""Seconds that are proposed after a first search without a limit, where costs have a unit of time."""

FIRST_NEAR = 1.2
"""The same ratio for that time: of such models that have been tried, three in four end with a proof."""

_MOST_OPS = 5_000
"""Ops of a graph that strong bounds say something about in such a time."""


def likely_limit_s(plan: PartitionPlan, given_s: float | None) -> int | None:
    """Return the seconds in which a plan is likely to be proven optimal, or replaced by one that is.

    None where it is optimal, where that is not to be expected, or where no more is known than *given_s*, the limit of
    the search that found it.
    """
    plain = plan.objective == BOTTLENECK_OBJECTIVE and plan.capacity is None and not plan.replicated
    searched = plan.algorithm == AUTO and plan.stopped != StopReason.INTERRUPTED and "degrees" not in plan.stated
    if plan.optimal or plan.ratio is None or not (plain and searched) or "max_latency" in plan.stated:
        return None
    if plan.op_count > _MOST_OPS:
        return None
    if given_s is None and plan.bottleneck_s is not None:
        return _FIRST_S if plan.ratio <= FIRST_NEAR else None
    if plan.ratio > NEAR:
        return None
    return next((limit for limit in _LIMITS_S if given_s is None or limit > 2 * given_s), None)


def limit_of_all(plans: Iterable[PartitionPlan], given_s: float | None) -> dict[int, int]:
    """Return the same of several plans by number of stages, *given_s* being the limit of each; without the others."""
    found = {plan.k: likely_limit_s(plan, given_s) for plan in plans}
    return {k: limit for k, limit in found.items() if limit is not None}
