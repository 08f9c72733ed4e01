"""The bound of a chain on devices whose stages take the time of so many ops: prices, and the labels that they leave.

Suppose every stage costs less than the cutoff. A *label* of a position in the chain says which devices suffice for the
ops before it: in free order how many of each class; in fixed order how many leading devices of the list, and how many
of those are used where that is limited. Of the labels of a position only those count that no other one makes needless
by being no larger in any number. Every plan passes through such labels, so that there is none if the end has no label.

In free order the proof has prices q_c of a device of each class, and a price q that each device pays besides. The
devices of a plan cost at most Σ q_c · count_c + q · k. So a label matters only where its devices and the cheapest
stages for the rest of the chain, whatever devices are left, cost no more than that. Often that leaves no label at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from typing import Any

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.graph import TICKS_PER_S, TickGraph
from mtpp.checker.machine import overflow_ticks
from mtpp.document_shape import choice, mapping, record, whole
from mtpp.document_shape import sha256 as sha256_rule

Label = tuple[int, ...]


def check_chain(claim: BoundClaim) -> Verdict:
    """Re-check the bound; O(labels · stages that may begin at a position), labels being at most as many as stated."""
    proof = claim.proof
    rules = {
        "cutoff": whole(),
        "k": whole(1),
        "order": choice("fixed", "free"),
        "labels": whole(),
        "digest": sha256_rule,
    }
    free = proof.get("order") == "free"
    record(rules | ({"prices": mapping(whole()), "price_of_any": whole()} if free else {}))(proof, claim.path)
    if proof["k"] != claim.k:
        return False, f"the proof is for k = {proof['k']}, the claim for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    assert claim.by_class is not None
    names = [system["name"] for _, system in claim.by_class]
    if free and set(proof["prices"]) != set(names):
        return False, f"the prices are not of the classes of devices: {', '.join(names)}"
    devices = ChainDevices.of(claim)
    prices = [proof["prices"][name] for name in names] if free else None
    found = _labels(devices, prices, proof["price_of_any"] if free else 0, proof["labels"])
    if isinstance(found, str):
        return False, found
    count, digest = sum(map(len, found)), _digest(found)
    for what, mine in (("labels", count), ("digest", digest)):
        if mine != proof[what]:
            return False, f"the labels come to {what} {mine}, the proof says {proof[what]}"
    among = "in any order" if free else "in order"
    devices_said = f"{counted(min(claim.k, len(claim.class_of)), 'device')} {among}"
    left = "prices leave no label" if free and not count else f"{counted(count, 'label')}, as the proof says"
    return True, f"no plan on {devices_said} stays below {claim.value} ticks: {left}"


@dataclass(frozen=True)
class ChainDevices:
    """A chain, and devices on which its stages may cost less than so many ticks.

    Attributes
    ----------
    cost
        By class of devices: f(begin, end) of the ops between two positions of the chain; None: impossible.
    class_of
        Class of each device of the list.
    most
        Devices that may be used.
    """

    ops: int
    longest: int
    cost: Sequence[Callable[[int, int], int | None]]
    class_of: Sequence[int]
    most: int
    cutoff: int

    @classmethod
    def of(cls, claim: BoundClaim) -> ChainDevices:
        """Return the devices of a claim, whose graph is one chain."""
        assert claim.by_class is not None
        ops = claim.graph.op_count
        costs = [_range_cost(graph, system) for graph, system in claim.by_class]
        longest = max(min(ops, len(system.get("stage_times_ps", range(ops)))) for _, system in claim.by_class)
        return cls(ops, longest, costs, claim.class_of, claim.k, claim.value)

    @cached_property
    def ending(self) -> list[list[tuple[int, list[int]]]]:
        """By position: where stages below the cutoff that end there may begin, with the classes that suffice."""
        found: list[list[tuple[int, list[int]]]] = [[] for _ in range(self.ops + 1)]
        for end in range(1, self.ops + 1):
            for begin in range(max(0, end - self.longest), end):
                ticks = [cost(begin, end) for cost in self.cost]
                classes = [c for c, paid in enumerate(ticks) if paid is not None and paid < self.cutoff]
                if classes:
                    found[end].append((begin, classes))
        return found

    def cheapest(self, prices: Sequence[int]) -> list[int | None]:
        """Return the price of the cheapest stages from each position to the end; None where there are none."""
        rest: list[int | None] = [None] * self.ops + [0]
        for end in range(self.ops, 0, -1):
            after = rest[end]
            if after is None:
                continue
            for begin, classes in self.ending[end]:
                price = after + min(prices[c] for c in classes)
                known = rest[begin]
                rest[begin] = price if known is None else min(known, price)
        return rest


def _range_cost(graph: TickGraph, system: Mapping[str, Any]) -> Callable[[int, int], int | None]:
    """Return f(begin, end) of the ops between two positions of a chain on a device."""
    at = {v: i for i, v in enumerate(graph.order)}
    own = [0, *accumulate(graph.own_bytes[v] for v in graph.order)]
    work = [0, *accumulate(graph.work[v] for v in graph.order)]
    passing = [0] * (graph.op_count + 1)
    for t, maker in enumerate(graph.producer):
        if graph.consumers[t]:
            passing[at[maker] + 1] += graph.transfer[t]
    weights = [(size, [at[v] for v in readers]) for _, size, readers in graph.weights]
    states = [(size * system.get("sequences", 1), [at[v] for v in readers]) for _, size, readers in graph.states]
    times, limit = system.get("stage_times_ps"), system["stage_memory_bytes"]
    reserve, fast = system["activation_reserve_bytes"], system["fast_memory_bytes"]

    def read(shared: Iterable[tuple[int, list[int]]], begin: int, end: int) -> int:
        return sum(size for size, readers in shared if any(begin <= i < end for i in readers))

    def cost(begin: int, end: int) -> int | None:
        if times is not None and end - begin > len(times):
            return None
        held = 0 if limit is None and fast is None else own[end] - own[begin] + read(weights, begin, end) + reserve
        if limit is not None and held + read(states, begin, end) > limit:
            return None
        if times is not None:
            ticks: int = times[end - begin - 1]
            return ticks
        over = 0 if fast is None else overflow_ticks(max(0, held - fast), system, TICKS_PER_S)
        return work[end] - work[begin] + passing[begin] + (passing[end] if end < len(at) else 0) + over

    return cost


def _labels(
    devices: ChainDevices, prices: Sequence[int] | None, price_of_any: int, stated: int
) -> list[list[Label]] | str:
    """Return the labels of each position, or what is wrong: there is a plan, or there are more labels than stated."""
    class_of, most = devices.class_of, devices.most
    classes = len(devices.cost)
    counts = [list(class_of).count(c) for c in range(classes)]
    if prices is None:
        first: Label = (0, 0) if most < len(class_of) else (0,)

        def matters(label: Label, position: int) -> bool:
            return len(label) == 1 or label[1] <= most

        def after(label: Label, c: int) -> Label | None:
            lead = next((i for i in range(label[0], len(class_of)) if class_of[i] == c), None)
            return None if lead is None else (lead + 1, *(used + 1 for used in label[1:]))

    else:
        first = (0,) * classes
        each = [price + price_of_any for price in prices]
        budget = price_of_any * most + sum(q * count for q, count in zip(prices, counts, strict=True))
        rest = devices.cheapest(each)

        def matters(label: Label, position: int) -> bool:
            left = rest[position]
            if left is None or sum(label) > most or any(a > b for a, b in zip(label, counts, strict=True)):
                return False
            return left + sum(q * used for q, used in zip(each, label, strict=True)) <= budget

        def after(label: Label, c: int) -> Label | None:
            return tuple(used + (i == c) for i, used in enumerate(label))

    labels = [[first] if matters(first, 0) else []]
    count = len(labels[0])
    for end in range(1, devices.ops + 1):
        reached = {
            new
            for begin, allowed in devices.ending[end]
            for label in labels[begin]
            for c in allowed
            if (new := after(label, c)) is not None and matters(new, end)
        }
        if end == devices.ops and reached:
            return f"there is a plan below {devices.cutoff} ticks"
        labels.append(_least(reached))
        count += len(labels[-1])
        if count > stated:
            return f"there are more than the {stated} labels that the proof says"
    return labels


def _least(labels: Iterable[Label]) -> list[Label]:
    """Return the labels that no other one makes needless."""
    kept: list[Label] = []
    for label in sorted(labels, key=sum):
        if not any(all(a <= b for a, b in zip(one, label, strict=True)) for one in kept):
            kept.append(label)
    return kept


def _digest(labels: Sequence[Sequence[Label]]) -> str:
    """Return the SHA-256 of all labels, sorted as bytes: position and numbers, in 4 bytes each."""
    rows = [(position, *label) for position, front in enumerate(labels) for label in front]
    return sha256(b"".join(sorted(b"".join(number.to_bytes(4, "big") for number in row) for row in rows))).hexdigest()
