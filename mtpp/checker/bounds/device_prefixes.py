"""The prefix bound of devices that differ: sets of devices that cannot come first, so that no pipeline is left.

The proof names a cutoff. Suppose every stage costs less, at most T. Let A be the devices of the stages before some
point, and D the ops on them: with an op, D has all that it reads from. A cut names a class of devices, whose work y is
the measure. Let r(d) be the largest y(v) / work(v) of any op on device d. A stage S there takes
y(S) ≤ r·work(S) ≤ r·(T − transfers), and a tensor that it makes for others, or reads from others, takes o(t) or more
of it: the least of ⌊r·transfer⌋ on any class. A tensor from D to ops outside is made by a stage of A, and read by one
of the others. So, with o(D) the sum over these tensors, and outside D being all other ops,

    y(D) + o(D) ≤ Σ_{d ∈ A} ⌊T·r(d)⌋,   y(outside D) + o(D) ≤ Σ_{d ∉ A} ⌊T·r(d)⌋.                          (1)

**Knapsacks.** A knapsack names a measure, a side, ``first`` (D) or ``last`` (outside D), and a need N: it shows how
much y + o a side has with parameters p ≥ N. Its first case is of all D. A case ``[op, i, j]`` is split: D has the op,
and all that leads to it (case i), or it has not, nor anything that the op leads to (case j). Any other has numbers
q ≥ 1 and b ≥ 0, and a flow: the maker of a tensor gives into it, at most q·o(t), and its readers take as much out; an
op may give any amount to an op that it reads from. Let a(u) be what op u gets less what it gives. All that leaves D
on balance goes through tensors from D to others, so −Σ_{u ∈ D} a(u) ≤ q·o(D). For side ``first``, with
c(u) = q·y(u) − b·p(u),

    q·(y(D) + o(D)) − b·p(D) = Σ_D c(u) + q·o(D) ≥ Σ_D (c(u) − a(u)) = v or more,

v being the sum over ops that are in D for certain, and of min(0, c(u) − a(u)) over those that may be. For side ``last``

    q·(y(outside) + o(D)) − b·p(outside) = Σ_u c(u) − Σ_D c(u) + q·o(D) ≥ Σ_u c(u) + Σ_D (−c(u) − a(u)),

and so on. So y + o ≥ (b·N + v) / q, in the worst of the cases.

A set A of devices cannot come first if a side needs N or more, for the memories of the other one hold no more than the
rest, and (1) does not leave it so much room. Every pipeline passes from no devices to all by one device after the
other. If each way meets a set that cannot come first, the cutoff is proven.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.flows import check_drawn, check_flow
from mtpp.checker.graph import TickGraph, ceil_div
from mtpp.document_shape import Path, array, choice, record, refuse, text, whole

_MOST_SETS = 100_000

_NEVER = 2**200
"""More than there is room for: no side has the parameters that it needs."""

_CUT = {"work": whole(1), "bytes": whole(), "flow": check_flow, "drawn": check_drawn}

Knapsack = tuple[dict[str, Any], int]
"""As the proof has it, and y + o of a side with that need."""


def check_device_prefixes(claim: BoundClaim) -> Verdict:
    """Re-check the bound; O(n + pins) for each case, and O(knapsacks · classes) for each set of devices."""
    terms = {"rule": text, "order": choice("fixed", "free"), "cutoff": whole(), "k": whole(1)}
    record({**terms, "knapsacks": array(_check_knapsack)})(claim.proof, claim.path)
    proof = claim.proof
    if claim.by_class is None:
        return False, "crossings: this rule is for devices that differ"
    if claim.pairs is not None or any("stage_times_ps" in system for _, system in claim.by_class):
        return False, "crossings: this rule is for direct transport, and for work of ops"
    if proof["k"] != claim.k:
        return False, f"crossings: the proof is for k = {proof['k']}, the plan for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return False, f"crossings: the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    devices = _Devices(claim, free=proof["order"] == "free")
    if devices.sets > _MOST_SETS:
        return False, f"crossings: more than {_MOST_SETS} sets of devices are not checked"
    knapsacks: list[Knapsack] = []
    for number, one in enumerate(proof["knapsacks"]):
        if one["measure"] >= len(claim.by_class):
            return False, f"crossings: knapsack {number}: there is no class {one['measure']} of devices"
        amount = devices.amount(one)
        if isinstance(amount, str):
            return False, f"crossings: knapsack {number}: {amount}"
        knapsacks.append((one, amount))
    if devices.leaves_a_way(knapsacks, claim.value - 1):
        return False, "crossings: some order of the devices is left"
    count = sum(len(one["cases"]) for one, _ in knapsacks)
    return True, f"crossings: {counted(count, 'case')} leave no devices to come first within {claim.value - 1} ticks"


def _check_knapsack(value: Any, path: Path) -> None:
    rules = {"measure": whole(), "side": choice("first", "last"), "need": whole(), "cases": array(_check_case)}
    record(rules)(value, path)
    if not value["cases"]:
        refuse("a knapsack needs a case", (*path, "cases"))
    for i, case in enumerate(value["cases"]):
        if isinstance(case, list):
            for j in (1, 2):
                if not i < case[j] < len(value["cases"]):
                    refuse("a case is split into cases that come after it", (*path, "cases", i, j))


def _check_case(value: Any, path: Path) -> None:
    if not isinstance(value, list):
        record(_CUT)(value, path)
        return
    if len(value) != 3:
        refuse("a case is split by an op into two cases", path)
    for j, number in enumerate(value):
        whole()(number, (*path, j))


class _Devices:
    """Devices by class, with what they have room for."""

    def __init__(self, claim: BoundClaim, *, free: bool) -> None:
        assert claim.by_class is not None
        self._graphs: list[TickGraph] = [graph for graph, _ in claim.by_class]
        self._free = free
        self._class_of = list(claim.class_of)
        self._counts = [self._class_of.count(c) for c in range(len(self._graphs))]
        self._memory: list[int | None] = []
        for _, system in claim.by_class:
            size = system.get("stage_memory_bytes")
            reserve = system["activation_reserve_bytes"] if system["peak"] == "reserve" else 0
            self._memory.append(None if size is None else size - reserve)
        self._params = self._graphs[0].param_bytes
        self._before: list[set[int]] = [set() for _ in self._params]
        self._after: list[set[int]] = [set() for _ in self._params]
        for _, maker, reader in self._graphs[0].edges():
            self._before[reader].add(maker)
            self._after[maker].add(reader)
        self._rates = [[_rate(one.work, other.work) for other in self._graphs] for one in self._graphs]
        self._owed = [
            [self._least_loss(c, t) for t in range(len(self._graphs[0].producer))] for c in range(len(self._graphs))
        ]

    @property
    def sets(self) -> int:
        """How many sets of devices may come first."""
        number = 1
        for count in self._counts if self._free else [len(self._class_of)]:
            number *= count + 1
        return number

    def _least_loss(self, c: int, t: int) -> int:
        losses = [
            int(graph.transfer[t] * rate)
            for graph, rate in zip(self._graphs, self._rates[c], strict=True)
            if rate is not None
        ]
        return min(losses, default=0)

    def amount(self, knapsack: dict[str, Any]) -> int | str:
        """Return what y + o of a side comes to at least if it has the parameters that it needs, or what is wrong."""
        cases, amounts = knapsack["cases"], []
        waiting: list[tuple[int, frozenset[int], frozenset[int]]] = [(0, frozenset(), frozenset())]
        while waiting:
            number, inside, outside = waiting.pop()
            case = cases[number]
            if isinstance(case, list):
                op, with_it, without = case
                if op >= len(self._params):
                    return f"there is no op {op}"
                waiting.append((with_it, inside | self._reached(op, self._before), outside))
                waiting.append((without, inside, outside | self._reached(op, self._after)))
                if len(waiting) > len(cases):
                    return "a case is reached in several ways"
            elif not inside & outside:
                value = self._value(knapsack, case, inside, outside)
                if isinstance(value, str):
                    return f"case {number}: {value}"
                amounts.append(ceil_div(case["bytes"] * knapsack["need"] + value, case["work"]))
        return min(amounts, default=_NEVER)

    @staticmethod
    def _reached(op: int, neighbours: Sequence[Collection[int]]) -> frozenset[int]:
        found, queue = {op}, [op]
        for here in queue:  # grows on the way
            new = [other for other in neighbours[here] if other not in found]
            found.update(new)
            queue += new
        return frozenset(found)

    def _value(
        self, knapsack: dict[str, Any], case: dict[str, Any], inside: frozenset[int], outside: frozenset[int]
    ) -> int | str:
        """Return v of a case, or what is wrong with its flow."""
        got = self._absorbed(case, self._owed[knapsack["measure"]])
        if isinstance(got, str):
            return got
        first = knapsack["side"] == "first"
        value = 0
        for u, (y, p) in enumerate(zip(self._graphs[knapsack["measure"]].work, self._params, strict=True)):
            price = case["work"] * y - case["bytes"] * p
            own = (price if first else -price) - got[u]
            value += 0 if first else price
            if u in inside:
                value += own
            elif u not in outside:
                value += min(0, own)
        return value

    def _absorbed(self, cut: dict[str, Any], owed: Sequence[int]) -> defaultdict[int, int] | str:
        graph = self._graphs[0]
        got: defaultdict[int, int] = defaultdict(int)
        seen: set[int] = set()
        for tensor, *moves in cut["flow"]:
            if tensor >= len(owed) or tensor in seen:
                return f"tensor {tensor} is none, or has two rows"
            seen.add(tensor)
            given = balance = 0
            for op, amount in zip(moves[::2], moves[1::2], strict=True):
                gives, readers = amount > 0, graph.consumers[tensor]
                if (gives and op != graph.producer[tensor]) or (amount < 0 and op not in readers):
                    return f"op {op} does not {'make' if gives else 'read'} tensor {tensor}"
                got[op] -= amount
                balance += amount
                given += max(0, amount)
            if balance or given > cut["work"] * owed[tensor]:
                return f"what goes into tensor {tensor} does not come out of it, or is too much"
        for op, other, amount in cut["drawn"]:
            if op >= len(self._before) or other not in self._before[op]:
                return f"op {op} does not read from op {other}"
            got[op] -= amount
            got[other] += amount
        return got

    def leaves_a_way(self, knapsacks: Sequence[Knapsack], ticks: int) -> bool:
        """Tell whether some way from no devices to all meets no set that cannot come first within so many ticks."""
        open_sets: set[tuple[int, ...]] = set()
        whole = tuple(self._counts) if self._free else (len(self._class_of),)
        for counts in product(*(range(count + 1) for count in whole)):
            reached = not any(counts) or any(before in open_sets for before in _one_less(counts))
            if reached and not self._refuted(counts, knapsacks, ticks):
                open_sets.add(counts)
        return whole in open_sets

    def _refuted(self, counts: tuple[int, ...], knapsacks: Sequence[Knapsack], ticks: int) -> bool:
        if not self._free:
            leading = self._class_of[: counts[0]]
            counts = tuple(leading.count(c) for c in range(len(self._counts)))
        rest = tuple(all_ - one for all_, one in zip(self._counts, counts, strict=True))
        for one, amount in knapsacks:
            own, other = (counts, rest) if one["side"] == "first" else (rest, counts)
            held = self._held(other)
            need = 0 if held is None else max(0, sum(self._params) - held)
            room = self._room(one["measure"], own, ticks)
            if need >= one["need"] and room is not None and room < amount:
                return True
        return False

    def _held(self, counts: Sequence[int]) -> int | None:
        total = 0
        for count, size in zip(counts, self._memory, strict=True):
            if count and size is None:
                return None
            total += count * (size or 0)
        return total

    def _room(self, measure: int, counts: Sequence[int], ticks: int) -> int | None:
        total = 0
        for count, rate in zip(counts, self._rates[measure], strict=True):
            if count and rate is None:
                return None
            total += count * int(ticks * (rate or 0))
        return total


def _rate(measured: Sequence[int], work: Sequence[int]) -> Fraction | None:
    """Return the largest y(v) / work(v) of any op; None: no limit, for an op takes no time."""
    if any(y > 0 and w == 0 for y, w in zip(measured, work, strict=True)):
        return None
    return max((Fraction(y, w) for y, w in zip(measured, work, strict=True) if w > 0), default=Fraction(0))


def _one_less(counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for i, count in enumerate(counts):
        if count:
            yield (*counts[:i], count - 1, *counts[i + 1 :])
