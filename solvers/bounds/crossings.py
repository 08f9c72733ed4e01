"""The crossings bound: what has to cross between consecutive stages, by minimum cuts in windows of work.

Let stages 1 … k cost at most L each, the last ones perhaps empty, and D_i hold the ops of the first i of them, so D_0
is empty and D_k has all ops. Weights w and the constant C are as in :mod:`mtpp.solvers.bounds.node`; W = w of all ops
and H = L + C, so that w(S) + c(S) ≤ H for each stage S. Let there be numbers

* made_i: at most the transfers of the tensors that stage i makes for later ones (1 ≤ i < k);
* read_i: at most the transfers of the tensors that stage i reads from earlier ones (1 < i ≤ k);
* across_i: at most the transfers of the tensors made in D_i and read outside (1 ≤ i < k);

all others being 0. What stages after i read is at least across_i or made_i, whichever is more, and all that they make
for each other. Hence a_i ≤ w(D_i) ≤ b_i for i = 0 … k, with

    b_i = min(W, i·H − Σ_{j ≤ i} (made_j + read_j)),
    a_i = max(0, W − (k − i)·H + Σ_{j > i} made_j + max(Σ_{j > i} read_j, max(across_i, made_i) + Σ_{j > i} made_j)).

An op is *out* of D_i if i = 0, or if i < k and it and all from which it can be reached have more weight than b_i. It is
*in* D_i if i = k, or if i > 0 and W less the weight of it and of all that can be reached from it is less than a_i.
The numbers grow by minimum cuts: D is a downset (with an op it has all that it reads from) that holds what is in, and
nothing that is out. For

* made_i, D = D_i, and the cut is the transfers of tensors from ops of D that are out of D_{i−1} to ops outside D;
* across_i, D = D_i, and the cut is the transfers of tensors from ops of D to ops outside D;
* read_i, D = D_{i−1}, and the cut is the transfers of tensors from ops of D to ops outside D that are in D_i.

**The proof**: ``{"cutoff": L + 1, "stages": k, "streamed": bool, "steps": [[kind, i, amount, flow, drawn], …]}``; kind
is ``made``, ``read`` or ``across``. In their order, each step sets that number to ``amount`` if that is more, with
windows from the numbers before it, all 0 in the beginning. Ops, tensors and rows of ``flow`` are as in
:mod:`mtpp.solvers.bounds.node`, but the flow has a direction: a positive amount is the producer's alone, for ``made``
one that is out of D_{i−1}, and it is at most the tensor's transfer; the readers' amounts are negative, for ``read``
only readers that are in D_i take any. A row ``[u, x, amount]`` of ``drawn``: amount > 0 goes from u to x, an op that
u reads from. With a(u) what u gets less what it gives out, a(u) ≥ 0 for every op that is not in D for certain, and
``amount`` is at most the sum of a(u) over ops that are out of D: what D gives out passes through tensors of the cut.

The claim is that in the end, or before any step (the steps after it are of no account), a_i > b_i for some i, or
made_i + read_i > H for some i, or some op is both in and out of some D_i.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.stage_weights import StageWeights, stage_weights
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import CrossingArc, crossing_flow, crossing_network, fill_arcs
from mtpp.solvers.flows.kernels.max_flow import UNLIMITED_CAPACITY

MADE, READ, ACROSS = "made", "read", "across"

_MOST_OPS = 30_000
"""Work of ancestors takes time with the square of the ops, half a minute for 100,000."""

_ROUNDS = 8
"""Rounds at most; the numbers seldom grow in more than three."""

_STEP = 20_000
"""The search for the largest limit ends within this part of it."""

Steps = list[list[Any]]


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return one more than the largest limit found that the windows refute, of tier ``exact``.

    Nothing that *limits* knows is proven again: the bound is above ``limits.lower`` or None.

    Notes
    -----
    Up to 3·k maximum flows a round, a few rounds a limit, and about ten limits.
    """
    best: LowerBound | None = None
    solved = True
    if instance.k > instance.op_count or instance.op_count > _MOST_OPS:  # with so many stages node tells more
        return BoundResult(None, solved)
    low, high = max(limits.lower, simple_bound(instance).value) - 1, limits.target
    for weights in stage_weights(instance):
        windows = _Windows(instance, weights, limits)
        above, limit = high, high - 1
        while low < limit:
            steps = windows.refute(limit)
            if limits.ended():
                solved = False
                break
            if steps is None:
                above = limit
            else:
                low = limit
                best = windows.proof(limit, steps)
            if above - low <= max(1, above // _STEP):
                break
            limit = (low + above) // 2
    return BoundResult(best, solved)


class StageWindows(NamedTuple):
    """What holds for any partition into *k* stages within a limit, by stage from 0 to k.

    Attributes
    ----------
    lowest, highest
        Work of the ops of the first i stages.
    made, read
        Transfers of the tensors that stage i makes for later ones and reads from earlier ones, at least.
    """

    lowest: list[int]
    highest: list[int]
    made: list[int]
    read: list[int]


def stage_windows(instance: Instance, limits: BoundLimits, limit: int) -> StageWindows | None:
    """Return what the minimum cuts say of partitions within a limit; None if they show that there is none."""
    windows = _Windows(instance, stage_weights(instance)[0], limits)
    if windows.refute(limit) is not None:
        return None
    return StageWindows(windows.lowest, windows.highest, windows.made, windows.read)


class _Windows:
    """Windows of the work of D_0 … D_k, limit by limit.

    Attributes
    ----------
    made, read, across
        The numbers, by stage from 0 to k.
    lowest, highest
        The windows that follow from them.
    """

    def __init__(self, instance: Instance, weights: StageWeights, limits: BoundLimits) -> None:
        self._instance = instance
        self._weights = weights
        self._limits = limits
        self._stages = instance.k
        self._arrays = downset_arrays(instance)._replace(work=weights.weight)
        self._network = crossing_network(self._arrays)
        self._total = int(weights.weight.sum())
        self._op_of = instance.first_members[instance.order]
        touching = np.diff(instance.pin_offsets)
        self._number = (np.cumsum(touching > 1) - 1)[touching > 1]
        self._limit = 0
        self.made = self.read = self.across = [0] * (self._stages + 1)
        self.lowest = self.highest = [0] * (self._stages + 1)

    def proof(self, limit: int, steps: Steps) -> LowerBound:
        """Return what the steps that refute a limit prove."""
        proof = {"cutoff": limit + 1, "stages": self._stages, "streamed": self._weights.streamed, "steps": steps}
        return LowerBound(limit + 1, "crossings", Tier.EXACT, proof)

    def refute(self, limit: int) -> Steps | None:
        """Return the steps to a contradiction; None if none was found, or none in the time."""
        self._limit = limit + self._weights.constant
        numbers = {kind: [0] * (self._stages + 1) for kind in (MADE, READ, ACROSS)}
        self.made, self.read, self.across = numbers[MADE], numbers[READ], numbers[ACROSS]
        steps: Steps = []
        if self._contradiction():
            return steps
        seen: dict[tuple[str, int], bytes] = {}
        for _ in range(_ROUNDS):
            grown = False
            for i in range(1, self._stages + 1):
                for kind in (MADE, READ, ACROSS):
                    if (kind == READ and i == 1) or (kind != READ and i == self._stages):
                        continue
                    if self._limits.ended():
                        return None
                    step = self._step(kind, i, numbers[kind][i], seen)
                    if step is None:
                        continue
                    numbers[kind][i] = step[2]
                    steps.append(step)
                    grown = True
                    if self._contradiction():
                        return steps
            if not grown:
                return None
        return None

    def _narrow(self) -> None:
        """Set the windows that follow from the numbers; O(k)."""
        made_until, read_until = list(accumulate(self.made)), list(accumulate(self.read))
        self.lowest, self.highest = [], []
        for i in range(self._stages + 1):
            later_made = made_until[-1] - made_until[i]
            reads = max(read_until[-1] - read_until[i], max(self.across[i], self.made[i]) + later_made)
            needed = self._total - (self._stages - i) * self._limit + later_made + reads
            self.lowest.append(max(0, needed))
            self.highest.append(min(self._total, i * self._limit - made_until[i] - read_until[i]))

    def _contradiction(self) -> bool:
        """Set the windows and tell whether they refute the limit; O(k·n)."""
        if any(made + read > self._limit for made, read in zip(self.made, self.read, strict=True)):
            return True
        self._narrow()
        if any(least > most for least, most in zip(self.lowest, self.highest, strict=True)):
            return True
        return any((self._inside(i) & self._outside(i)).any() for i in range(1, self._stages))

    def _inside(self, i: int) -> NDArray[np.bool_]:
        if i in (0, self._stages):
            return np.full(len(self._arrays.work), i > 0)
        return self._total - self._network.after < self.lowest[i]

    def _outside(self, i: int) -> NDArray[np.bool_]:
        if i in (0, self._stages):
            return np.full(len(self._arrays.work), i == 0)
        return self._network.before > self.highest[i]

    def _step(self, kind: str, i: int, known: int, seen: dict[tuple[str, int], bytes]) -> list[Any] | None:
        """Return the step that raises a number, None if its cut does not."""
        cut_at = i - 1 if kind == READ else i
        inside, outside = self._inside(cut_at), self._outside(cut_at)
        makers = self._outside(i - 1) if kind == MADE else np.ones_like(inside)
        readers = self._inside(i) if kind == READ else np.ones_like(inside)
        state = np.concatenate([inside, outside, makers, readers]).tobytes()
        if not inside.any() or not outside.any() or seen.get((kind, i)) == state:
            return None
        seen[kind, i] = state
        arrays, network = self._arrays, self._network
        enough = UNLIMITED_CAPACITY if kind == ACROSS else self._limit + 1
        capacity = np.zeros(len(network.kind), dtype=np.int64)
        capacity[network.kind == CrossingArc.OP_TO_OP] = UNLIMITED_CAPACITY
        fill_arcs(
            capacity,
            network.kind == CrossingArc.MADE,
            network.item,
            np.where(makers[arrays.producer], arrays.transfer, 0),
        )
        capacity[network.kind == CrossingArc.READ] = np.where(readers[arrays.consumers], UNLIMITED_CAPACITY, 0)
        inject, absorb = np.where(inside, UNLIMITED_CAPACITY, 0), np.where(outside, UNLIMITED_CAPACITY, 0)
        value, moved = crossing_flow(network, capacity, inject, absorb, enough)
        if value <= known:
            return None
        return [kind, i, value, *self._rows(moved)]

    def _rows(self, moved: Int64Array) -> tuple[list[list[int]], list[list[int]]]:
        """Return the rows of a flow, *moved* being what goes through each arc."""
        arrays, kind = self._arrays, self._network.kind
        made, read = moved[kind == CrossingArc.MADE], moved[kind == CrossingArc.READ]
        flow = []
        for t in np.flatnonzero(made).tolist():
            row = [int(self._number[t]), int(self._op_of[arrays.producer[t]]), int(made[t])]
            for e in range(arrays.consumer_offsets[t], arrays.consumer_offsets[t + 1]):
                if read[e]:
                    row += [int(self._op_of[arrays.consumers[e]]), -int(read[e])]
            flow.append(row)
        ops = np.repeat(np.arange(len(arrays.work)), np.diff(arrays.predecessor_offsets))
        drawn = moved[kind == CrossingArc.OP_TO_OP]
        pairs = [
            [int(self._op_of[ops[e]]), int(self._op_of[arrays.predecessors[e]]), int(drawn[e])]
            for e in np.flatnonzero(drawn).tolist()
        ]
        return flow, pairs
