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
at most a minimum cut, in which convexity to the ops that all its sets hold is a matter of arcs without end. Families
whose best mixture of sets keeps to budget and rest on average alone are split by an op, until the bound is as good as
the configuration LP over sets that really can be stages.

The proof (``docs/formats.md``) holds weights and multipliers as integers, and for each family a flow that shows its
minimum cut; ``mtpp/checker/bounds/configuration.py`` derives all of it anew. What the linear programme says in floating
point is only where the weights come from.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.configuration.families import StageSets, TimeUp, tree_rows
from mtpp.solvers.bounds.configuration.kernels.stage_families import (
    CUT,
    DOWN,
    FREE,
    IN,
    PIN,
    UP,
    StageNetwork,
    family_flow,
)
from mtpp.solvers.bounds.configuration.weights import WeightSearch
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.tensor_places import tensor_places
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.solvers.threads import Threads

_FIRST_STEP = 0.3
"""Of the way from the bound known to the target, to the first limit."""

_COARSE, _FINE = 0.01, 0.001
"""What the linear programme may leave open, before and after families are split."""

_MARGIN = 1e-6
_AHEAD = 1.012
"""Families are split at a limit so much above one that can be ruled out."""

_SECURED = 1.004
"""A limit that seems to be so much above the last one ruled out is worth a proof of its own."""

_CLOSE = 0.0005
"""Limits so close together are not told apart."""

_AGAIN = 6
"""Times at most that weights are improved once more where they may be better, and no family is left to split."""

_LAST_SHARE = 0.15
"""Of the time, for the last proof."""

_SCALE = 2**40
"""Integer weight of a whole stage, about."""

_LARGEST = 2**61
"""What the gains of all ops must stay below: the kernel's integers wrap silently."""


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
        self._failed = limits.target  # at a limit from here on, families as they are were not enough
        self._cut_short = False  # whether the weights could have been improved, had there been time
        self._exhausted = False  # whether no family was left to split at some limit
        self._certain = True  # whether that showed that such limits cannot be ruled out by these means
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
        O(families) minimum cuts and a linear programme per round.
        """
        self._limits = limits
        self._low = max(self._low, limits.lower - 1)
        self._high = min(self._high, limits.target - 1)
        self._cut_short = False
        with suppress(TimeUp):
            if not self._climbed:
                self._climb()
            self._climbed = not (self._cut_short or self._limits.ended())
            while self._low < self._high and not (self._cut_short or self._limits.ended()):
                if self._exhausted:
                    ahead = (self._low + self._high + 1) // 2
                else:
                    ahead = min(self._high, max(self._low + 1, int(_AHEAD * self._low)))
                self._refine(ahead)
                if self._exhausted and self._high - self._low <= _CLOSE * self._high:
                    self._high = self._low

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

    def _refine(self, ahead: int) -> None:
        """Split families at a limit not ruled out yet, and rule out a lower one as soon as that seems to pay."""
        self._weights.begin(ahead)
        tried = self._low  # what was not ruled out with the families as they are
        again = 0
        while not self._limits.ended():
            share, possible = self._improved(_FINE)
            if share > 1 and self._prove(ahead):
                return
            within_reach = min(ahead - 1, int(ahead * share))
            late = self._limits.deadline.remaining_s() < _LAST_SHARE * (self._limits.deadline.limit_s or 0.0)
            if within_reach > tried and (within_reach > _SECURED * self._low or late):
                if self._secure(within_reach):
                    return
                tried = within_reach
                self._weights.begin(ahead)
                _, possible = self._improved(_FINE)
            if self._weights.split() == 0:
                if self._cut_short:
                    return
                again += 1
                if possible >= 1 + 2 * _FINE and again < _AGAIN:
                    continue
                self._exhausted = True
                self._certain &= possible < 1 + 2 * _FINE
                self._high = ahead - 1
                if within_reach > tried:
                    self._secure(within_reach)
                return

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
        self._weights.begin(limit)
        return self._improved(gap)

    def _improved(self, gap: float) -> tuple[float, float]:
        """Improve the weights; return how many times k stages they fill at least, and at most as far as is known."""
        k = self._instance.k
        found = self._weights.improve(k * (1 + _MARGIN), gap, self._limits.deadline, self._limits.ended)
        self._cut_short = found.cut_short
        return found.total / k, found.most / k

    def _prove(self, limit: int) -> bool:
        """Turn the weights into a proof that nothing stays within the limit; tell whether that worked."""
        proof = stage_proof(self._weights)
        if proof is None:
            return False
        self.proven = proof
        self._low = limit
        self._limits.observer.bound(proof.limit + 1)
        return True

    def put_off(self) -> None:
        """Give the memory of what need not be kept back, until the next run."""
        self._weights.put_off()

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON values."""
        assert self.proven is not None
        return self.proven.document(self._instance)


