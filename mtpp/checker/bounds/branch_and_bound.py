"""Branch and bound over stages: cases that cover all partitions, each refuted by a combination of linear inequalities.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Suppose one does.
Let w(u) be the work of op u and C = 0; if parameters are streamed, the work and s(u), and C as in
:mod:`mtpp.checker.merged`. With c(S) the transfers that S cuts, any stage S of it has w(S) + c(S) ≤ f(S) + C
≤ L + C. All w and transfers are multiples of their greatest common divisor, so the sum is at most M, the largest
multiple of it up to L + C. No stage cuts a tensor whose transfer is above M.

**Blocks.** The stages are divided into blocks 1 … B of s_1, …, s_B consecutive stages, empty ones left out or added at
the end: s_1 + … + s_B ≥ min(k, ops). What a block cuts one of its stages cuts, so a block X of s stages has

    w(X) + c(X) ≤ s·M.                                                                       (block)

With an *anchor*, an op and the block i of one stage that holds it, there may be min(k, ops) − 1 stages in the blocks
before it, and as many in those after it: some stage holds the op, wherever it is. The same holds for a *heavy* block of
one stage: some stage has at least W = max(max w, ⌈Σw / min(k, ops)⌉), and

    w(X) ≥ W.                                                                                (heavy)

**Variables.** y(u, b) = 1 if op u is in the blocks 1 … b, else 0; y(u, 0) = 0, y(u, B) = 1. So x(u, b) = y(u, b) −
y(u, b − 1) tells whether it is in block b. c(t, b) = 1 if block b cuts tensor t, else 0. They satisfy

    c(t, b) ≥ x(u, b) − x(v, b)     for ops u, v that touch t,                               (cut)
    y(u, b) ≥ y(v, b)               if u leads to v,                                         (order)
    y(u, b + 1) ≥ y(u, b),                                                                   (prefix)

and (block): Σ_u w(u)·x(u, b) + Σ_t transfer(t)·c(t, b) ≤ s_b·M.

With *weights* π of ops of which no convex set within L holds more than a capacity B (the scan of
:mod:`mtpp.checker.bounds.convex_weights` shows that), no stage does, and a block X of s stages has

    π(X) ≤ s·B.                                                                              (share)

**Known.** An op is outside the first b blocks, y(u, b) = 0, if all that leads to it, with itself, weighs more than M
times their stages; it is inside, y(u, b) = 1, if all that it leads to, with itself, weighs more than M times the stages
of the others. The same holds of π and B. More is known by an anchor, a case, and multipliers. (order) and (prefix)
extend it.

**Multipliers.** λ_b ≥ 0 for (block), one for (heavy) if there is such a block, μ_b ≥ 0 for (share), and numbers of at
least 0 for the others, times a common factor. Add up λ_b times the left sides of (block) and μ_b times those of
(share), and subtract the multiples of left minus right side of the others, which are at least 0. What comes out is at
most R = Σ_b (M·λ_b + B·μ_b)·s_b. It is linear: a constant, Σ a(u, b)·y(u, b) and terms in c. Hence it is at least D,
that with y(u, b) where it is known, and Σ min(0, a(u, b)) over the y that are not known; terms in c(t, b) count with
min(0, coefficient), or 0 if no stage cuts t. If D > R, there is no partition in this case. Otherwise, as far as y(u, b)
is unknown, D − min(0, a(u, b)) + a(u, b) > R shows that it is 0, and D − min(0, a(u, b)) > R that it is 1.

**Cases.** A node of the tree has multipliers, which are applied one after the other. Unless they refute it, it has an
op, a boundary b and two nodes: y(u, b) = 0 in the first, 1 in the second. The claim holds if all cases are refuted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import gcd
from typing import Any

from mtpp.checker.bounds.convex_weights import check_stage_shares, fault_in_shares
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.checker.paths import Paths
from mtpp.document_shape import array, flag, items, nullable, record, whole


def check_branch_and_bound(claim: BoundClaim) -> Verdict:
    """Re-check a bound by branch and bound.

    Notes
    -----
    The replay of the merges; the sets of what leads to each op, n²/4 bytes; and for each list of multipliers O(rows +
    unknown y) and B·log(work) operations on sets of ops.
    """
    required = {
        "cutoff": whole(1),
        "streamed": flag,
        "blocks": array(whole(1)),
        "nodes": array(_NODE),
    }
    optional = {"merges": check_merges, "anchor": nullable(items(whole(), whole(1))), "heavy": nullable(whole(1))}
    record(required, {**optional, _WEIGHTS: check_stage_shares})(claim.proof, claim.path)
    method = "branch-and-bound"
    graph = claim.merged_by_terms()
    if isinstance(graph, str):
        return False, f"{method}: {graph}"
    tree = _Tree.of(claim, graph)
    fault = tree if isinstance(tree, str) else tree.fault()
    if isinstance(tree, str) or fault is not None:
        return False, f"{method}: {fault or tree}"
    cases = f"{tree.cases} cases, each refuted by multipliers, cover"
    if tree.cases < 2:
        cases = "multipliers refute" if tree.cases else "what is known of the ops refutes"
    return True, f"{method}: {cases} all partitions below {claim.value} ticks"


_WEIGHTS = "weights"
_CUT = items(whole(), whole(1), whole(), whole(), whole(1))
_ORDER = items(whole(), whole(), whole(1), whole(1))
_PREFIX = items(whole(), whole(1), whole(1))
_MULTIPLIERS = items(whole(1), array(whole()), array(_CUT), array(_ORDER), array(_PREFIX))
_BRANCH = items(whole(), whole(1), whole(), whole())
_NODE = items(array(_MULTIPLIERS), nullable(_BRANCH))


@dataclass
class _Tree:
    """The cases of a proof.

    Attributes
    ----------
    weight
        w(u) of each group of ops.
    most
        M.
    blocks
        s_b.
    touching
        Groups that touch each tensor.
    share, capacity
        π of each group, and B; None without weights.
    cases
        Nodes that multipliers have refuted.
    """

    claim: BoundClaim
    graph: MergedGraph
    weight: list[int]
    most: int
    blocks: list[int]
    paths: Paths
    weights: SetWeights
    touching: list[set[int]]
    share: list[int] | None = None
    capacity: int = 0
    cases: int = 0

    @classmethod
    def of(cls, claim: BoundClaim, graph: MergedGraph) -> _Tree | str:
        """Read what the proof is about, or return what is wrong with it."""
        weights = stage_weights(graph, claim.system, streamed=claim.proof["streamed"])
        if weights is None:
            return WITHOUT_MEMORY
        weight, constant = weights
        unit = gcd(*weight, *(transfer for transfer, _, _ in graph.tensors)) or 1
        paths = Paths(graph)
        if paths.order is None:
            return "the merged ops form a cycle"
        most = (claim.value - 1 + constant) // unit * unit
        touching = [{producer, *consumers} for _, producer, consumers in graph.tensors]
        tree = cls(claim, graph, weight, most, claim.proof["blocks"], paths, SetWeights(weight), touching)
        return tree._with_shares() if _WEIGHTS in claim.proof else tree

    def _with_shares(self) -> _Tree | str:
        """Take in the weights, or return why stages may hold more of them than their capacity."""
        shares = self.claim.proof[_WEIGHTS]
        fault = fault_in_shares(replace(self.claim, proof=shares, path=(*self.claim.path, _WEIGHTS)), self.graph)
        if fault is not None:
            return fault
        self.share, self.capacity = [0] * len(self.weight), shares["capacity"]
        for op, amount in shares["weights"]:
            self.share[self.graph.group_of[op]] = amount
        return self

    def fault(self) -> str | None:
        """Return the first thing that is wrong, None if all cases are refuted."""
        nodes = self.claim.proof["nodes"]
        wrong = self._too_few()
        if wrong is not None:
            return wrong
        if not nodes:
            return "there is no case"
        first = self._known_first()
        if isinstance(first, str):
            return first
        open_cases = [] if first is None else [(0, first)]
        visited = [False] * len(nodes)
        while open_cases:
            number, known = open_cases.pop()
            if visited[number]:
                return f"node {number} stands for two cases"
            visited[number] = True
            steps, branch = nodes[number]
            left = self._after_steps(steps, known)
            if isinstance(left, str):
                return f"node {number}: {left}"
            if left is None:
                self.cases += 1
                continue
            if branch is None:
                return f"node {number}: its case is not refuted"
            children = self._children(number, branch, left)
            if isinstance(children, str):
                return f"node {number}: {children}"
            open_cases += reversed(children)
        return None

    def _too_few(self) -> str | None:
        """Say that blocks have too few stages for every partition, None if they have enough."""
        needed = min(self.claim.k, len(self.weight))
        anchor, heavy = self.claim.proof.get("anchor"), self.heavy
        if anchor is not None and heavy is not None:
            return "there are both an anchor and a heavy block"
        if anchor is not None:
            return self._too_few_around("anchor's block", anchor[1], needed)
        if heavy is not None:
            return self._too_few_around("heavy block", heavy, needed)
        total = sum(self.blocks)
        return None if total >= needed else f"the blocks have {counted(total, 'stage')}, a partition may need {needed}"

    def _too_few_around(self, name: str, block: int, needed: int) -> str | None:
        """Say that a block is not one stage that may be anywhere, None if it is."""
        if block > len(self.blocks) or self.blocks[block - 1] != 1:
            return f"the {name} is not one stage"
        sides = sum(self.blocks[: block - 1]), sum(self.blocks[block:])
        if min(sides) < needed - 1:
            fewest = counted(min(sides), "stage")
            return f"the blocks on a side of the {name} have {fewest}, a partition may need {needed - 1}"
        return None

    @property
    def heavy(self) -> int | None:
        """The block that has at least :attr:`least_weight`."""
        block: int | None = self.claim.proof.get("heavy")
        return block

    @property
    def least_weight(self) -> int:
        """W."""
        average = -(-sum(self.weight) // min(self.claim.k, len(self.weight)))
        return max(average, *self.weight)

    def _known_first(self) -> KnownPrefixes | str | None:
        """Return what is known of every partition, None if there is none, or what is wrong with the anchor."""
        boundaries = len(self.blocks) - 1
        nothing = (0,) * boundaries
        inside, outside = [0] * boundaries, [0] * boundaries
        stages = list(accumulate(self.blocks, initial=0))
        limited = [(self.weight, self.most)] + ([] if self.share is None else [(self.share, self.capacity)])
        for weight, most in limited:
            before, after = self.paths.sums(weight)
            for b in range(1, boundaries + 1):
                for group in range(len(weight)):
                    if before[group] > stages[b] * most:
                        outside[b - 1] |= 1 << group
                    if after[group] > (stages[-1] - stages[b]) * most:
                        inside[b - 1] |= 1 << group
        anchor = self.claim.proof.get("anchor")
        if anchor is not None:
            op, block = anchor
            if op >= len(self.graph.group_of):
                return f"there is no op {op}"
            bit = 1 << self.graph.group_of[op]
            for b in range(1, boundaries + 1):
                if b >= block:
                    inside[b - 1] |= bit
                else:
                    outside[b - 1] |= bit
        return KnownPrefixes(nothing, nothing).with_more(inside, outside, self.paths)

    def _after_steps(self, steps: list[Any], known: KnownPrefixes) -> KnownPrefixes | str | None:
        """Return what is known after all multipliers, None if the case is refuted, or what is wrong with them."""
        for step in steps:
            found = self._known_by(step, known)
            if found is None or isinstance(found, str):
                return found
            known = found
        return known

    def _children(self, number: int, branch: list[int], known: KnownPrefixes) -> list[tuple[int, KnownPrefixes]] | str:
        op, boundary, *children = branch
        if op >= len(self.graph.group_of):
            return f"there is no op {op}"
        if boundary >= len(self.blocks):
            return f"there is no boundary {boundary}"
        if not all(number < child < len(self.claim.proof["nodes"]) for child in children):
            return "its cases do not come after it"
        one = [0] * (len(self.blocks) - 1)
        one[boundary - 1] = 1 << self.graph.group_of[op]
        none = [0] * len(one)
        found = []
        for child, sides in zip(children, ((none, one), (one, none)), strict=True):
            state = known.with_more(*sides, self.paths)
            if state is not None:
                found.append((child, state))
        return found

    def _known_by(self, step: list[Any], known: KnownPrefixes) -> KnownPrefixes | str | None:
        """Return what is known after some multipliers, None if they refute the case, or what is wrong with them."""
        combined = _Combination.of(self, step)
        if isinstance(combined, str):
            return combined
        return combined.known(known)


@dataclass
class _Combination:
    """A sum of inequalities: constant + Σ a(u, b)·y(u, b), terms in c at their least.

    Attributes
    ----------
    slope
        λ_b − λ_{b+1}, for b = 1 … B − 1, that of (heavy) taken from its block's: a(u, b) has w(u) times this.
    extra
        The rest of a(u, b), by boundary and group.
    share_slope
        The same of the multipliers of (share) and π; all 0 without.
    spare
        R less the constant: what Σ a(u, b)·y(u, b) has to be above.
    """

    tree: _Tree
    slope: list[int]
    share_slope: list[int]
    extra: list[defaultdict[int, int]]
    spare: int

    @classmethod
    def of(cls, tree: _Tree, step: list[Any]) -> _Combination | str:
        """Add up the inequalities, or return what is wrong with one."""
        factor, of_block, cuts, orders, prefixes = step
        count, heavy = len(tree.blocks), tree.heavy
        named = count + (heavy is not None)
        if len(of_block) != named + (0 if tree.share is None else count):
            also = "" if heavy is None else " and a heavy one among them"
            return f"there are {count} blocks{also}, and multipliers for {len(of_block)}"
        of_block, of_heavy, of_share = of_block[:count], of_block[count:named], of_block[named:] or [0] * count
        spare = tree.most * sum(a * s for a, s in zip(of_block, tree.blocks, strict=True))
        of_weight = [*of_block]
        if heavy is not None:
            of_weight[heavy - 1] -= of_heavy[0]
            spare -= of_heavy[0] * tree.least_weight
        slope = [a - b for a, b in pairwise(of_weight)]
        spare -= of_weight[-1] * sum(tree.weight) + of_share[-1] * sum(tree.share or ())
        spare += tree.capacity * sum(a * s for a, s in zip(of_share, tree.blocks, strict=True))
        share_slope = [a - b for a, b in pairwise(of_share)]
        combined = cls(tree, slope, share_slope, [defaultdict(int) for _ in range(count + 1)], spare)
        fault = combined._add_cuts(factor, of_block, cuts)
        fault = fault or combined._add_orders(factor, orders)
        fault = fault or combined._add_prefixes(factor, prefixes)
        return combined if fault is None else fault

    def _group(self, op: int) -> int | None:
        group_of = self.tree.graph.group_of
        return group_of[op] if op < len(group_of) else None

    def _add_cuts(self, factor: int, of_block: list[int], rows: list[list[int]]) -> str | None:
        """Subtract multiples of c(t, b) − x(u, b) + x(v, b)."""
        left: dict[tuple[int, int], int] = {}
        tensors = self.tree.graph.tensors
        for tensor, block, op, other, multiplier in rows:
            u, v = self._group(op), self._group(other)
            if u is None or v is None:
                return f"there is no op {op if u is None else other}"
            if tensor >= len(tensors):
                return f"there is no tensor {tensor} between ops"
            if block > len(of_block):
                return f"there is no block {block}"
            for group, name in ((u, op), (v, other)):
                if group not in self.tree.touching[tensor]:
                    return f"op {name} does not touch tensor {tensor}"
            amount = factor * multiplier
            key = tensor, block
            left[key] = left.get(key, of_block[block - 1] * tensors[tensor][0]) - amount
            self.extra[block][u] += amount
            self.extra[block - 1][u] -= amount
            self.extra[block][v] -= amount
            self.extra[block - 1][v] += amount
        least = sum(min(0, value) for (tensor, _), value in left.items() if tensors[tensor][0] <= self.tree.most)
        self.spare -= least + sum(self.extra[-1].values())  # y(u, B) = 1
        self.extra[-1].clear()
        self.extra[0].clear()
        return None

    def _add_orders(self, factor: int, rows: list[list[int]]) -> str | None:
        """Subtract multiples of y(u, b) − y(v, b)."""
        for op, other, boundary, multiplier in rows:
            u, v = self._group(op), self._group(other)
            if u is None or v is None:
                return f"there is no op {op if u is None else other}"
            if boundary > len(self.slope):
                return f"there is no boundary {boundary}"
            if not self.tree.paths.following[u] >> v & 1:
                return f"op {op} does not lead to op {other}"
            self.extra[boundary][u] -= factor * multiplier
            self.extra[boundary][v] += factor * multiplier
        return None

    def _add_prefixes(self, factor: int, rows: list[list[int]]) -> str | None:
        """Subtract multiples of y(u, b + 1) − y(u, b)."""
        for op, boundary, multiplier in rows:
            u = self._group(op)
            if u is None:
                return f"there is no op {op}"
            if boundary >= len(self.slope):
                return f"there are no boundaries {boundary} and {boundary + 1}"
            self.extra[boundary + 1][u] -= factor * multiplier
            self.extra[boundary][u] += factor * multiplier
        return None

    def known(self, known: KnownPrefixes) -> KnownPrefixes | None:
        """Return what is known with this, None if there is no partition left."""
        weight, share = self.tree.weight, self.tree.share or [0] * len(self.tree.weight)
        everything = (1 << len(weight)) - 1
        missing = self.spare
        unknown: list[tuple[int, int, int]] = []
        sides = zip(self.slope, self.share_slope, known.inside, known.outside, strict=True)
        for i, (slope, share_slope, held, left) in enumerate(sides):
            extra = self.extra[i + 1]
            missing -= slope * self.tree.weights.of(held)
            if share_slope:
                missing -= share_slope * sum(share[u] for u in members(held))
            missing -= sum(amount for u, amount in extra.items() if held >> u & 1)
            for u in members(everything & ~held & ~left):
                coefficient = slope * weight[u] + share_slope * share[u] + extra.get(u, 0)
                unknown.append((i, u, coefficient))
                missing -= min(0, coefficient)
        if missing < 0:
            return None
        inside, outside = [0] * len(self.slope), [0] * len(self.slope)
        for i, u, coefficient in unknown:
            if coefficient > missing:
                outside[i] |= 1 << u
            elif -coefficient > missing:
                inside[i] |= 1 << u
        return known.with_more(inside, outside, self.tree.paths)


def members(bits: int) -> Iterator[int]:
    """Yield the groups of a set, in ascending order."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class SetWeights:
    """Sums of weights over sets of groups, by the binary digits of the weights: O(n·log(weight)/64) for a sum."""

    def __init__(self, weight: Sequence[int]) -> None:
        self._digits = [0] * max(map(int.bit_length, weight), default=0)
        for group, value in enumerate(weight):
            for digit in members(value):
                self._digits[digit] |= 1 << group

    def of(self, bits: int) -> int:
        """Return the weight of a set."""
        return sum((bits & mask).bit_count() << digit for digit, mask in enumerate(self._digits))


@dataclass(frozen=True)
class KnownPrefixes:
    """Sets of groups for each boundary b = 1 … B − 1 between blocks, in this order.

    A set is an integer with a bit per group.

    Attributes
    ----------
    inside
        Groups that are in the first b blocks.
    outside
        Groups that are in none of them.
    """

    inside: tuple[int, ...]
    outside: tuple[int, ...]

    def with_more(self, inside: Sequence[int], outside: Sequence[int], paths: Paths) -> KnownPrefixes | None:
        """Add what else is known, and what follows from it; None if it contradicts itself.

        What leads to an op that is in the first b blocks is in them too, and all that is in them is in the first b + 1.
        """
        held, left = list(self.inside), list(self.outside)
        below = 0
        for b, more in enumerate(inside):
            for group in members((more | below) & ~held[b]):
                held[b] |= paths.leading[group]
            below = held[b]
        above = 0
        for b in range(len(left) - 1, -1, -1):
            for group in members((outside[b] | above) & ~left[b]):
                left[b] |= paths.following[group]
            above = left[b]
        if any(a & b for a, b in zip(held, left, strict=True)):
            return None
        return KnownPrefixes(tuple(held), tuple(left))
