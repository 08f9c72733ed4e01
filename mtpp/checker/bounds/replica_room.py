"""The simple bound of stages on several devices: the room for work that all of them have within a time.

The proof has a price q_c of each class of devices, and a cutoff. Let y(v) be the least q_c · work_c(v) of an op, and
z(t) the least q_c · transfer_c(t) of a tensor. Suppose every stage costs less than the cutoff, at most T. A stage S on
devices R then has Σ T/f_j(S) ≥ 1 over R. On each of them y(S) and z of all tensors that S cuts come to at most
q_j · f_j(S), so that they come to at most T · Σ q_j over R. And y(S) ≤ Σ min(T · q_j, r_j), where no device of the
class of j holds ops with more than r_j of y in its memory, ops taken in part: that is so where T/f_j(S) is at most 1
for all j, and else for that j alone.

At most k devices are used. If all of these, the best ones, come to less than Σ y, there is no plan. A plan of two
stages or more of a graph that hangs together cuts a tensor, which two stages pay for. A plan of one stage costs at
least what the graph does on the k devices that take least for it and hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtpp.checker.bounds.device_room import most_within
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph
from mtpp.checker.stages import shared_cost, stage_figures
from mtpp.document_shape import array, choice, flag, record, text, whole


def check_replica_room(claim: BoundClaim) -> Verdict:
    """Re-check the bound; O(classes · n·log n) on fractions."""
    rules = {"rule": text, "order": choice("fixed", "free"), "cutoff": whole(), "k": whole(1), "replicated": flag}
    record({**rules, "prices": array(whole(1))})(claim.proof, claim.path)
    if claim.proof["k"] != claim.k:
        return False, f"the proof is for k = {claim.proof['k']}, the plan for k = {claim.k}"
    if claim.proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {claim.proof['cutoff']} ticks, the claim is {claim.value}"
    if claim.by_class is None or not claim.proof["replicated"]:
        return False, "the proof is of stages on several devices"
    prices = claim.proof["prices"]
    if len(prices) != len(claim.by_class):
        return (
            False,
            f"there are {counted(len(prices), 'price')} for {counted(len(claim.by_class), 'class')} of devices",
        )
    if claim.value == 0:
        return True, "simple: no bottleneck is below 0 ticks"
    ticks = claim.value - 1
    alone = _in_one_stage(claim)
    if alone is not None and alone <= ticks:
        return False, f"simple: the whole graph on {counted(claim.k, 'device')} costs no more than {ticks} ticks"
    graphs = [graph for graph, _ in claim.by_class]
    rows = zip(*(graph.work for graph in graphs), strict=True)
    measured = [min(q * work for q, work in zip(prices, row, strict=True)) for row in rows]
    total = sum(measured)
    best = sum(sorted((prices[c] for c in claim.class_of), reverse=True)[: claim.k]) * ticks
    cut = _least_cut(graphs, prices)
    devices = counted(min(claim.k, len(claim.class_of)), "device")
    if best < total + cut:
        return (
            True,
            f"simple: within {ticks} ticks, {devices} have room for {best} of {total + cut} of the measure",
        )
    rooms = []
    for price, (graph, system) in zip(prices, claim.by_class, strict=True):
        held = most_within(measured, graph, system)
        rooms.append(min(price * ticks, total if held is None else held))
    room = sum(sorted((rooms[c] for c in claim.class_of), reverse=True)[: claim.k])
    if room < total:
        return True, f"simple: within {ticks} ticks, {devices} have room for {room} of {total} of the measure"
    return False, f"simple: within {ticks} ticks, {devices} may have room for all of the measure"


def _in_one_stage(claim: BoundClaim) -> int | None:
    """Return the cost of the whole graph in one stage on the best devices; None: none holds it."""
    assert claim.by_class is not None
    ticks: list[int | None] = []
    for graph, system in claim.by_class:
        device = {**system, "link_speed": "1"}  # a class's bandwidth is its exact rate
        figures = stage_figures(graph, [0] * graph.op_count, device, [(graph, device)])[0]
        held, limit = figures.param_bytes + figures.state_bytes + figures.peak_bytes, system.get("stage_memory_bytes")
        ticks.append(figures.cost if limit is None or held <= limit else None)
    able = sorted(one for c in claim.class_of if (one := ticks[c]) is not None)[: claim.k]
    return shared_cost(able) if able else None


def _least_cut(graphs: Sequence[TickGraph], prices: Sequence[int]) -> int:
    """Return what two stages pay at least for the tensor that a plan of several stages cuts; 0 if it may cut none."""
    first: Any = graphs[0]
    neighbours: list[list[int]] = [[] for _ in range(first.op_count)]
    for _, maker, reader in first.edges():
        neighbours[maker].append(reader)
        neighbours[reader].append(maker)
    reached, waiting = {0}, [0]
    while waiting:
        for v in neighbours[waiting.pop()]:
            if v not in reached:
                reached.add(v)
                waiting.append(v)
    if len(reached) < first.op_count or first.op_count == 1:
        return 0
    read = [t for t, readers in enumerate(first.consumers) if readers]
    return 2 * min(min(q * graph.transfer[t] for q, graph in zip(prices, graphs, strict=True)) for t in read)