@dataclass(frozen=True, eq=False)
class StageProof:
    """That no partition into k stages stays within a limit.

    Attributes
    ----------
    limit
        In ticks: OPT is above it.
    weights
        Of each op, integers, shape (n,).
    capacity
        No stage within the limit holds more; k times this is less than the sum of the weights.
    denominator
        Multipliers are multiples of 1 / this, in units of weight per tick.
    trees
        Root op and tree of each family, the leaves with multipliers and a flow, as the proof writes them.
    """

    limit: int
    weights: Int64Array
    capacity: int
    denominator: int
    streamed: bool
    trees: list[list[Any]]

    def document(self, instance: Instance) -> dict[str, Any]:
        """Return the proof as JSON values; see :mod:`mtpp.solvers.bounds.configuration.search`."""
        name = instance.first_members.tolist()
        weights = [[name[op], int(y)] for op, y in enumerate(self.weights.tolist()) if y > 0]
        return {
            "cutoff": self.limit + 1,
            "stages": instance.k,
            "streamed": self.streamed,
            "capacity": self.capacity,
            "denominator": self.denominator,
            "weights": weights,
            "families": self.trees,
        }


def stage_proof(search: WeightSearch) -> StageProof | None:
    """Turn what a search has found into integers and check it; None if it does not prove the search's limit.

    Notes
    -----
    A maximum flow for each family whose gains alone do not show enough.
    """
    sets = search.sets
    instance, k = sets.instance, sets.instance.k
    weights = np.floor(np.maximum(0.0, search.weight) * _SCALE).astype(np.int64)
    capacity = (int(weights.sum()) - 1) // k
    if capacity < 0:
        return None
    listed = sets.listed_roots()
    denominator = 1 << max(1, sets.most).bit_length()
    name = instance.first_members
    places = tensor_places(instance)
    tensor_of_node = _tensors_of_nodes(sets.network)
    written: dict[int, Any] = {}
    residual = np.empty(2 * len(sets.network.kind), dtype=np.int64)
    level = np.empty(len(sets.network.arcs.offsets) - 1, dtype=np.int32)
    work = sets.cost.weight.astype(object)
    transfer = instance.transfer.astype(object)
    for f, leaf in enumerate(sets.leaves):
        assert sets.families is not None
        sets.go_on()
        by_budget, by_rest = (int(value * _SCALE * denominator) for value in (leaf.budget, leaf.rest))
        slope = by_budget - by_rest
        gains = weights.astype(object) - (slope * work) // denominator
        capacities = ((by_budget + by_rest) * transfer) // denominator
        if sum(map(abs, gains)) + sum(capacities) >= _LARGEST:
            return None
        gain, cap = gains.astype(np.int64), capacities.astype(np.int64)
        state = sets.families.state[f]
        positive = int(gain[state == IN].sum()) + int(gain[(state == FREE) & (gain > 0)].sum())
        allowed = -(-by_budget * sets.most // denominator) - (by_rest * sets.least // denominator)
        enough = allowed + positive - capacity
        flow: list[Any] = [[], []]
        if enough > 0:
            reached = family_flow(
                sets.network,
                state,
                sets.families.before[f],
                sets.families.after[f],
                gain,
                cap,
                residual,
                level,
                np.int64(2**62),
            )
            if reached < enough:
                return None
            flow = _flow_rows(sets.network, residual, name, places, tensor_of_node)
        written[id(leaf)] = ["leaf", by_budget, by_rest, flow]
    trees = [[int(name[op]), tree_rows(tree, written, name)] for op, tree in listed]
    return StageProof(sets.limit, weights, capacity, denominator, sets.cost.streamed, trees)


def _flow_rows(
    network: StageNetwork, residual: Int64Array, name: Int64Array, places: Int64Array, tensor_of_node: Int64Array
) -> list[Any]:
    """Return the flow that the residual arcs hold: rows of tensors, and arcs between ops."""
    n = len(network.work)
    amounts = residual[network.arcs.backward]
    used = np.flatnonzero(amounts > 0)
    tails, heads = network.arcs.heads[network.arcs.backward], network.arcs.heads[network.arcs.forward]
    rows: dict[int, dict[int, int]] = {}
    arcs: list[list[int]] = []
    for i in used.tolist():
        kind, item, amount = int(network.kind[i]), int(network.item[i]), int(amounts[i])
        tail, head = int(tails[i]), int(heads[i])
        if kind == PIN:
            op, node, into = (tail, head, True) if tail < n else (head, tail, False)
            row = rows.setdefault(int(tensor_of_node[node - n]), {})
            row[op] = row.get(op, 0) + (amount if into else -amount)
        elif kind == CUT and tail < n:
            row = rows.setdefault(item, {})
            row[tail] = row.get(tail, 0) + amount
            row[head] = row.get(head, 0) - amount
        elif kind in (UP, DOWN):
            arcs.append([int(name[tail]), int(name[head]), amount])
    tensors = []
    for t, row in sorted(rows.items()):
        flat = [number for op, amount in sorted(row.items()) if amount for number in (int(name[op]), amount)]
        if flat:
            tensors.append([int(places[t]), *flat])
    return [tensors, arcs]


def _tensors_of_nodes(network: StageNetwork) -> Int64Array:
    n = len(network.work)
    owner = np.full(len(network.arcs.offsets) - 1 - n, -1, dtype=np.int64)
    tails, heads = network.arcs.heads[network.arcs.backward], network.arcs.heads[network.arcs.forward]
    for i in np.flatnonzero((network.kind == CUT) & (tails >= n)).tolist():
        owner[tails[i] - n] = owner[heads[i] - n] = network.item[i]
    return owner
