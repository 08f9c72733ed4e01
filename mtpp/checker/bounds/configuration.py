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
:class:`Families` or has a leaf's flow or shares.

**Leaves.** For integers a, b ≥ 0 and D > 0, with G_u = Y_u − ⌊(a − b)·w(u)/D⌋, and c'(S) for what S cuts of capacities
⌊(a + b)·transfer/D⌋ of the tensors, any S of the family has by (budget) and (rest)

    Y(S) ≤ Y(S) + (a·(M − w(S) − c(S)) + b·((k − 1)·M − W + w(S) − c(S)))/D
         ≤ ⌈a·M/D⌉ + ⌈b·((k − 1)·M − W)/D⌉ + Σ_{u ∈ S} G_u − c'(S).

The flow goes through the tensors (:mod:`mtpp.checker.flows`) and along arcs from an op x to an op y that each set of
the family has if it has x. Nothing leaves S along those, so −c'(S) ≤ Σ_{u ∈ S} a(u), a(u) being what op u gets less
what it gives. All sets of the family have the ops inside and, of the others, none that is outside, so

    Σ_{u ∈ S} G_u − c'(S) ≤ Σ_{u ∈ S} (G_u + a(u)) ≤ Σ_{u inside} (G_u + a(u)) + Σ_{u free} max(0, G_u + a(u)).

**Shares.** A leaf may use that some tensors are apart (:class:`~mtpp.checker.bounds.families.Families`): no set of the
family holds all ops that touch one, so each set that touches it cuts it. If an op inside does, all sets of the family
cut it, and its capacity comes off once. Else it is shared out: what the ops of a set pay is no more than the capacity,
and the capacity is in c'(S) if any op of S pays. Shares are given, at least 0 and together no more than the capacity,
or they are equal, rounded down, among the ops that are neither inside nor outside. Where two ops touch a tensor apart,
each pays all of it, for no set holds both. The flow of such a leaf goes through the other tensors only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtpp.checker.bounds.families import Families, Family
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.flows import FlowChecker, check_drawn, check_flow
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.document_shape import Path, any_array, array, choice, flag, items, record, refuse, signed, whole

_ITEMS = {"split": 4, "leaf": 4, "shares": 5, "none": 1}
"""How many items the nodes of a tree have."""


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
        families = Families(flows.paths, weight, graph.tensors, most, -others)
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
                fault = self._fault_of_leaf(family, *items) if kind == "leaf" else self._fault_of_shares(family, *items)
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
        return self._fault_of_arcs(family, arcs, gets) or self._fault_of_sum(family, a, b, gets, 0)

    def _fault_of_shares(
        self, family: Family, a: int, b: int, rows: list[list[int]], arcs: list[list[int]]
    ) -> str | None:
        denominator, tensors = self.claim.proof["denominator"], self.graph.tensors
        apart = [tensor for tensor in range(len(tensors)) if family.apart >> tensor & 1]
        given = {row[0] for row in rows}
        let_through = [row for row in rows if not family.apart >> row[0] & 1]
        gets = self.flows.absorbed(0, let_through, [], a + b, denominator)
        if isinstance(gets, str):
            return gets
        shared = self._shares([row for row in rows if family.apart >> row[0] & 1], a + b)
        if isinstance(shared, str):
            return shared
        paid = 0
        known = family.inside | family.outside
        for tensor in apart:
            capacity = (a + b) * tensors[tensor][0] // denominator
            touching = self.families.touching[tensor]
            if touching & family.inside:
                paid += capacity
            elif tensor in given:
                for group, share in shared[tensor].items():
                    gets[group] = gets.get(group, 0) - share
            else:
                free = touching & ~known
                share = capacity if touching.bit_count() == 2 else capacity // max(1, free.bit_count())
                while free:
                    group = free.bit_length() - 1
                    free ^= 1 << group
                    gets[group] = gets.get(group, 0) - share
        return self._fault_of_arcs(family, arcs, gets) or self._fault_of_sum(family, a, b, gets, paid)

    def _shares(self, rows: list[list[int]], scale: int) -> dict[int, dict[int, int]] | str:
        """Return what each group pays of tensors apart, or what is wrong with it."""
        shared: dict[int, dict[int, int]] = {}
        for tensor, *moves in rows:
            if tensor in shared:
                return f"tensor {tensor} has two rows"
            own = shared[tensor] = {}
            for op, share in zip(moves[::2], moves[1::2], strict=True):
                group = self.flows.group(op)
                if group is None:
                    return f"there is no op {op}"
                if not self.families.touching[tensor] >> group & 1:
                    return f"op {op} does not touch tensor {tensor}"
                if share < 0:
                    return f"the share {share} of tensor {tensor} is below 0"
                own[group] = own.get(group, 0) + share
            capacity = scale * self.graph.tensors[tensor][0] // self.claim.proof["denominator"]
            if sum(own.values()) > capacity:
                return f"the shares of tensor {tensor} are {sum(own.values())}, its capacity is {capacity}"
        return shared

    def _fault_of_arcs(self, family: Family, arcs: list[list[int]], gets: dict[int, int]) -> str | None:
        for op, other, amount in arcs:
            giver, taker = self.flows.group(op), self.flows.group(other)
            if giver is None or taker is None:
                return f"there is no op {op if giver is None else other}"
            if not self.families.draws(family, giver, taker):
                return f"sets with op {op} need not hold op {other}"
            gets[giver] = gets.get(giver, 0) - amount
            gets[taker] = gets.get(taker, 0) + amount
        return None

    def _fault_of_sum(self, family: Family, a: int, b: int, gets: dict[int, int], paid: int) -> str | None:
        denominator = self.claim.proof["denominator"]
        held = -(-a * self.most // denominator) - (-b * self.others // denominator) - paid
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
_PARTS = {
    "leaf": (_check_multiplier, _check_multiplier, items(check_flow, check_drawn)),
    "shares": (_check_multiplier, _check_multiplier, check_flow, check_drawn),
}


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
        else:
            for i, rule in enumerate(_PARTS.get(node[0], ()), start=1):
                rule(node[i], (*path, i))
