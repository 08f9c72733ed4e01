"""The configuration bound: weights of ops of which k stages cannot hold all, whatever their stages may be.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Let w(u) be the
work of op u and C = 0; if parameters are streamed, the work and s(u), and C as in :mod:`mtpp.checker.merged`;
M = L + C and W = Σ_u w(u). With c(S) the transfers that S cuts, a stage S of a partition within L that has an op has

    w(S) + c(S) ≤ M,                                                                         (budget)
    W − w(S) + c(S) ≤ (k − 1)·M,                                                             (rest)

for what S cuts is cut by another stage too, and there are at most k − 1 others, which hold all the rest. Besides, it is
convex. The proof gives weights Y_u ≥ 0 of ops and a capacity Z ≥ 0, and shows that no set of ops like that holds more
than Z. So k stages hold k·Z at most, and the claim is true if Σ_u Y_u is more: a feasible dual solution of the linear
program that covers ops by stages (Farley 1990).

**Families.** The i-th family is told by an op v: the sets that hold v and none of the families' ops before. A stage
that holds the op of a family is in one, the first such op's. Those of no other weight hold 0 ≤ Z; if ops that have a
weight are without a family, the ops without one must weigh less than W − (k − 1)·M, which any stage weighs by (rest).
The tree of a family splits it into sets that hold an op and sets that do not, until a family is empty by
:class:`Families` or has a leaf's flow.

**Leaves.** For integers a, b ≥ 0 and D > 0, with G_u = Y_u − ⌊(a − b)·w(u)/D⌋, and c'(S) for what S cuts of capacities
⌊(a + b)·transfer/D⌋ of the tensors, any S of the family has by (budget) and (rest)

    Y(S) ≤ Y(S) + (a·(M − w(S) − c(S)) + b·((k − 1)·M − W + w(S) − c(S)))/D
         ≤ ⌈a·M/D⌉ + ⌈b·((k − 1)·M − W)/D⌉ + Σ_{u ∈ S} G_u − c'(S).

The flow goes through the tensors (:mod:`mtpp.checker.flows`) and along arcs from an op x to an op y that each set of
the family has if it has x. Nothing leaves S along those, so −c'(S) ≤ Σ_{u ∈ S} a(u), a(u) being what op u gets less
what it gives. All sets of the family have the ops inside and, of the others, none that is outside, so

    Σ_{u ∈ S} G_u − c'(S) ≤ Σ_{u ∈ S} (G_u + a(u)) ≤ Σ_{u inside} (G_u + a(u)) + Σ_{u free} max(0, G_u + a(u)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, NamedTuple

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.flows import FlowChecker, check_drawn, check_flow
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.checker.paths import Paths
from mtpp.document_shape import Path, any_array, array, choice, flag, items, record, refuse, signed, whole

_ITEMS = {"split": 4, "leaf": 4, "none": 1}
"""How many items the nodes of a tree have."""

_BYTE = 256


def check_configuration(claim: BoundClaim) -> Verdict:
    """Re-check a configuration bound.

    Notes
    -----
    The replay of the merges, and for each leaf O(n + rows of its flow) and the sums of
    :mod:`mtpp.checker.bounds.configuration`. Nesting of trees is followed without recursion.
    """
    required = {
        "cutoff": whole(1),
        "stages": whole(1),
        "streamed": flag,
        "capacity": whole(),
        "denominator": whole(1),
        "weights": array(items(whole(), whole(1))),
        "families": array(items(whole(), _check_tree)),
    }
    record(required, {"merges": check_merges})(claim.proof, claim.path)
    graph = claim.merged_by_terms()
    if isinstance(graph, str):
        return False, f"configuration: {graph}"
    cover = _Cover.of(claim, graph)
    fault = cover if isinstance(cover, str) else cover.fault()
    if isinstance(cover, str) or fault is not None:
        return False, f"configuration: {fault}"
    total, capacity = sum(cover.value), claim.proof["capacity"]
    if total <= claim.k * capacity:
        return False, f"configuration: the ops have {total} in all, which {claim.k} stages of {capacity} may hold"
    held = f"no stage below {claim.value} ticks holds more than {capacity} of the ops' weight of {total}"
    return True, f"configuration: {held}, so {claim.k} are too few, by {counted(cover.leaves, 'flow')}"


@dataclass
class _Cover:
    """What there is to show of the families.

    Attributes
    ----------
    weight, value
        w(u) and Y_u of each group of ops.
    most, others
        M and (k − 1)·M − W.
    leaves
        Flows that have been checked.
    """

    claim: BoundClaim
    graph: MergedGraph
    flows: FlowChecker
    families: Families
    weight: list[int]
    value: list[int]
    most: int
    others: int
    leaves: int = 0

    @classmethod
    def of(cls, claim: BoundClaim, graph: MergedGraph) -> _Cover | str:
        """Read what the proof says of ops, or return what is wrong with it."""
        weights = stage_weights(graph, claim.system, streamed=claim.proof["streamed"])
        if weights is None:
            return WITHOUT_MEMORY
        weight, constant = weights
        flows = FlowChecker(graph)
        value: dict[int, int] = {}
        for op, amount in claim.proof["weights"]:
            group = flows.group(op)
            if group is None:
                return f"there is no op {op}"
            if group in value:
                return f"{claim.name(graph, group)} has two weights"
            value[group] = amount
        most = claim.value - 1 + constant
        others = (claim.k - 1) * most - sum(weight)
        families = Families(flows.paths, weight, most, -others)
        values = [value.get(group, 0) for group in range(len(weight))]
        return cls(claim, graph, flows, families, weight, values, most, others)

    def fault(self) -> str | None:
        """Return what is wrong with the families, None if every stage of a partition within the limit holds ≤ Z."""
        earlier = 0
        for i, (op, tree) in enumerate(self.claim.proof["families"]):
            root = self.flows.group(op)
            if root is None:
                return f"there is no op {op}"
            if earlier >> root & 1:
                return f"{self.claim.name(self.graph, root)} has two families"
            fault = self._fault_of_tree(tree, self.families.rooted(root, earlier))
            if fault is not None:
                return f"family {i}, of {self.claim.name(self.graph, root)}: {fault}"
            earlier |= 1 << root
        missing = [group for group in range(len(self.weight)) if not earlier >> group & 1]
        if sum(self.weight[group] for group in missing) >= -self.others:
            uncovered = next((group for group in missing if self.value[group]), None)
            if uncovered is not None:
                return f"{self.claim.name(self.graph, uncovered)} has a weight and no family"
        return None

    def _fault_of_tree(self, tree: list[Any], root: Family | None) -> str | None:
        stack = [(tree, root)]
        while stack:
            (kind, *items), family = stack.pop()
            if family is None:
                continue
            if kind == "none":
                return "a family that the proof says is empty may not be"
            if kind == "split":
                op, tree_in, tree_out = items
                group = self.flows.group(op)
                if group is None:
                    return f"there is no op {op}"
                family_in, family_out = self.families.split(family, group)
                stack += [(tree_out, family_out), (tree_in, family_in)]
            else:
                fault = self._fault_of_leaf(family, *items)
                if fault is not None:
                    return fault
                self.leaves += 1
        return None

    def _fault_of_leaf(self, family: Family, a: int, b: int, flow: list[list[list[int]]]) -> str | None:
        rows, arcs = flow
        denominator = self.claim.proof["denominator"]
        gets = self.flows.absorbed(0, rows, [], a + b, denominator)
        if isinstance(gets, str):
            return gets
        for op, other, amount in arcs:
            giver, taker = self.flows.group(op), self.flows.group(other)
            if giver is None or taker is None:
                return f"there is no op {op if giver is None else other}"
            if not self.families.draws(family, giver, taker):
                return f"sets with op {op} need not hold op {other}"
            gets[giver] = gets.get(giver, 0) - amount
            gets[taker] = gets.get(taker, 0) + amount
        held = -(-a * self.most // denominator) - (-b * self.others // denominator)
        inside, outside = family.inside, family.outside
        for group, (value, weight) in enumerate(zip(self.value, self.weight, strict=True)):
            if not outside >> group & 1:
                gain = value - (a - b) * weight // denominator + gets.get(group, 0)
                if gain > 0 or inside >> group & 1:
                    held += gain
        capacity = self.claim.proof["capacity"]
        return None if held <= capacity else f"sets may hold {held}, more than {capacity}"


def _check_multiplier(value: Any, path: Path) -> None:
    signed(value, path)
    if value < 0:
        refuse(f"{value} is below 0", path)


_check_kind = choice(*_ITEMS)
_check_leaf = (_check_multiplier, _check_multiplier, items(check_flow, check_drawn))


def _check_tree(value: Any, path: Path) -> None:
    stack = [(value, path)]
    while stack:
        node, path = stack.pop()
        any_array(node, path)
        if not node:
            refuse("expected a kind of node", path)
        _check_kind(node[0], (*path, 0))
        if len(node) != _ITEMS[node[0]]:
            refuse(f"a node {node[0]!r} has {_ITEMS[node[0]]} items, found {len(node)}", path)
        if node[0] == "split":
            whole()(node[1], (*path, 1))
            stack += [(node[3], (*path, 3)), (node[2], (*path, 2))]
        elif node[0] == "leaf":
            for i, rule in enumerate(_check_leaf, start=1):
                rule(node[i], (*path, i))


class Family(NamedTuple):
    """Sets of ops, bit u standing for op u.

    Attributes
    ----------
    inside, outside
        Ops that every set holds, and that none does.
    above, below
        Ops that lead to one that is inside, and that one leads to, the ones inside included.
    """

    inside: int
    outside: int
    above: int
    below: int


class Families:
    """Families of sets of ops of one graph that can be stages of a partition.

    A family is told by some ops that its sets hold and some that they do not hold. More follows if its sets are stages
    of a partition in which every stage S has weight w(S) ≤ M and w(S) ≥ m. First of all, S is convex: it has every op
    on a path between two of its ops. So

    1. an op on a path between two ops that S holds is in S;
    2. an op that leads through one that is not in S to one that is, or the other way round, is not in S;
    3. an op is not in S if S would weigh more than M with it and with what would come in by the first rule.

    There are no such sets if some op is in S and not in S, if what is in S weighs more than M, or if all that may be in
    S weighs less than m.

    **One pass is enough.** Let ``inside`` be what S holds, with what leads to it or is reached from it called ``above``
    and ``below``, itself included each time. By the first rule ``inside`` is all that is in both, and adding what the
    rule adds changes neither. Nothing else puts ops inside, and what the third rule leaves out depends on nothing but
    ``inside``, so that the second, which follows, has nothing to feed back.

    Attributes
    ----------
    before, after
        Ops that lead to each op, and that it leads to, itself included.

    Notes
    -----
    Sets of ops are integers; a weight of one is added up byte by byte. O(n·edges/64 + 32·n) once. A family takes as
    many sums over O(n/8) bytes as it has ops that are free and joined to the inside, at worst.
    """

    def __init__(self, paths: Paths, weight: Sequence[int], most: int, least: int) -> None:
        """Let stages weigh no more than *most* and no less than *least*."""
        count = len(weight)
        self._all = (1 << count) - 1
        self._weight = weight
        self._most, self._least = most, least
        self.before, self.after = paths.leading, paths.following
        self._bytes = [_sums(weight[begin : begin + 8]) for begin in range(0, count, 8)]

    def rooted(self, op: int, outside: int) -> Family | None:
        """Return the sets with *op* and none of *outside*; None if there are none."""
        return self._closed(Family(0, outside, self.before[op], self.after[op]))

    def split(self, family: Family, op: int) -> tuple[Family | None, Family | None]:
        """Return the sets of a family that hold *op*, and those that do not; None for either if there are none."""
        inside, outside, above, below = family
        return (
            self._closed(Family(inside, outside, above | self.before[op], below | self.after[op])),
            self._without(family, 1 << op),
        )

    def draws(self, family: Family, op: int, other: int) -> bool:
        """Tell whether any set of a family that holds *op* holds *other*, as it lies on a path to the inside."""
        onward = family.above & self.after[op]
        backward = family.below & self.before[op]
        return bool((onward | backward) >> other & 1)

    def sum(self, ops: int) -> int:
        """Return the weight of a set of ops."""
        return sum(map(getitem, self._bytes, ops.to_bytes(len(self._bytes), "little")))

    def _closed(self, family: Family) -> Family | None:
        _, outside, above, below = family
        inside = above & below
        spare = self._most - self.sum(inside)
        if spare < 0 or inside & outside:
            return None
        free = self._all & ~inside & ~outside
        heavy = self._too_heavy(free & above, self.after, self.before, above & ~inside, spare)
        heavy |= self._too_heavy(free & below, self.before, self.after, below & ~inside, spare)
        aside = free & ~above & ~below
        heavy |= sum(1 << op for op, weight in enumerate(self._weight) if weight > spare and aside >> op & 1)
        return self._without(Family(inside, outside, above, below), heavy)

    def _too_heavy(self, ops: int, inward: list[int], outward: list[int], way: int, spare: int) -> int:
        """Return which of some ops around the inside are out by the third rule."""
        heavy = 0
        while ops:
            op = ops.bit_length() - 1
            if self.sum(inward[op] & way) > spare:
                # What lies beyond would bring more in.
                heavy |= ops & outward[op]
                ops &= ~outward[op]
            else:
                ops &= ~inward[op]
        return heavy

    def _without(self, family: Family, ops: int) -> Family | None:
        """Leave some ops out, and what follows from that by the second rule."""
        inside, outside, above, below = family
        outside |= ops
        for reach, around in ((self.before, above), (self.after, below)):
            barred = outside & around
            while barred:
                op = barred.bit_length() - 1
                outside |= reach[op]
                barred &= ~reach[op]
        if outside & inside or self.sum(self._all & ~outside) < self._least:
            return None
        return Family(inside, outside, above, below)


def _sums(weight: Sequence[int]) -> list[int]:
    """Return the weight of each set of up to eight ops."""
    sums = [0]
    for each in (*weight, *[0] * (8 - len(weight))):
        sums += [total + each for total in sums]
    assert len(sums) == _BYTE
    return sums
