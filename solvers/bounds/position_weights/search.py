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
back. Σ M_j never rises. They start from the work of the ops. Where they stand still,
:mod:`mtpp.solvers.bounds.position_weights.bundle` goes on, and where that does,
:mod:`mtpp.solvers.bounds.position_weights.cases` splits the partitions.
"""

from __future__ import annotations

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.bounds.convex_weights.search import first_weights
from mtpp.solvers.bounds.frontier.scan import TooManyStates
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder
from mtpp.solvers.bounds.frontier.scan_search import ScanSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.position_weights.bundle import Bundle
from mtpp.solvers.bounds.position_weights.cases import Cases
from mtpp.solvers.bounds.position_weights.proof import Case, PositionProof
from mtpp.solvers.bounds.position_weights.rounding import Rounding
from mtpp.solvers.bounds.position_weights.sweeps import Sweeps
from mtpp.solvers.bounds.position_weights.windows import Precedence, Windows

_UNITS = 500
"""Weight of a full stage, to begin with."""

_PER_SLACK = 0.8
"""Part of a limit that is likely to be too much for a slack of one full stage for each stage."""

_LEAST_FALL = 0.0005
"""Part of a limit that the next one is lower by at least, twice as much each time until one is ruled out."""

_FIRST_WORK = 4
"""Times the entries of all sweeps at one limit after which its cases are given up first."""

_LEAST_WORK, _MORE_WORK = 20_000_000, 4
"""Entries after which they are given up first, at least, and times as many in each further round."""

_GLANCE = 0.125
"""Part of that work after which the share of closed cases tells how much is left."""

_MOST_WORK = 500_000_000
"""Entries of all sweeps of a limit's cases at most."""

_MOST_CHECKED = 30_000_000
"""Entries of scans that a re-check goes through at most, about a minute of them in plain Python."""

