"""Search for better partitions on a core that bounds leave free: the portfolio once more, with another seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound
from mtpp.inference.partition import Partition
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.local_search.annealing import HOT, SHARP, WARM
from mtpp.solvers.local_search.multilevel import LARGE
from mtpp.solvers.local_search.portfolio import ORDER_SHARE, Portfolio
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.threads import Threads

_SCHEDULES = (SHARP, HOT, SHARP, WARM)
"""Of the runs of a round, in turns: there is time for long ones."""


class SpareSearch:
    """Anneals and evolves orders from the best partition known, in turns.

    Parameters
    ----------
    reduced
        The instance, on equal devices, after merges that leave the optimum as it is.
    limits
        Of all turns together.
    take
        Is given every better partition at once, as it is before the merges, with what found it.
    """

    def __init__(
        self, reduced: ReducedInstance, limits: SearchLimits, take: Callable[[Partition, str], object]
    ) -> None:
        self._reduced = reduced
        self._limits = replace(limits, keeper=_Taken(reduced, take))
        self._turn = count(1)
        self._over = reduced.instance.op_count > LARGE  # rounds take long there

    def take_turn(self, best: Partition, bottleneck: int, deadline: Deadline, ended: Callable[[], bool]) -> None:
        """Search until a deadline, or until *ended* says so, from a partition as it is before the merges."""
        limits = self._limits
        if self._over:
            return
        own = replace(
            limits,
            seed=limits.seed + next(self._turn),
            deadline=deadline,
            interrupted=lambda: limits.interrupted() or ended(),
        )
        start = SearchResult(self._reduced.carry(best), bottleneck, "", 0, StopReason.BUDGET)
        try:
            with Threads(1) as threads:
                found = Portfolio(
                    self._reduced.instance, start, own, threads, order_share=ORDER_SHARE, schedules=_SCHEDULES
                ).improve()
            self._over = found.stopped in (StopReason.OPTIMAL, StopReason.FINISHED)
        except MemoryError:  # the bounds may have enough
            self._over = True


class _Taken:
    """The keeper that passes partitions on as they are before the merges."""

    def __init__(self, reduced: ReducedInstance, take: Callable[[Partition, str], object]) -> None:
        self._reduced, self._take = reduced, take

    def offer(self, bottleneck: int, found_by: str, partition: Callable[[], Partition]) -> None:
        """Pass it on, unless it is the one that the search began with."""
        if found_by:
            self._take(self._reduced.lift(partition()), found_by)

    def prove(self, lower: LowerBound) -> None:
        """Ignore it: the search proves nothing."""
