"""Terms by which stages are scanned: the graph, weights and limits of equal devices, or of each class of devices.

Proofs by scans along an order say that no partition costs less than the cutoff, so at most L = cutoff − 1. With w and C
as in :mod:`mtpp.checker.merged`, any stage S has w(S) + c(S) ≤ L + C then, empty ones too. Where the memory of stages
is limited, the parameters p of its ops are at most M, the limit less the reserve for activations. Hence for any prices
a, b ≥ 0

    (a·w(S) + b·p(S)) + a·c(S) ≤ a·(L + C) + b·M,

by which stages are scanned: weights, transfers and a room. Without prices of its own a proof has a = 1 and b = 0.

Where devices differ, each class of them has its own w, c and C, from its own work, transfers and fast memory. With
transport by neighbours a stage pays for a tensor that it cuts at least once, over the best link that its device has to
any other one: c counts that, as if transport were direct. Merges have to hold on devices of each class, by the rules
for direct transport: then they do not raise the optimum of what is counted, which is no more than the true one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mtpp.checker.bounds.frontier_scan import Frontier
from mtpp.checker.claim import BoundClaim
from mtpp.checker.machine import STAGE_TIMES
from mtpp.checker.merged import WITHOUT_MEMORY, MergedGraph, stage_weights
from mtpp.checker.merges import check_merges
from mtpp.document_shape import Rule, array, flag, items, record, whole


def check_scan_proof(claim: BoundClaim, required: dict[str, Rule], on_devices: dict[str, Rule]) -> None:
    """Take a proof by scans, with keys of its own, which may be others on devices that differ.

    Raises
    ------
    InputError
        If it has another shape.
    """
    terms = {"cutoff": whole(1), "stages": whole(1), "scan": array(whole()), "forgotten": array(whole())}
    optional = {"merges": check_merges, "prices": array(items(whole(), whole()))}
    own = {"streamed": flag, **required} if claim.by_class is None else {"streamed": array(flag), **on_devices}
    record({**terms, **own}, optional)(claim.proof, claim.path)


class ScanTerms(NamedTuple):
    """What a scan of a stage on a device goes by.

    Attributes
    ----------
    weight
        Of each group, by the prices.
    room
        The most that a stage costs by them.
    limits
        What holds of any stage: its sum of some amounts of the groups, and the most that this is. They are the ticks of
        work, and where memory is limited the parameters.
    """

    graph: MergedGraph
    weight: list[int]
    room: int
    frontier: Frontier
    limits: list[tuple[list[int], int]]


@dataclass(frozen=True)
class ScanDevices:
    """Devices of the stages of a claim.

    Attributes
    ----------
    classes
        Of equal devices a single one.
    class_of
        Class of each device, in the order of the list; of k equal ones, k times the first.
    """

    claim: BoundClaim
    classes: Sequence[ScanTerms]
    class_of: Sequence[int]

    @classmethod
    def of(cls, claim: BoundClaim, stages: int) -> ScanDevices | str:
        """Return the devices with the merges, order and forgotten tensors of a proof, or what is wrong with these.

        Parameters
        ----------
        stages
            That the proof has to be for.
        """
        proof = claim.proof
        if proof["stages"] != stages:
            return f"the proof is for {proof['stages']} stages, the claim for {stages}"
        if proof["cutoff"] != claim.value:
            return f"the proof's cutoff is {proof['cutoff']} ticks, the claim's {claim.value}"
        if claim.by_class is None:
            rows, flags, class_of = [claim], [proof["streamed"]], [0] * claim.k
        else:
            if any(STAGE_TIMES in system for _, system in claim.by_class):
                return "stages whose time is given by their number of ops are not scanned"
            rows = [claim.on_class(c) for c in range(len(claim.by_class))]
            flags, class_of = proof["streamed"], list(claim.class_of)
            if len(flags) != len(rows):
                return "the proof does not say of each class of devices whether parameters are streamed"
        prices = proof.get("prices", [[1, 0]] * len(rows))
        if len(prices) != len(rows):
            return "there are not prices for each class of devices"
        classes = []
        for row, streamed, (per_tick, per_byte) in zip(rows, flags, prices, strict=True):
            graph = row.merged()
            terms = graph if isinstance(graph, str) else _priced(row, graph, per_tick, per_byte, streamed=streamed)
            if isinstance(terms, str):
                return terms
            classes.append(terms)
        return cls(claim, classes, class_of)

    @classmethod
    def of_merged(cls, claim: BoundClaim, graph: MergedGraph) -> ScanDevices | str:
        """Return k equal devices with the order and forgotten tensors of a proof, on a graph that is merged already."""
        terms = _priced(claim, graph, 1, 0, streamed=claim.proof["streamed"])
        return terms if isinstance(terms, str) else cls(claim, [terms], [0] * claim.k)

    @property
    def graph(self) -> MergedGraph:
        """The graph as merged, with the ticks of the first class: ops and edges are the same for all."""
        return self.classes[0].graph

    def groups_of(self, ops: Sequence[int], twice: str) -> list[int] | str:
        """Return the groups of some ops, or what is wrong: there is no such op, or a group is there *twice*."""
        return _groups_of(self.claim, self.graph, ops, twice)


def _priced(claim: BoundClaim, graph: MergedGraph, per_tick: int, per_byte: int, *, streamed: bool) -> ScanTerms | str:
    """Return the terms of a claim on equal devices, given their graph as merged, or what is wrong with them."""
    weights = stage_weights(graph, claim.system, streamed=streamed)
    if weights is None:
        return WITHOUT_MEMORY
    ticks, constant = weights
    limits = [(ticks, claim.value - 1 + constant)]
    memory = claim.system.get("stage_memory_bytes")
    if memory is not None:
        reserve = claim.system["activation_reserve_bytes"] if claim.system["peak"] == "reserve" else 0
        limits.append((graph.param_bytes, max(0, memory - reserve)))
    elif per_byte:
        return "memory without a limit has a price"
    rows = list(zip((per_tick, per_byte), limits, strict=False))
    room = sum(price * most for price, (_, most) in rows)
    weight = [sum(price * amounts[group] for price, (amounts, _) in rows) for group in range(len(ticks))]
    tensors = [(per_tick * transfer, producer, readers) for transfer, producer, readers in graph.tensors]
    priced = replace(graph, tensors=tensors)
    frontier = _frontier_of(claim, priced, weight)
    return frontier if isinstance(frontier, str) else ScanTerms(priced, weight, room, frontier, limits)


def _frontier_of(claim: BoundClaim, graph: MergedGraph, weight: Sequence[int]) -> Frontier | str:
    """Return the ops in the order of a proof, without the tensors that it forgets, or what is wrong with either."""
    order = _groups_of(claim, graph, claim.proof["scan"], "is in the order twice")
    if isinstance(order, str):
        return order
    place = {group: i for i, group in enumerate(order)}
    missing = next((group for group in range(len(weight)) if group not in place), None)
    if missing is not None:
        return f"{claim.name(graph, missing)} is not in the order"
    for _, producer, readers in graph.tensors:
        early = next((reader for reader in readers if place[reader] < place[producer]), None)
        if early is not None:
            return f"{claim.name(graph, early)} comes in the order before one that it reads from"
    forgotten = set(claim.proof["forgotten"])
    tensor = max(forgotten, default=-1)
    if tensor >= len(graph.tensors):
        return f"there is no tensor {tensor} between ops"
    if len(forgotten) < len(claim.proof["forgotten"]):
        return "a tensor is forgotten twice"
    return Frontier(graph, weight, order, forgotten)


def _groups_of(claim: BoundClaim, graph: MergedGraph, ops: Sequence[int], twice: str) -> list[int] | str:
    groups: dict[int, None] = {}
    for op in ops:
        if op >= len(graph.group_of):
            return f"there is no op {op}"
        group = graph.group_of[op]
        if group in groups:
            return f"{claim.name(graph, group)} {twice}"
        groups[group] = None
    return list(groups)
