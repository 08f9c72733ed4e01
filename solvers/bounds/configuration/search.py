"""The configuration bound: weights of ops of which no stage can hold more than its share.

Let no set of ops that can be a stage of cost at most L hold more than Z of some weights Y ≥ 0. If Σ Y > k·Z, then no
partition into k stages has a bottleneck of at most L, so OPT ≥ L + 1. The best weights are the dual of the linear
programme that covers the ops by the fewest such sets; any other weights give a bound too (Farley 1990).

A stage S within L, with f(S) ≥ w(S) + cut(S) − C, M = L + C and W = Σ w, is convex (an op on a path between two of its
ops is in it) and keeps to the

* budget: w(S) + cut(S) ≤ M, and to the
* rest: W − w(S) + cut(S) ≤ (k − 1)·M, for the other stages hold the rest, and each tensor that S cuts costs one of
  them at least once.

Both are linear in S but for cut(S), which is submodular: with multipliers, the most weight of the sets of a family is
at most a minimum cut, in which convexity to the ops that all its sets hold is a matter of arcs without end, and a
tensor whose ops no set of the family holds together is paid by whatever touches it.

A limit is ruled out in three steps. Weights of the largest sum by which no stage that is known holds more than 1 come
from a linear programme, to which stages are added that are grown, thinned out and grown again; the sum tells whether
the limit is within reach, and how much slack there is. Another programme spends the slack: it lowers what some families
hold above 1, all of them together, the sum of the weights being a little more than k. At last those families are
divided by ops, depth first, until none holds more than 1 (:mod:`mtpp.solvers.bounds.configuration.division`).

The proof (``docs/formats.md``) holds weights and multipliers as integers, and for each family shares or a flow that
show its minimum cut; ``mtpp/checker/bounds/configuration.py`` derives all of it anew. What linear programmes say in
floating point is only where the weights come from.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import Any

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.configuration.division import Division, Trees
from mtpp.solvers.bounds.configuration.families import StageSets, TimeUp
from mtpp.solvers.bounds.configuration.kernels.division import FULL
from mtpp.solvers.bounds.configuration.proof import StageProof, stage_proof
from mtpp.solvers.bounds.configuration.weights import WeightSearch, excess
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.threads import Threads

_FIRST_STEP = 0.3
"""Of the way from the bound known to the target, to the first limit."""

_COARSE, _FINE = 0.01, 0.001
"""What the linear programme may leave open, before and after families are split."""

_MARGIN = 1e-6
"""By how much more than 1 a share is to be."""

_SECURED = 1.004
"""A limit that seems to be so much above the last one ruled out is worth a proof of its own."""

_CLOSE = 0.0005
"""Limits so close together are not told apart."""

_SLOPE = 1.3
"""By how much of k the largest sum of weights falls with the limit, about, for each of its own size."""

_FIRST_SLACK, _LEAST_SLACK = 0.1, 0.002
"""Share of k by which weights are to be above it at the first limit, and at least."""

_LEAST_KEPT, _MOST_KEPT = 0.7, 0.93
"""Share of the slack that the next limit is to have, at least and at most."""

_LEFT_SHARE, _STEEPNESS = 0.6, 70
"""Share of the time left that the next limit may take; divisions take e times as long for 1 / 70 less slack."""

_MUCH_SLACK = 0.13
"""With more, a higher limit is looked at first."""

_AGAIN, _SECOND_TRIES = 0.003, 3
"""Part of a limit given up, within which one ruled out lets it be tried again, and how often that is done."""

_BEYOND = 1.02
"""The first limit above those without divisions, times what has been ruled out."""

_FAMILIES_PER_OP, _FAMILIES = 3, 1200
"""Families that are bounded at once, at most, unless there are more ops: for their sets are kept in memory."""

_FULLEST = 0.98
"""What known stages are to hold, if they are held down, so that unknown ones do not hold more than 1."""

_LIGHT_ENOUGH, _LIGHT_AGAIN = 3.0, 1.1
"""What families may hold above 1, all together, before they are divided; the second time, times the excess before."""

_NODES, _NODES_OPS = 40_000, 200
"""Of the trees of a division at most, for so many ops: `verify` can walk through them within a minute."""

_PATIENCE = 0.3
"""Share of the time that is left after which the first limit is given up for a lower one."""

_DIVISIONS = 30
"""Times at most that families are divided at one limit: again each time that a stage was found that holds too much."""


class ConfigurationSearch:
    """Limits, from one that is easy to rule out upwards, as far as the time given goes, and further the next time.

    Parameters
    ----------
    instance
        Of at least two stages.
    limits
        What is known of the optimum; each :meth:`run` has a deadline of its own.
    threads
        For the minimum cuts.

    Attributes
    ----------
    proven
        Proof of the highest limit that was ruled out here, None if none was.
    partition
        None: no partition is found on the way.
    shares
        None: its weights hold for stages of k, not for all convex sets.
    """

    def __init__(self, instance: Instance, limits: BoundLimits, threads: Threads) -> None:
        self._instance = instance
        self._limits = limits
        self._sets = StageSets.of(instance, lambda: self._limits.ended())
        self._weights = WeightSearch.of(self._sets, threads)
        self._low = limits.lower - 1  # ruled out, here or elsewhere
        self._high = limits.target - 1  # nothing above can be ruled out by these means, or need not be
        self._climbed = False
        self._failed = limits.target  # limits from here on took too much
        self._cut_short = False  # whether the weights could have been improved, had there been time
        self._certain = True  # whether limits above cannot be ruled out by these means
        self._sure: tuple[int, float] | None = None  # a limit that seems sure, and the slack of weights there
        self._given_up = (-1, 0.0)  # the lowest limit, and the slack of weights there
        self._second_tries = 0
        self._trying = -1  # the limit that weights were last sought for
        self._total = 0.0  # of weights by which no stage known then holds more than 1
        self._took_s = (0.0, 0.0)  # the last limit ruled out by divisions, those apart
        self.proven: StageProof | None = None
        self.partition: Partition | None = None
        self.shares: tuple[StageShares, ...] = ()

    @property
    def lower(self) -> int:
        """Ticks that no partition can beat, as far as is known."""
        return self._low + 1

    @property
    def reached(self) -> int:
        """The highest limit that was ruled out here, in ticks; −1 if none was."""
        return -1 if self.proven is None else self.proven.limit

    @property
    def ended(self) -> bool:
        """Whether no higher limit can be ruled out by these means, or need be."""
        return self._low >= self._high

    @property
    def solved(self) -> bool:
        """Whether it has ended, and that is certain."""
        return self._certain and self.ended

    def run(self, limits: BoundLimits) -> None:
        """Go on until the deadline, or the end, with what is known by now.

        Notes
        -----
        O(families) minimum cuts and a linear programme per round, then a minimum cut or more per node of a division.
        """
        self._limits = limits
        self._low = max(self._low, limits.lower - 1)
        self._high = min(self._high, limits.target - 1)
        self._cut_short = False
        if limits.start is not None:
            self._weights.known.add((limits.start.assignment == np.arange(self._instance.k)[:, None]).astype(np.int8))
        with suppress(TimeUp):
            if not self._climbed:
                self._climb()
                self._failed = self._limits.target
                self._climbed = not (self._cut_short or self._limits.ended())
            while self._low < self._high and not (self._cut_short or self._limits.ended()):
                unfinished = self._low < self._trying <= min(self._high, self._failed - 1)
                self._attempt(self._trying if unfinished and self._weights.at_hand else self._next())

    def _next(self) -> int:
        """Return the limit to be tried next: as much slack less as pays, or half the way to one that was too much."""
        highest = min(self._high, self._failed - 1)
        known = self._sure is not None and self._low <= self._sure[0] <= highest
        if self._sure is None or not known:
            base, ahead = self._low, int(_BEYOND * self._low)
        else:
            base, slack = self._sure
            less = _FIRST_SLACK if slack > _MUCH_SLACK else self._less(slack)
            ahead = int(base * (1 + max(_CLOSE, (slack - less) / _SLOPE)))
            above, left = self._given_up
            if above > base and 0 < left < less < slack:
                ahead = min(ahead, int(base + (above - base) * math.log(slack / less) / math.log(slack / left)))
        if ahead > highest:
            ahead = (base + highest + 1) // 2
        return max(self._low + 1, min(highest, ahead))

    def _forgive(self) -> None:
        """Let the limit given up be tried again, now that one close to it is ruled out: weights were bad ones there."""
        close = self._failed < self._limits.target and self._low > (1 - _AGAIN) * self._failed
        if close and self._second_tries < _SECOND_TRIES:
            self._second_tries += 1
            self._failed, self._given_up = self._limits.target, (-1, 0.0)

    def _less(self, slack: float) -> float:
        """Return the slack of the next limit: as much less as the time that is left allows."""
        rest_s, dividing_s = self._took_s
        spare_s = _LEFT_SHARE * self._limits.deadline.remaining_s() - rest_s
        steps = math.log(max(spare_s, 1e-9) / max(dividing_s, 0.1)) / _STEEPNESS if spare_s < np.inf else np.inf
        return max(_LEAST_SLACK, min(_MOST_KEPT * slack, max(_LEAST_KEPT * slack, slack - steps)))

    def _climb(self) -> None:
        """Find about the highest limit that can be ruled out without splitting families."""
        last = self._high
        limit = min(last, self._low + max(1, int(_FIRST_STEP * (last - self._low))))
        while self._low < limit < self._failed and not self._limits.ended():
            share, possible = self._weigh(limit, _COARSE)
            if share > 1 and self._prove(limit):
                limit = int(limit * min(1.05, max(1 + _CLOSE, min(possible, 2.0))))
            else:
                if self._cut_short:
                    return
                self._failed = limit
                limit = int(limit * share)
            limit = min(limit, last, self._failed - max(1, int(_CLOSE * self._failed)))

    def _attempt(self, limit: int) -> None:
        """Rule a limit out by weights that no known stage breaks, and by families divided as far as that takes."""
        begun, dividing_s = time.perf_counter(), 0.0
        patience_s = _PATIENCE * self._limits.deadline.remaining_s()
        weights, k, n = self._weights, self._instance.k, self._instance.op_count
        if limit != self._trying or not weights.at_hand:
            self._trying = -1
            weights.begin(limit)
            if not self._fit():
                self._give_up(limit, 1.0, fitted=False)
                return
            self._trying = limit
        slack = self._total / k - 1
        if slack <= 0:
            self._high = limit - 1
            return
        higher = limit < self._high and (self._sure is None or limit > self._sure[0])
        far = slack > _MUCH_SLACK and self._failed >= self._limits.target
        if far and higher and not self._limits.ended():
            self._sure, self._trying = (limit, slack), -1  # a higher limit is not much harder
            return
        most, enough = min(_FAMILIES_PER_OP * n, max(n, _FAMILIES)), _LIGHT_ENOUGH
        fill = weights.settle(enough)
        while not self._limits.ended() and weights.split(fill, most):
            fill = weights.settle(enough)
        fitted = True
        for _ in range(_DIVISIONS):
            if self._total <= k:
                self._high = limit - 1
                return
            fullest = max(_FULLEST, (1 + k / self._total) / 2)
            fill = weights.lighten(fill, fullest, enough, self._limits.deadline, self._limits.ended)
            enough = max(_LIGHT_ENOUGH, _LIGHT_AGAIN * excess(fill))
            division, started = Division(weights, fill), time.perf_counter()
            division.run(int(_NODES * min(1.0, (_NODES_OPS / n) ** 2)), self._limits.ended)
            dividing_s += time.perf_counter() - started
            if division.complete and self._prove(limit, division.trees):
                self._sure = limit, self._total / k - 1
                self._forgive()
                self._took_s = time.perf_counter() - begun - dividing_s, dividing_s
                return
            if self._limits.ended():
                return
            first = self._took_s == (0.0, 0.0)
            if not division.found or (first and time.perf_counter() - begun > patience_s):
                break
            found = np.array(division.found)
            weights.known.add(found)
            weights.known.grow(weights.weight, FULL, around=found)
            fitted = self._fit()
            if not fitted:
                break
            fill = weights.settle(enough)
        self._give_up(limit, float(fill.value.max(initial=1.0)), fitted=fitted)

    def _fit(self) -> bool:
        """Find how large the weights of stages that are known can be, all together; tell whether that worked."""
        total = self._weights.fit_stages(self._limits.deadline, self._limits.ended)
        if self._limits.ended():
            raise TimeUp
        self._total = self._total if total is None else total
        return total is not None

    def _give_up(self, limit: int, fullest: float, *, fitted: bool = True) -> None:
        """Leave a limit that takes too much, and rule out what the fullest family allows without divisions."""
        self._failed = limit
        self._given_up = (limit, self._total / self._instance.k - 1) if fitted else (-1, 0.0)
        if self._sure is not None and self._sure[0] >= limit:
            self._sure = None
        within_reach = int(limit / max(1.0, fullest))
        if within_reach > _SECURED * self._low:
            self._secure(within_reach)
        if self._failed - self._low <= max(1, int(_CLOSE * self._failed)):
            self._high, self._certain = self._low, False

    def _secure(self, limit: int) -> bool:
        """Rule out a limit that seems within reach, or one a little lower; tell whether that worked."""
        for _ in range(3):
            if limit <= self._low or self._limits.ended():
                return False
            share, _ = self._weigh(limit, _FINE)
            if share > 1 and self._prove(limit):
                return True
            limit = min(limit - 1, int(limit * share))
        return False

    def _weigh(self, limit: int, gap: float) -> tuple[float, float]:
        self._trying = -1
        self._weights.begin(limit)
        return self._improved(gap)

    def _improved(self, gap: float) -> tuple[float, float]:
        """Improve the weights; return how many times k stages they fill at least, and at most as far as is known."""
        k = self._instance.k
        found = self._weights.improve(k * (1 + _MARGIN), gap, self._limits.deadline, self._limits.ended)
        self._cut_short = found.cut_short
        return found.total / k, found.most / k

    def _prove(self, limit: int, trees: Trees | None = None) -> bool:
        """Turn the weights into a proof that nothing stays within the limit; tell whether that worked."""
        proof = stage_proof(self._weights, trees)
        if proof is None:
            return False
        assert proof.limit == limit
        self.proven = proof
        self._low = max(self._low, proof.limit)
        self._limits.observer.bound(proof.limit + 1)
        return True

    def put_off(self) -> None:
        """Give the memory of what need not be kept back, until the next run."""
        self._weights.put_off()

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        assert self.proven is not None
        return self.proven.document(self._instance)
