"""The simple bound of devices that differ: the room for work that all of them have within a time.

The proof names a class of devices, whose work y(v) is the measure, and a cutoff. Suppose every stage costs less than
the cutoff, at most T. The stage S of a device with work w then has w(S) ≤ T, so y(S) ≤ T · max y(v)/w(v), a whole
number. If the device has a memory limit, the parameters of S fit into what its reserve leaves, so that y(S) is at most
the optimum of the knapsack whose ops may be taken in part. At most k devices are used, each for one stage, and the
stages hold all y: where the k largest of these numbers come to less, there is no such partition.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph
from mtpp.document_shape import choice, record, text, whole


def check_device_room(claim: BoundClaim) -> Verdict:
    """Re-check the bound; O(classes · n·log n) on fractions."""
    rules = {"rule": text, "order": choice("fixed", "free"), "cutoff": whole(), "k": whole(1), "measure": whole()}
    record(rules)(claim.proof, claim.path)
    if claim.proof["k"] != claim.k:
        return False, f"the proof is for k = {claim.proof['k']}, the plan for k = {claim.k}"
    if claim.proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {claim.proof['cutoff']} ticks, the claim is {claim.value}"
    by_class = [(claim.graph, claim.system)] if claim.by_class is None else list(claim.by_class)
    class_of = [0] * claim.k if claim.by_class is None else list(claim.class_of)
    if claim.proof["measure"] >= len(by_class):
        return False, f"there is no class {claim.proof['measure']} of devices"
    if claim.value == 0:
        return True, "simple: no bottleneck is below 0 ticks"
    measured = by_class[claim.proof["measure"]][0].work
    rooms = [_room(measured, graph, system, claim.value - 1) for graph, system in by_class]
    total, best = sum(measured), sorted((rooms[c] for c in class_of), reverse=True)[: claim.k]
    devices = counted(len(best), "device")
    if sum(best) >= total:
        return False, f"simple: within {claim.value - 1} ticks, {devices} may hold all {total} ticks of work"
    return True, f"simple: within {claim.value - 1} ticks, {devices} hold at most {sum(best)} of {total} ticks of work"


def _room(measured: list[int], graph: TickGraph, system: dict[str, Any], ticks: int) -> int:
    """Return the most of the measure that a stage of at most so many ticks has on a device."""
    room = sum(measured)
    if all(own > 0 for y, own in zip(measured, graph.work, strict=True) if y > 0):
        y_most, own_least = 0, 1
        for y, own in zip(measured, graph.work, strict=True):
            if y * own_least > y_most * own:
                y_most, own_least = y, own
        room = min(room, ticks * y_most // own_least)
    held = most_within(measured, graph, system)
    return room if held is None else min(room, held)


def most_within(measured: list[int], graph: TickGraph, system: dict[str, Any]) -> int | None:
    """Return the most of the measure that a device has memory for, its ops taken in part; None: no limit."""
    left = system.get("stage_memory_bytes")
    if left is None:
        return None
    if system["peak"] == "reserve":
        left -= system["activation_reserve_bytes"]
    return _knapsack(measured, graph.param_bytes, left)


def _knapsack(measured: list[int], sizes: list[int], left: int) -> int:
    """Return the most of the measure that fits into *left* bytes if ops may be taken in part, rounded down."""
    held = sum(y for y, size in zip(measured, sizes, strict=True) if size == 0)
    rows = [(Fraction(y, size), y, size) for y, size in zip(measured, sizes, strict=True) if size > 0]
    for share, y, size in sorted(rows, reverse=True):
        if size > left:
            return held + int(share * left)
        held, left = held + y, left - size
    return held
