"""Least work of downsets, or of what is outside them, with so many bytes of parameters: knapsacks with precedence.

For the prefix bound of :mod:`mtpp.solvers.bounds.device_prefixes`: y is a measure of work, o what the tensors from a
downset D take of the room of each side, p parameters, and

    min { y(D) + o(D) : D a downset, p(D) ≥ need }

is found by branch and bound: an op is in D, with its ancestors, or it is not, nor are its descendants. In each case a
minimum cut gives the least of q·(y(D) + o(D)) − b·p(D) over all downsets, and with that value v,
y(D) + o(D) ≥ (b·need + v) / q; the multiplier b / q is found by the corners of the hull around need. Held and Karp
(1971) for the Lagrangian relaxation, Picard (1976) for its closures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.least_crossings import CrossingArc, crossing_flow, crossing_network, fill_arcs
from mtpp.solvers.flows.kernels.max_flow import UNLIMITED_CAPACITY
from mtpp.solvers.unequal.unequal_arrays import class_arrays
from mtpp.units import ceil_ratio

FIRST, LAST = "first", "last"
"""Whether a bound is on the work of a downset or of what is outside it."""

_BITS = 58
"""Of the largest sum in a network."""

_ROUNDS = 20
"""Multipliers tried in one case at most; the hull has few corners near the need."""

_FLOWS = 5_000_000
"""Maximum flows in all, times ops and tensors: a few seconds."""

_CANDIDATES = 48
"""Ops looked at to branch on."""

Ops = NDArray[np.bool_]


@dataclass
class _Case:
    """A case of a knapsack: downsets with some ops and without others.

    Attributes
    ----------
    inside, outside
        Ops that are in D and that are not, as bits.
    amount
        Measure of the side at least, y + o.
    work, bytes, flow, drawn
        The cut that shows it.
    less, more
        Sides with less parameters than needed and with enough, between which the best multiplier lies.
    op, children
        The op by which the case is split, and the cases with it in D and outside; −1 if it is not.
    """

    inside: int
    outside: int
    amount: int = 0
    work: int = 1
    bytes: int = 0
    flow: list[list[int]] = field(default_factory=list)
    drawn: list[list[int]] = field(default_factory=list)
    less: Ops | None = None
    more: Ops | None = None
    op: int = -1
    children: tuple[int, int] = (-1, -1)


@dataclass(frozen=True)
class Tree:
    """Cases that show that a side with so many bytes of parameters has so much of a measure."""

    measure: int
    side: str
    need: int
    amount: int
    cases: list[_Case]


class Knapsacks:
    """Least work of downsets, or of what is outside them, with so many parameters."""

    def __init__(self, instance: Instance) -> None:
        self.classes, self.rates = class_arrays(instance)
        self.params = int(self.classes.shared.param_bytes.sum())
        self._network = crossing_network(self.classes.shared)
        self._flows = _FLOWS // (len(self._network.arcs.offsets) + 1)
        self._op_of = instance.order
        self._tensor_of = np.flatnonzero(np.diff(instance.pin_offsets) > 1)
        n = len(self._op_of)
        self._ancestors, self._descendants = [0] * n, [0] * n
        offsets, successors = self.classes.shared.successor_offsets.tolist(), self.classes.shared.successors.tolist()
        for v in range(n):
            self._ancestors[v] |= 1 << v
            for w in successors[offsets[v] : offsets[v + 1]]:
                self._ancestors[w] |= self._ancestors[v]
        for v in range(n - 1, -1, -1):
            self._descendants[v] = 1 << v
            for w in successors[offsets[v] : offsets[v + 1]]:
                self._descendants[v] |= self._descendants[w]

    @property
    def spent(self) -> bool:
        """Whether no more flows are to be made."""
        return self._flows <= 0

    def solve(self, measure: int, side: str, need: int, enough: int, most: int, ended: Callable[[], bool]) -> Tree:
        """Return cases that show as much as they can, *enough* at most, in *most* cases or one more."""
        cases = [self._bounded(_Case(0, 0), measure, side, need, enough)]
        heap = [(cases[0].amount, 0)]
        while heap[0][0] < enough and len(cases) < most and not (self.spent or ended()):
            number = heap[0][1]
            op = self._branching_op(cases[number], measure, side)
            if op < 0:
                break
            heappop(heap)
            case = cases[number]
            case.op, case.children = op, (len(cases), len(cases) + 1)
            for inside, outside in (
                (case.inside | self._ancestors[op], case.outside),
                (case.inside, case.outside | self._descendants[op]),
            ):
                child = self._bounded(_Case(inside, outside), measure, side, need, enough)
                heappush(heap, (child.amount, len(cases)))
                cases.append(child)
        return Tree(measure, side, need, heap[0][0], cases)

    def _bounded(self, case: _Case, measure: int, side: str, need: int, enough: int) -> _Case:
        """Give a case the best cut found."""
        sizes = self.classes.shared.param_bytes
        inside, outside = self._as_array(case.inside), self._as_array(case.outside)
        smallest, largest = (inside, ~outside) if side == FIRST else (outside, ~inside)
        held = int(sizes[largest].sum())
        if held < need:  # there is no such side: by bytes alone, it has as much as one likes
            case.bytes, case.amount = -(-enough // (need - held)), enough
            return case
        case.less, case.more = smallest, largest
        less, more = self._part(measure, side, smallest), self._part(measure, side, largest)
        if less[1] >= need:
            self._try(case, measure, side, need, Fraction(0))
            case.more = None
            return case
        for _ in range(_ROUNDS):
            multiplier = max(Fraction(0), Fraction(more[0] - less[0], more[1] - less[1]))
            work, size, chosen = self._try(case, measure, side, need, multiplier)
            part = self._part(measure, side, chosen)
            line = min(work * at[0] - size * at[1] for at in (less, more))
            if multiplier == 0 or work * part[0] - size * part[1] >= line or part[1] in (less[1], more[1]):
                break
            if part[1] >= need:
                more, case.more = part, chosen
            else:
                less, case.less = part, chosen
        return case

    def _try(self, case: _Case, measure: int, side: str, need: int, multiplier: Fraction) -> tuple[int, int, Ops]:
        """Return q, b and the side at the minimum by a multiplier, ticks for a byte; keep the cut if it shows more."""
        self._flows -= 1
        classes, network = self.classes, self._network
        work, sizes = classes.work[measure], classes.shared.param_bytes
        most = 1 + int(work.sum()) + int(classes.owed[measure].sum()) + int(multiplier * self.params)
        factor = 1 << max(0, _BITS - most.bit_length())
        size = int(multiplier * factor)
        inside, outside = self._as_array(case.inside), self._as_array(case.outside)
        price: Int64Array = factor * work - size * sizes
        whole = int(price.sum())
        if side == LAST:
            price = -price
        fixed = inside | outside
        inject, absorb = np.where(fixed, 0, np.maximum(0, -price)), np.where(fixed, 0, np.maximum(0, price))
        given = int(inject.sum())
        inject[inside], absorb[outside] = UNLIMITED_CAPACITY, UNLIMITED_CAPACITY
        capacity = np.full(len(network.kind), UNLIMITED_CAPACITY, dtype=np.int64)
        fill_arcs(capacity, network.kind == CrossingArc.MADE, network.item, factor * classes.owed[measure])
        value, moved = crossing_flow(network, capacity, inject, absorb, UNLIMITED_CAPACITY // 2)
        least = value - given + int(price[inside].sum()) + (whole if side == LAST else 0)
        amount = ceil_ratio(size * need + least, factor)
        reached = self._source_side(capacity, moved, inject)
        if amount > case.amount:
            case.amount, case.work, case.bytes = amount, factor, size
            case.flow, case.drawn = self._rows(moved)
        return factor, size, reached if side == FIRST else ~reached

    def _part(self, measure: int, side: str, chosen: Ops) -> tuple[int, int]:
        """Return y + o, and the parameters, of one side."""
        shared, inside = self.classes.shared, chosen if side == FIRST else ~chosen
        owed = 0
        if len(shared.transfer):
            outside = np.logical_or.reduceat(~inside[shared.consumers], shared.consumer_offsets[:-1])
            owed = int(self.classes.owed[measure][inside[shared.producer] & outside].sum())
        return int(self.classes.work[measure][chosen].sum()) + owed, int(shared.param_bytes[chosen].sum())

    def _branching_op(self, case: _Case, measure: int, side: str) -> int:
        """Return an op between the two sides that adds much work if it joins, and takes many bytes if not; −1: none."""
        if case.less is None or case.more is None:
            return -1
        between = np.flatnonzero(case.more & ~case.less)
        if len(between) == 0:
            return -1
        work, sizes = self.classes.work[measure], self.classes.shared.param_bytes
        free = ~(self._as_array(case.inside) | self._as_array(case.outside))
        joining, leaving = self._ancestors, self._descendants
        if side == LAST:
            joining, leaving = leaving, joining
        total, best, chosen = max(1, int(work.sum())), -1.0, -1
        for v in between[:: -(-len(between) // _CANDIDATES)].tolist():
            added = int(work[self._as_array(joining[v]) & free].sum()) / total
            taken = int(sizes[self._as_array(leaving[v]) & free].sum()) / max(1, self.params)
            if min(added, taken) > best:
                best, chosen = min(added, taken), v
        return chosen

    def _as_array(self, ops: int) -> Ops:
        n = len(self._op_of)
        raw = np.frombuffer(ops.to_bytes(-(-n // 8), "little"), dtype=np.uint8)
        return np.unpackbits(raw, bitorder="little")[:n].astype(np.bool_)

    def _source_side(self, capacity: Int64Array, moved: Int64Array, left: Int64Array) -> Ops:
        """Return which ops more could flow to."""
        arcs = self._network.arcs
        residual = np.zeros(len(arcs.heads), dtype=np.int64)
        residual[arcs.forward] = capacity - moved
        residual[arcs.backward] = moved
        source = len(arcs.offsets) - 1
        more = np.flatnonzero(left > 0)
        tails = np.repeat(np.arange(source), np.diff(arcs.offsets))[residual > 0]
        tails, heads = np.append(tails, np.full(len(more), source)), np.append(arcs.heads[residual > 0], more)
        graph = csr_array((np.ones(len(tails), dtype=np.int8), (tails, heads)), (source + 1, source + 1))
        reached = np.zeros(source + 1, dtype=np.bool_)
        reached[breadth_first_order(graph, source, return_predecessors=False)] = True
        return reached[: len(self._op_of)]

    def _rows(self, moved: Int64Array) -> tuple[list[list[int]], list[list[int]]]:
        """Return what goes through tensors, and right from an op to one that it reads from, by numbers of the file."""
        shared, kind, op_of = self.classes.shared, self._network.kind, self._op_of
        made, read = moved[kind == CrossingArc.MADE], moved[kind == CrossingArc.READ]
        flow = []
        for t in np.flatnonzero(made).tolist():
            row = [int(self._tensor_of[t]), int(op_of[shared.producer[t]]), int(made[t])]
            for e in range(shared.consumer_offsets[t], shared.consumer_offsets[t + 1]):
                if read[e]:
                    row += [int(op_of[shared.consumers[e]]), -int(read[e])]
            flow.append(row)
        ops = np.repeat(np.arange(len(op_of)), np.diff(shared.predecessor_offsets))
        drawn = moved[kind == CrossingArc.OP_TO_OP]
        pairs = [
            [int(op_of[ops[e]]), int(op_of[shared.predecessors[e]]), int(drawn[e])]
            for e in np.flatnonzero(drawn).tolist()
        ]
        return flow, pairs

    def document(self, tree: Tree) -> dict[str, Any]:
        """Return a tree for a proof."""
        cases: list[Any] = []
        for case in tree.cases:
            if case.op >= 0:
                cases.append([int(self._op_of[case.op]), *case.children])
            else:
                cases.append({"work": case.work, "bytes": case.bytes, "flow": case.flow, "drawn": case.drawn})
        return {"measure": tree.measure, "side": tree.side, "need": tree.need, "cases": cases}