_WEIGHT_BYTES = 7
"""Bytes of a weight in a document, about."""


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
        self._precedence = Precedence.of(instance, self._terms.measures)
        self._fall = _LEAST_FALL
        self._units = _UNITS
        weight = first_weights(instance, self._terms) * (self._units * instance.k)
        self._weight = np.rint(np.tile(weight, (instance.k, 1))).astype(np.int64)
        self._sweeps: Sweeps | None = None
        self._cases: Cases | None = None
        self._splitting = False
        self._top: tuple[int, Sweeps] | None = None
        self._met = limits.target
        self._work = self._swept = 0
        self._rounding = Rounding(instance, order.order, limits)

    def put_off(self) -> None:
        """Give the memory of the scans back, until the next run."""
        for one in (self._sweeps, self._cases):
            if one is not None:
                one.put_off()

    @property
    def ended(self) -> bool:
        """Whether no higher limit can be ruled out here, or need be."""
        return self._low >= min(self._target, self._met) - 1 or (
            self._near and (self._cramped or self._work > _MOST_WORK)
        )

    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now."""
        self._limits = limits
        self._low = max(self._low, limits.lower - 1)
        self._aim_at(limits.target)
        while not self.ended and not self._limits.ended():
            if self._cases is not None:
                self._follow(self._cases)
                continue
            if self._sweeps is None:
                if self._near:
                    self._begin_splitting()
                    continue
                self._at = min(max(self._at, self._low + 1), self._failed - 1)
                windows = Windows.within(self._precedence, self._terms.rooms(self._at))
                self._sweeps = self._sweeps_of(windows, self._weight, self._units)
            self._advance(self._sweeps)

    def _sweeps_of(self, windows: Windows, weight: Int64Array, units: int, mixtures: Bundle | None = None) -> Sweeps:
        steps, costs = [self._steps[c] for c in self._terms.class_of], self._terms.of_devices
        return Sweeps(self._order, steps, costs, windows, self._at, weight, units, self._room, mixtures)

    def _begin_splitting(self) -> None:
        """Go for the highest limits once more, by cases, with more work than last time."""
        self._work = _MORE_WORK * self._work if self._splitting else max(_FIRST_WORK * self._swept, _LEAST_WORK)
        self._splitting, self._failed = True, min(self._target, self._met)
        self._at = self._failed - 1
        if self._top is not None and self._top[0] == self._at:
            self._split(self._top[1])

    def _split(self, sweeps: Sweeps) -> None:
        """Split the partitions within a limit that sweeps have come to nothing more at."""
        self._cases = Cases.of(self._order.order, self._sweeps_of, sweeps)
        self._leave(sweeps)

    def _follow(self, cases: Cases) -> None:
        """Work at the cases of a limit."""
        cases.advance(self._at, self._limits.ended)
        if cases.sweeps is not None and cases.sweeps.last:
            self._round(cases.sweeps)
            if self._cases is None:
                return
        if cases.over:
            self._take(PositionProof(self._at, self._terms, self._order, cases.root))
        elif cases.met:
            self._met, self._failed = min(self._met, self._at), self._at
        elif cases.stuck or self._too_long(cases) or self._hopeless(cases):
            self._failed = self._at
        else:
            return
        self._at, self._cases = (self._low + self._failed) // 2, None

    def _too_long(self, cases: Cases) -> bool:
        """Tell whether the proof takes too much room or time to check."""
        size = cases.steps * self._instance.k * self._instance.op_count * _WEIGHT_BYTES
        return cases.checked > _MOST_CHECKED or size > self._limits.proof_bytes

    def _hopeless(self, cases: Cases) -> bool:
        """Tell whether the cases take more work than there is for the limit."""
        likely = cases.work / max(cases.closed, 1e-9)
        return cases.work > self._work or (cases.work > _GLANCE * self._work and likely > self._work)

    def _advance(self, sweeps: Sweeps) -> None:
        found = sweeps.sweep(self._low, self._limits.ended)
        if found is None:
            if sweeps.cramped:
                self._cramped = True
                self._fail(sweeps)
            return
        if found.steps is not None:
            self._take(PositionProof(found.limit, self._terms, self._order, Case(found.steps)))
        if sweeps.last and self._low < self._at:
            self._round(sweeps)
        if self._sweeps is None:  # a better partition is known
            return
        if self._low >= self._at:
            self._at, self._fall = (self._low + self._failed) // 2, _LEAST_FALL
            self._leave(sweeps)
        elif sweeps.exhausted and self._splitting:
            self._split(sweeps)
        elif sweeps.exhausted or (sweeps.hopeless and not self._splitting):
            self._fail(sweeps)

    def _round(self, sweeps: Sweeps) -> None:
        """Make partitions of the labels that stages are worth most with, and aim below a better one than known."""
        self._rounding.aim_at(self._limits.upper)
        found = self._rounding.best([one.through for one in sweeps.last], sweeps.shares, self._limits.ended)
        if found is not None:
            self.partition, bottleneck = found
            self._aim_at(bottleneck)

    def _aim_at(self, target: int) -> None:
        """Look for nothing above some ticks."""
        if target < self._target:
            if self._sweeps is not None:
                self._leave(self._sweeps)
            self._cases = None
            self._target, self._failed = target, min(self._failed, target)
            self._at = self._failed - 1

    def _fail(self, sweeps: Sweeps) -> None:
        """Go on at a lower limit, with the weights at hand."""
        self._failed = self._at
        if self._at == self._target - 1:
            sweeps.put_off()
            self._top = self._at, sweeps
        fall = max(_PER_SLACK * min(1.0, sweeps.slack / self._instance.k), self._fall)
        self._fall *= 2
        self._at = min(max((self._low + self._failed) // 2, int(self._at * (1 - fall))), self._failed - 1)
        self._leave(sweeps)

    def _leave(self, sweeps: Sweeps) -> None:
        """Keep the weights of sweeps that are over."""
        self._swept = max(self._swept, sweeps.work)
        (self._weight, self._units), self._sweeps = sweeps.kept, None
