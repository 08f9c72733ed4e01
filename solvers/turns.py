"""Turns between an exhaustive search and others: when to stop, and how many steps are left."""

from __future__ import annotations

from mtpp.host.stop_reason import StopReason
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.reduction.reduced_instance import ReducedInstance


class SearchTurns:
    """A search for one partition, in turns that the same limits end.

    Parameters
    ----------
    prover
        Its bound is that of the search.
    """

    def __init__(self, reduced: ReducedInstance, limits: SearchLimits, prover: Prover) -> None:
        self._reduced, self._limits, self._prover = reduced, limits, prover
        self._inner = reduced.instance
        self._best: SearchResult | None = None
        self._spent = 0

    @property
    def _stop(self) -> StopReason | None:
        """Why the search has to end now, or None to go on."""
        if self._best is not None and self._prover.lower >= self._best.bottleneck:
            return StopReason.OPTIMAL
        if self._spent >= self._limits.evaluations:
            return StopReason.BUDGET
        return self._limits.stop

    @property
    def _steps_left(self) -> int:
        """Steps of the exhaustive search that the evaluations left stand for."""
        left = self._limits.evaluations - self._spent
        return UNLIMITED if self._limits.evaluations >= UNLIMITED else max(1, left * self._inner.op_count)
