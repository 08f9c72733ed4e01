"""The crossings bound: what has to cross between consecutive stages, until no room is left for it.

The proof says that no partition into k stages costs less than the cutoff, so at most L = cutoff − 1. Suppose one does;
let D_i hold the ops of its first i stages, so that D_0 is empty and D_k has all ops. A D_i has, with an op, all that
leads to it. Let w and C be as in :mod:`mtpp.checker.bounds.node`, W = w of all ops, and H = L + C: then w(S) + c(S) ≤ H
for each stage S, empty ones included. Of the transfers that are paid, let

    made_i be at most those of tensors that stage i makes for later ones,
    read_i be at most those of tensors that stage i reads from earlier ones,
    across_i be at most those of tensors that are made in D_i and read outside,

all 0 to begin with. Adding up what stages 1 … i pay, and what those after i pay,

    w(D_i) ≤ b_i = min(W, i·H − Σ_{j ≤ i} (made_j + read_j)),
    w(D_i) ≥ a_i = W − (k − i)·H + Σ_{j > i} made_j + max(Σ_{j > i} read_j, max(across_i, made_i) + Σ_{j > i} made_j),

for what is made in D_i and read outside is read by a stage after i, and so is, by a still later one, what stage j > i
makes for later ones. So an op is surely

    outside D_i if i = 0, or if i < k and w of all that leads to it, itself included, is above b_i;
    inside D_i if i = k, or if i > 0 and W less w of all that it leads to, itself included, is below a_i.

**Steps.** Each raises one of the numbers to an amount that a flow proves; D is D_i, for read_i D_{i−1}. Producers give
into tensors, in all at most the transfer, and readers take it out. For made_i only producers surely outside D_{i−1}
may give, for read_i only readers surely inside D_i may take. An op may give any amount right to an op that it reads
from. Let a(u) be what op u gets less what it gives, at least 0 unless u is surely inside D. What goes out of D on
balance is Σ_{u ∉ D} a(u), so at least Σ a(u) over the ops surely outside D. It goes through tensors from ops in D to
ops that are not, which are such as the number counts, and is at most their transfers: nothing leaves D between an op
and one that it reads from, or through a tensor made outside. So the amount may be Σ a(u) over ops surely outside D.

The claim holds if in the end a_i > b_i for some i, or made_i + read_i > H, or an op is surely inside D_i and outside.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import Any

from mtpp.checker.bounds.device_prefixes import check_device_prefixes
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.flows import Drawn, Flow, check_drawn, check_flow
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.checker.paths import Paths
from mtpp.document_shape import Path, any_array, array, choice, flag, record, refuse, text, whole

_KINDS = ("made", "read", "across")
_MOST_STAGES = 100_000
_STEP = (choice(*_KINDS), whole(1), whole(), check_flow, check_drawn)


def check_crossings(claim: BoundClaim) -> Verdict:
    """Re-check a crossings bound.

    Notes
    -----
    O(k + rows of its flow) for each step, besides the weight of all that leads to each op
    (:meth:`mtpp.checker.paths.Paths.sums`) and the replay of the merges.
    """
    if "rule" in claim.proof:
        return _check_prefixes(claim)
    rules = {"cutoff": whole(1), "stages": whole(1), "streamed": flag, "steps": array(_check_step)}
    record(rules, {"merges": check_merges})(claim.proof, claim.path)
    if claim.k > _MOST_STAGES:
        return False, f"crossings: proofs for more than {_MOST_STAGES} stages are not checked"
    graph = claim.merged_by_terms()
    if isinstance(graph, str):
        return False, f"crossings: {graph}"
    weights = stage_weights(graph, claim.system, streamed=claim.proof["streamed"])
    if weights is None:
        return False, f"crossings: {WITHOUT_MEMORY}"
    weight, constant = weights
    paths = Paths(graph)
    if paths.order is None:
        return False, "crossings: the ops, as merged, wait for each other"
    windows = _Windows(weight, paths, claim.k, claim.value - 1 + constant)
    steps = _Steps(graph, paths, windows)
    for number, (kind, i, amount, flow, drawn) in enumerate(claim.proof["steps"]):
        if not (2 if kind == "read" else 1) <= i <= (claim.k if kind == "read" else claim.k - 1):
            return False, f"crossings: step {number}: there is no such number as {kind} {i}"
        proven = steps.proven(kind, i, flow, drawn)
        if isinstance(proven, str):
            return False, f"crossings: step {number}: {proven}"
        if amount > proven:
            return False, f"crossings: step {number}: the flow proves {proven} ticks for {kind} {i}, not {amount}"
        windows.raise_to(kind, i, amount)
    why = windows.contradiction()
    if why is None:
        return False, "crossings: what has to cross leaves room for a partition"
    return True, f"crossings: in {len(claim.proof['steps'])} steps, {why}"


def _check_prefixes(claim: BoundClaim) -> Verdict:
    rule = claim.key("rule")
    text(rule, (*claim.path, "rule"))
    return check_device_prefixes(claim) if rule == "device-prefixes" else (False, f"no such rule: {rule[:60]!r}")


def _check_step(value: Any, path: Path) -> None:
    any_array(value, path)
    if len(value) != len(_STEP):
        refuse("a step needs a kind, a number, an amount, a flow, and what is drawn", path)
    for j, rule in enumerate(_STEP):
        rule(value[j], (*path, j))


class _Windows:
    """The numbers made, read and across, and what follows from them about the ops of the first stages."""

    def __init__(self, weight: list[int], paths: Paths, k: int, most: int) -> None:
        self._total = sum(weight)
        self._before, self._after = paths.sums(weight)
        self._k = k
        self._most = most
        self._numbers = {kind: [0] * (k + 1) for kind in _KINDS}
        self._lowest: list[int] = []
        self._highest: list[int] = []
        self._update()

    def raise_to(self, kind: str, i: int, amount: int) -> None:
        """Set a number to an amount if that is more."""
        if amount > self._numbers[kind][i]:
            self._numbers[kind][i] = amount
            self._update()

    def outside(self, group: int, i: int) -> bool:
        """Tell whether a group is surely outside D_i."""
        return i == 0 or (i < self._k and self._before[group] > self._highest[i])

    def inside(self, group: int, i: int) -> bool:
        """Tell whether a group is surely inside D_i."""
        return i == self._k or (i > 0 and self._total - self._after[group] < self._lowest[i])

    def contradiction(self) -> str | None:
        """Say why there is no such partition; None if that does not follow."""
        made, read = self._numbers["made"], self._numbers["read"]
        for i, (lowest, highest) in enumerate(zip(self._lowest, self._highest, strict=True)):
            if lowest > highest:
                return f"the first {i} stages need {lowest} ticks at least, and have room for {highest}"
            if made[i] + read[i] > self._most:
                return f"{made[i] + read[i]} ticks cross from and to stage {i}, whose limit is {self._most}"
            groups = range(len(self._before)) if 0 < i < self._k and lowest > 0 and highest < self._total else ()
            if any(self.outside(group, i) and self.inside(group, i) for group in groups):
                return f"an op would have to be both in and not in the first {i} stages"
        return None

    def _update(self) -> None:
        made, read, across = (self._numbers[kind] for kind in _KINDS)
        paid = accumulate(map(sum, zip(made, read, strict=True)))
        self._highest = [min(self._total, i * self._most - until) for i, until in enumerate(paid)]
        self._lowest = [0] * (self._k + 1)
        later_made = later_read = 0
        for i in range(self._k, -1, -1):
            reading = max(later_read, max(across[i], made[i]) + later_made)
            self._lowest[i] = self._total - (self._k - i) * self._most + later_made + reading
            later_made += made[i]
            later_read += read[i]


class _Steps:
    """What the flows of steps prove on one graph."""

    def __init__(self, graph: MergedGraph, paths: Paths, windows: _Windows) -> None:
        self._group_of = graph.group_of
        self._tensors = [(transfer, producer, frozenset(readers)) for transfer, producer, readers in graph.tensors]
        self._paths = paths
        self._windows = windows

    def proven(self, kind: str, i: int, flow: Flow, drawn: Drawn) -> int | str:
        """Return what a flow proves of a number, or what is wrong with it."""
        ops = [op for row in flow for op in row[1::2]] + [op for row in drawn for op in row[:2]]
        missing = next((op for op in ops if op >= len(self._group_of)), None)
        if missing is not None:
            return f"there is no op {missing}"
        gets: defaultdict[int, int] = defaultdict(int)
        seen: set[int] = set()
        for tensor, *moves in flow:
            if tensor in seen:
                return f"tensor {tensor} has two rows"
            seen.add(tensor)
            groups = [self._group_of[op] for op in moves[::2]]
            fault = self._row_fault(kind, i, tensor, groups, moves[1::2])
            if fault is not None:
                return fault
            for group, amount in zip(groups, moves[1::2], strict=True):
                gets[group] -= amount
        for op, other, amount in drawn:
            giver, taker = self._group_of[op], self._group_of[other]
            if taker not in self._paths.before[giver]:
                return f"op {op} does not read from op {other}"
            gets[giver] -= amount
            gets[taker] += amount
        boundary = i - 1 if kind == "read" else i
        inside, outside = self._windows.inside, self._windows.outside
        short = next((group for group, got in gets.items() if got < 0 and not inside(group, boundary)), None)
        if short is not None:
            op = self._group_of.index(short)
            return f"op {op}, which may be in a stage after {boundary}, gives more than it gets"
        return sum(got for group, got in gets.items() if outside(group, boundary))

    def _row_fault(self, kind: str, i: int, tensor: int, groups: list[int], amounts: list[int]) -> str | None:
        if tensor >= len(self._tensors):
            return f"there is no tensor {tensor} between ops"
        transfer, producer, readers = self._tensors[tensor]
        given = taken = 0
        for group, amount in zip(groups, amounts, strict=True):
            if amount > 0:
                given += amount
                if group != producer:
                    return f"tensor {tensor} is given {amount} by an op that does not make it"
                if kind == "made" and not self._windows.outside(group, i - 1):
                    return f"tensor {tensor} may be made in a stage before {i}"
            elif amount < 0:
                taken -= amount
                if group not in readers:
                    return f"{-amount} is taken from tensor {tensor} by an op that does not read it"
                if kind == "read" and not self._windows.inside(group, i):
                    return f"{-amount} is taken from tensor {tensor} by an op that may be in a stage after {i}"
        if given != taken:
            return f"{given} goes into tensor {tensor} and {taken} out of it"
        return None if given <= transfer else f"{given} goes into tensor {tensor}, whose capacity is {transfer}"
