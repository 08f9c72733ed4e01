"""The fraction bound: how large a part of its stage each op is at least, which k stages cannot hold.

Let all stages cost at most L. For weights y(v) ≥ 0 of the ops, work unless said otherwise, let Y_v be at least y(S) for
every stage S of such a partition that holds v. Then Σ_{v ∈ S} y(v)/Y_v ≤ Σ_{v ∈ S} y(v)/y(S) ≤ 1, and so
Σ_v y(v)/Y_v ≤ k. Where it is more, or y(v) > Y_v for some v, there is no such partition, and OPT ≥ L + 1.

**The proof**: ``{"cutoff": L + 1, "stages": k, "weights": [[op, y], …], "ops": [[v, p, q, streamed, flow, drawn,
apart], …]}``. Ops and tensors are called as in :mod:`mtpp.solvers.bounds.node`, and w, C, flow and drawn are as there,
but the capacity of a tensor is p times its transfer. ``weights`` may be left out: then y(u) = work(u); an op that is
not in it has y(u) = 0; none is in it twice; y(u) ≥ 0 are integers. ``streamed`` is 0 or 1; p ≥ 0 and q > 0 are
integers. ``apart`` lists ops u ≠ v that never share a stage with v: there is a path between u and v, in either
direction, and the ops on all paths between them, both included, have more weight w together than L + C.

With t(u) = p·w(u) − q·y(u), for every stage S ∋ v that costs at most L,

    q·y(S) ≤ q·y(S) + p·(L + C − w(S) − c(S)) = p·(L + C) − [Σ_{u ∈ S} t(u) + p·c(S)],

and by the flow what stands in brackets is at least t(v) − a(v) − Σ_{u ≠ v, not apart} max(0, a(u) − t(u)), the sum
over all ops, those that no flow reaches with a(u) = 0. Therefore

    Y_v = ⌊(p·(L + C) − t(v) + a(v) + Σ_{u ≠ v, not apart} max(0, a(u) − t(u))) / q⌋.

Y_v is never more than y of all ops, and if y = work, which it is where ``weights`` are left out, never more than L;
that holds for ops without a row. An op has one row at most. The claim is that Y_v < y(v) for some op v, or that the sum
of y(v)/Y_v over ops with y(v) > 0, in fractions, is more than k.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.anchored_proofs import AnchoredCuts
from mtpp.solvers.bounds.configuration.stage_weights import stage_weights
from mtpp.solvers.bounds.kernels.largest_parts import Parts, largest_parts
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.simple import simple_bound

_AT_A_TIME = 16
"""Ops between two looks at the clock."""

_STEP = 2000
"""The search for the largest limit ends within this part of it."""

_MOST_OPS = 1000
"""Proofs grow with the square of the ops: there are flows for all of them, most through the whole graph."""

_SEARCH_SHARE = 0.7
"""Of the time; what is found has to be written down after that."""

_ROUNDING = 1e-9
"""A sum that is above k by less, relatively, may not be in fractions, and the proof of a lower limit is kept."""

_ROOM = 2**60
_UNIT = 1 << 100
"""Parts of a stage are rounded down to multiples of one in so many, to be summed up."""


class _Found(NamedTuple):
    """What refutes a limit: parts of all ops with each kind of weights, and the sum over ops."""

    limit: int
    parts: list[Parts]
    sum: float


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return one more than the largest limit found that the sum of parts refutes, of tier ``exact``.

    Nothing that *limits* knows is proven again: the bound is above ``limits.lower`` or None.

    Notes
    -----
    A few maximum flows per op and limit, about six limits; for up to a thousand ops. The Lagrangian relaxation of
    f(S) ≤ L gives W_v; the sum falls by about as much as the limit grows, which is where the next one is looked for.
    """
    if instance.op_count > _MOST_OPS:
        return BoundResult(None, solved=True)
    limits = replace(limits, deadline=limits.deadline.share(_SEARCH_SHARE))
    search = _Search(instance, limits)
    known = max(limits.lower, simple_bound(instance).value) - 1
    if not search.fits:
        return BoundResult(None, solved=True)
    low, high = known, limits.target
    limit = high - 1
    while limit > low:
        found = search.refute(limit)
        if found is None:
            break
        if found.sum > instance.k * (1 + _ROUNDING):
            low, search.best = limit, found
        else:
            high = limit
        if high - low <= max(1, high // _STEP):
            break
        near = int(limit * min(2.0, found.sum / instance.k))
        limit = min(max(near, low + 1 + (high - low) // 16), high - 1 - (high - low) // 16)
    lower = None if search.best is None else search.proof(search.best)
    return BoundResult(lower, solved=not limits.ended() or high - low <= 1)


class _Search:
    """The parts of the ops of an instance, limit by limit."""

    def __init__(self, instance: Instance, limits: BoundLimits) -> None:
        self._instance = instance
        self._limits = limits
        self._value = instance.work[instance.order]
        self._ops = np.flatnonzero(self._value > 0)
        self._weights = stage_weights(instance)
        self._transfer = 2 * int(instance.transfer.sum())
        self._parts = [_no_parts(instance.op_count) for _ in self._weights]
        self._cuts = AnchoredCuts(instance)
        self.best: _Found | None = None
        most = max(int(weights.weight.sum()) for weights in self._weights) + self._transfer
        self.fits = len(self._ops) > 0 and most + int(self._value.sum()) + limits.target < _ROOM

    def refute(self, limit: int) -> _Found | None:
        """Return the parts for a limit, None if the time is up before all are known."""
        for begin in range(0, len(self._ops), _AT_A_TIME):
            some = self._ops[begin : begin + _AT_A_TIME]
            for weights, parts in zip(self._weights, self._parts, strict=True):
                if self._limits.ended():
                    return None
                largest_parts(
                    self._cuts.network,
                    weights.weight,
                    self._value,
                    int(weights.weight.sum()) + self._transfer,
                    limit + weights.constant,
                    some,
                    parts,
                    self._cuts.scratch,
                )
        largest = self._largest(self._parts, limit)[self._ops]
        value = self._value[self._ops]
        total = float("inf") if (largest < value).any() else float((value / largest).sum())
        return _Found(limit, [Parts(*(column.copy() for column in parts)) for parts in self._parts], total)

    def _largest(self, parts: list[Parts], limit: int) -> Int64Array:
        most = min(limit, int(self._value.sum()))
        largest: Int64Array = np.minimum.reduce([np.full(len(self._value), most), *(part.largest for part in parts)])
        return largest

    def proof(self, found: _Found) -> LowerBound | None:
        """Return the bound with a row for each op that the sum needs; None if rounding leaves too small a sum."""
        k, limit, value = self._instance.k, found.limit, self._value
        largest = self._largest(found.parts, limit)
        alone = self._ops[largest[self._ops] < value[self._ops]]
        if len(alone):
            rows = [self._row(found, int(alone[0]), largest)]
        else:
            most = min(limit, int(value.sum()))
            gain = [(v, _part(value[v], largest[v]) - _part(value[v], most)) for v in self._ops.tolist()]
            spare = sum(_part(value[v], largest[v]) for v in self._ops.tolist()) - k * _UNIT
            if spare <= 0:
                return None
            kept = []
            for v, more in sorted(gain, key=lambda pair: pair[1]):
                if more < spare:
                    spare -= more
                else:
                    kept.append(v)
            rows = [self._row(found, v, largest) for v in sorted(kept)]
        proof = {"cutoff": limit + 1, "stages": k, "ops": rows}
        return LowerBound(limit + 1, "fraction", Tier.EXACT, proof)

    def _row(self, found: _Found, v: int, largest: Int64Array) -> list[Any]:
        which = min(range(len(found.parts)), key=lambda i: int(found.parts[i].largest[v]))
        weights, parts = self._weights[which], found.parts[which]
        p, q = int(parts.p[v]), int(parts.q[v])
        limit = found.limit + weights.constant
        flow, drawn, apart = self._cuts.flow(weights.weight, self._value, v, p, q, limit)
        if q == 0:  # no set within the limit: the least cost counts for more than all work
            p, q = int(self._value.sum()) + 1, 1
            flow = [[row[0], *(x * p if i % 2 else x for i, x in enumerate(row[1:]))] for row in flow]
            drawn = [[u, x, amount * p] for u, x, amount in drawn]
        return [int(self._cuts.op_of[v]), p, q, int(weights.streamed), flow, drawn, apart]


def _no_parts(op_count: int) -> Parts:
    return Parts(*(np.zeros(op_count, dtype=np.int64) for _ in Parts._fields))


def _part(value: int, largest: int) -> int:
    return int(value) * _UNIT // int(largest)
