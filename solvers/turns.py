"""Turns between an exhaustive search and others: when to stop, and how many steps are left."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from mtpp.host.stop_reason import StopReason
from mtpp.inference.partition import Partition
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.feasibility import none_found
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.local_search.device_portfolio import DevicePortfolio
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.relaxation.loop import MOVES_PER_STEP


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

    def _spend(self, steps: int) -> None:
        """Count steps of a search as the evaluations that they stand for."""
        self._spent += ceil(steps * MOVES_PER_STEP / self._inner.op_count)

    def _close(self, upper: int, steps: int) -> int:
        """Go on with the exhaustive search for so many steps at most; return the objective known then."""
        self._limits.observer.phase("downset")
        before = self._prover.steps
        found = self._prover.close(upper, min(steps, self._steps_left))
        self._spend(self._prover.steps - before)
        return found

    def _any_partition(self) -> Partition:
        """Return any partition of the reduced instance that keeps to the memories of the devices.

        Raises
        ------
        Infeasible
            Proven, if there is none; else because none was found.
        """
        self._limits.observer.phase("downset")
        found = self._prover.any_partition(self._steps_left)
        if found is None:
            raise none_found(self._reduced.original, "the orders tried")
        return found

    def _anneal(self, portfolio: DevicePortfolio, moves: int) -> None:
        """Let a portfolio have a round, and count its evaluations."""
        made = portfolio.evaluations
        portfolio.round(moves)
        self._spent += portfolio.evaluations - made

    def _ended(self, stopped: StopReason) -> SearchResult:
        """Return the best partition, why the search ended, and its bound."""
        assert self._best is not None
        return replace(self._best, evaluations=max(1, self._spent), stopped=stopped, lower=self._prover.bound)
