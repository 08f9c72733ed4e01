"""The fraction bound: how large a part of its stage each op is at least, which k stages cannot hold.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Suppose one does.
For any weights y(u) ≥ 0 of the ops, their work unless the proof has others, let Y_v be at least y(S) for the stage S
that holds op v. Any stage has Σ_{v ∈ S} y(v)/Y_v ≤ Σ_{v ∈ S} y(v)/y(S) ≤ 1, so that Σ_v y(v)/Y_v ≤ k. The claim holds
if this sum, over ops with y(v) > 0, is more than k, or if y(v) > Y_v for some op v.

**Y_v.** Let w(u), C be as in :mod:`mtpp.checker.bounds.node`, so that w(S) + c(S) − C ≤ f(S) ≤ L for the stage S of v.
For integers p ≥ 0 and q > 0, with t(u) = p·w(u) − q·y(u),

    q·y(S) ≤ q·y(S) + p·(L + C − w(S) − c(S)) = p·(L + C) − [Σ_{u ∈ S} t(u) + p·c(S)].

A flow whose capacities are p times the transfers bounds what stands in brackets: by (1) of :mod:`mtpp.checker.flows`,

    Σ_{u ∈ S} t(u) + p·c(S) ≥ t(v) − a(v) + Σ_{u ∈ S, u ≠ v} (t(u) − a(u))
                            ≥ t(v) − a(v) − Σ_{u ≠ v, not parted} max(0, a(u) − t(u)),

the last sum over all ops that may be in S, those that the flow does not reach with a(u) = 0. Ops *parted* from v cannot
be: a path joins them to v, and w of all on the paths between the two is above L + C, while w(S) ≤ L + C. So y(S) is at
most

    Y_v = ⌊(p·(L + C) − t(v) + a(v) + Σ_{u ≠ v, not parted} max(0, a(u) − t(u))) / q⌋,

and never more than all y, nor than L where y is work, which is what holds for ops that the proof does not list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.flows import Drawn, Flow, FlowChecker, check_drawn, check_flow
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.document_shape import Path, any_array, array, record, refuse, whole

_ROW = (whole(), whole(), whole(1), whole(), check_flow, check_drawn, array(whole()))


def check_fraction(claim: BoundClaim) -> Verdict:
    """Re-check a fraction bound.

    Notes
    -----
    O(n·log n + pins) and O(log n) for each number in the proof, on integers that fit a few machine words; O(n + pins)
    more for rows with drawn or parted ops; the replay of the merges, and a sum of at most n fractions.
    """
    rules = {"cutoff": whole(1), "stages": whole(1), "ops": array(_check_row)}
    record(rules, {"merges": check_merges, "weights": array(_check_weight)})(claim.proof, claim.path)
    graph = claim.merged_by_terms()
    if isinstance(graph, str):
        return False, f"fraction: {graph}"
    shares, most = _shares(graph, claim)
    if isinstance(shares, str):
        return False, f"fraction: {shares}"
    flows = FlowChecker(graph)
    plain = _Network(graph.work, shares, 0)
    weights = stage_weights(graph, claim.system, streamed=True)
    streamed = None if weights is None else _Network(weights[0], shares, weights[1])
    largest = [most] * len(shares)
    for op, p, q, streams, flow, drawn, parted in claim.proof["ops"]:
        group, network = flows.group(op), streamed if streams else plain
        if group is None:
            return False, f"fraction: there is no op {op}"
        if network is None:
            return False, f"fraction: {WITHOUT_MEMORY}"
        row = _Row(group, p, q, flow, drawn, parted)
        found = network.largest_stage(row, flows, claim.value - 1)
        if isinstance(found, str):
            return False, f"fraction: op {claim.graph.op_names[op]!r}: {found}"
        largest[group] = min(largest[group], found)
    return _judge(claim, graph, shares, largest)


def _check_row(value: Any, path: Path) -> None:
    any_array(value, path)
    if len(value) != len(_ROW):
        refuse("a row needs an op, p, q, whether parameters are streamed, a flow, what is drawn, and parted ops", path)
    for i, rule in enumerate(_ROW):
        rule(value[i], (*path, i))
    if value[3] > 1:
        refuse("expected 0 or 1", (*path, 3))


def _check_weight(value: Any, path: Path) -> None:
    array(whole())(value, path)
    if len(value) != 2:
        refuse("a row needs an op and its weight", path)


def _shares(graph: MergedGraph, claim: BoundClaim) -> tuple[list[int] | str, int]:
    """Return y of each group, or what is wrong with the weights, and what a stage has of it at most."""
    if "weights" not in claim.proof:
        return graph.work, min(claim.value - 1, sum(graph.work))
    shares = [0] * len(graph.work)
    seen: set[int] = set()
    for op, weight in claim.proof["weights"]:
        if op >= len(graph.group_of):
            return f"there is no op {op}", 0
        if graph.group_of[op] in seen:
            return f"op {op} has two weights", 0
        seen.add(graph.group_of[op])
        shares[graph.group_of[op]] = weight
    return shares, sum(shares)


def _judge(claim: BoundClaim, graph: MergedGraph, shares: list[int], largest: list[int]) -> Verdict:
    alone = next((group for group, share in enumerate(shares) if share > largest[group]), None)
    if alone is not None:
        return True, f"fraction: no stage with {claim.name(graph, alone)} costs less than {claim.value} ticks"
    by_largest: defaultdict[int, int] = defaultdict(int)
    for share, most in zip(shares, largest, strict=True):
        if share > 0:
            by_largest[most] += share
    numerator, denominator = _sum(by_largest.items())
    shown, stages = f"{numerator / denominator:.6f}", counted(claim.k, "stage")
    verb = "holds" if claim.k == 1 else "hold"
    add_up = f"fraction: the ops' parts of their stages add up to {shown}"
    if numerator <= claim.k * denominator:
        return False, f"{add_up}, which {stages} may hold"
    return True, f"{add_up}, more than {stages} {verb}"


def _sum(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return a sum of fractions as numerator and denominator; *parts* are denominators with their numerators.

    It adds up halves first, so that most numbers on the way stay short.
    """
    fractions = [(numerator, denominator) for denominator, numerator in parts]
    while len(fractions) > 1:
        odd = fractions[len(fractions) // 2 * 2 :]
        pairs = zip(fractions[::2], fractions[1::2], strict=False)
        fractions = [(a[0] * b[1] + b[0] * a[1], a[1] * b[1]) for a, b in pairs] + odd
    return fractions[0] if fractions else (0, 1)


@dataclass(frozen=True)
class _Row:
    """What the proof says of one op."""

    group: int
    p: int
    q: int
    flow: Flow
    drawn: Drawn
    parted: list[int]


class _Network:
    """Weights w and y of groups, sorted so that Σ max(0, −t(u)) over all of them takes O(log n)."""

    def __init__(self, weight: list[int], share: list[int], constant: int) -> None:
        self._weight = weight
        self._share = share
        self._constant = constant
        # t(u) = p·w(u) − q·y(u) is negative where w(u)/y(u) < q/p.
        groups = sorted((Fraction(w, y), w, y) for w, y in zip(weight, share, strict=True) if y > 0)
        self._quotients = [quotient for quotient, _, _ in groups]
        self._weight_until = list(accumulate((w for _, w, _ in groups), initial=0))
        self._share_until = list(accumulate((y for _, _, y in groups), initial=0))

    def largest_stage(self, row: _Row, flows: FlowChecker, limit: int) -> int | str:
        """Return Y_v for the op v of a row, or what is wrong with the row."""
        absorbed = flows.absorbed(row.group, row.flow, row.drawn, row.p)
        if isinstance(absorbed, str):
            return absorbed
        left_out = {row.group}
        if row.parted:
            others = [flows.group(op) for op in row.parted]
            if None in others:
                return f"there is no op {row.parted[others.index(None)]}"
            groups = [group for group in others if group is not None]
            parted = flows.paths.parted(row.group, groups, self._weight, limit + self._constant)
            if isinstance(parted, int):
                return f"op {row.parted[groups.index(parted)]} may share a stage with it"
            left_out |= parted
        excess = self._deficits(row) - sum(max(0, -self._surplus(group, row)) for group in left_out)
        for group, amount in absorbed.items():
            if group not in left_out:
                surplus = self._surplus(group, row)
                excess += max(0, amount - surplus) - max(0, -surplus)
        spare = row.p * (limit + self._constant) - self._surplus(row.group, row)
        return (spare + absorbed.get(row.group, 0) + excess) // row.q

    def _surplus(self, group: int, row: _Row) -> int:
        """Return t(u)."""
        return row.p * self._weight[group] - row.q * self._share[group]

    def _deficits(self, row: _Row) -> int:
        """Return Σ max(0, −t(u)) over all groups."""
        count = len(self._quotients) if row.p == 0 else bisect_left(self._quotients, Fraction(row.q, row.p))
        return row.q * self._share_until[count] - row.p * self._weight_until[count]
