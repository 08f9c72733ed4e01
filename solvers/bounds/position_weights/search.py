"""The position-weights bound: weights of ops that depend on the stage, of which the stages cannot hold all.

A partition is a chain of downsets D₁ ⊂ … ⊂ D_k. At stage j each op is *before* it, *in* it or *after* it. For any
integers a[v, j], an op in stage j is worth a[v, j] there, one before it a[v, j] − a[v, j − 1], one after it nothing.
Over the stages of a partition that comes to a[v, k] for each op, whatever the partition. Let M_j be the most that a
labelling of stage j is worth which costs at most L; labels never fall along an edge. **If Σ M_j < Σ a[v, k], no
partition has a bottleneck of at most L.**

**Pricing** is the scan of :mod:`mtpp.solvers.bounds.frontier`, with three labels. The last fronts say for each limit
below L as well what the stages are worth there at most, so that any weights give the highest limit that they rule out.

**Windows.** With the slack σ = Σ M_j − Σ a[v, k], no partition within L has a label at stage j that no labelling of
more than M_j − σ has. What is left of the stages that an op can be in shrinks, and with it the scans.

**Sweeps** (min-marginal averaging, Lange and Swoboda 2021; TRW-S, Kolmogorov 2006) go through the stages and ops, and
move half of what the labellings with v ∈ D_j are better by than those without it from stage j to the next one; then
back. With exact fronts Σ M_j never rises. They start from weights that are equal for all stages.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtpp.host.progress import Silent
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch
from mtpp.solvers.bounds.frontier.scan import TooManyStates
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.frontier.scan_search import ScanSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.position_weights.proof import PositionProof
from mtpp.solvers.bounds.position_weights.rounding import Rounding
from mtpp.solvers.bounds.position_weights.sweeps import Sweeps
from mtpp.solvers.bounds.position_weights.windows import Precedence, Windows

_UNITS = 500
"""Weight of a full stage, to begin with."""

_START_SHARE = 0.15
"""Of the time, for weights that are equal for all stages."""

_PER_SLACK = 0.8
"""Part of a limit that is likely to be too much for a slack of one full stage for each stage."""

_LEAST_FALL = 0.0005
"""Part of a limit that the next one is lower by at least, twice as much each time until one is ruled out."""


class PositionWeightSearch(ScanSearch):
    """Limits from the target downwards, weights by stage for each of them, and the highest limit ruled out on the way.

    Raises
    ------
    TooManyStates
        If the scans take more memory than there is.
    """

    def __init__(self, order: ScanOrder, limits: BoundLimits) -> None:
        super().__init__(order, limits)
        instance = order.instance
        if instance.k * instance.op_count > self._room.entries:
            raise TooManyStates(f"weights of {instance.op_count} ops in {instance.k} stages do not fit")
        self._start: ConvexWeightSearch | None = ConvexWeightSearch(order, replace(limits, observer=Silent()))
        self._precedence = Precedence.of(instance, self._terms.measures)
        self._fall = _LEAST_FALL
        self._weight = np.zeros((0, 0), dtype=np.int64)
        self._units = _UNITS
        self._sweeps: Sweeps | None = None
        self._rounding = Rounding(instance, limits)

    def put_off(self) -> None:
        """Give the memory of the scans back, until the next run."""
        if self._sweeps is not None:
            self._sweeps.put_off()

    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now."""
        self._limits = limits
        self._low = max(self._low, limits.lower - 1)
        self._aim_at(limits.target)
        if self._start is not None and not self.ended:
            weight = self._start.weights_at(self._at, limits.deadline.share(_START_SHARE))
            self._weight = np.rint(np.tile(weight * (self._units * self._instance.k), (self._instance.k, 1))).astype(
                np.int64
            )
            self._start = None
        while not self.ended and not self._limits.ended():
            if self._sweeps is None:
                self._at = min(max(self._at, self._low + 1), self._failed - 1)
                self._sweeps = self._sweeps_at(self._at)
            self._advance(self._sweeps)

    def _sweeps_at(self, limit: int) -> Sweeps:
        windows = Windows.within(self._precedence, self._terms.rooms(limit))
        steps = [self._steps[c] for c in self._terms.class_of]
        costs = self._terms.of_devices
        return Sweeps(self._order, steps, costs, windows, limit, self._weight, self._units, self._room)

    def _advance(self, sweeps: Sweeps) -> None:
        found = sweeps.sweep(self._low, self._limits.ended)
        if found is None:
            if sweeps.cramped:
                self._cramped = True
                self._fail(sweeps)
            return
        if found.steps is not None:
            self._take(PositionProof(found.limit, self._terms, self._order, found.steps))
        if sweeps.last and self._low < self._at:
            self._round(sweeps)
        if self._sweeps is None:
            return
        if self._low >= self._at:
            self._at, self._fall = (self._low + self._failed) // 2, _LEAST_FALL
            self._leave(sweeps)
        elif sweeps.exhausted:
            self._fail(sweeps)

    def _round(self, sweeps: Sweeps) -> None:
        """Make partitions of the labels that stages are worth most with, and aim below a better one than known."""
        found = self._rounding.best([one.through for one in sweeps.last], self._order.order, self._limits.ended)
        if found is not None:
            self.partition, bottleneck = found
            self._aim_at(bottleneck)

    def _aim_at(self, target: int) -> None:
        """Look for nothing above some ticks."""
        if target < self._target:
            if self._sweeps is not None:
                self._leave(self._sweeps)
            self._target, self._failed = target, min(self._failed, target)
            self._at = self._failed - 1

    def _fail(self, sweeps: Sweeps) -> None:
        """Go on at a lower limit, with the weights at hand."""
        self._failed = self._at
        fall = max(_PER_SLACK * min(1.0, sweeps.slack / self._instance.k), self._fall)
        self._fall *= 2
        self._at = min(max((self._low + self._failed) // 2, int(self._at * (1 - fall))), self._failed - 1)
        self._leave(sweeps)

    def _leave(self, sweeps: Sweeps) -> None:
        """Keep the weights of sweeps that are over."""
        self._weight, self._units, self._sweeps = sweeps.weight[1:], sweeps.units, None
