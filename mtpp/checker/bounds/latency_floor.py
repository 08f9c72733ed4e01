"""The simple bound on latency: every op on the device that takes least for it, at prices of bytes and ticks.

Whole numbers p_c, r_c ≥ 0 stand for 2^−20 of themselves. Each op has one device, of some class c, which takes w_c(v) of
the latency for it at least. The ops of a device fit into its memory, without its reserve, where that is limited; and
where the bottleneck is, they take at most that long. So Σ_v min_c ((2^20 + r_c) · w_c(v) + p_c · bytes(v)), less all
that the devices have room for at these prices, is at most 2^20 times the latency.
"""

from __future__ import annotations

from typing import Any

from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.downset import fault_in_goal
from mtpp.document_shape import array, choice, nullable, record, whole

_SCALE = 2**20


def check_latency_floor(claim: BoundClaim, method: str) -> Verdict:
    """Re-check the bound; O(classes · n)."""
    proof = claim.proof
    if method != "simple":
        return False, f"no checker of latencies for method {method[:60]!r}"
    record(
        {
            "rule": choice("latency-prices"),
            "order": choice("fixed", "free"),
            "objective": choice("latency"),
            "limit": nullable(whole()),
            "cutoff": whole(),
            "k": whole(1),
            "per_byte": array(whole()),
            "per_tick": array(whole()),
        }
    )(proof, claim.path)
    assert claim.by_class is not None
    fault = fault_in_goal(claim)
    if fault is not None:
        return False, f"simple: {fault}"
    if proof["k"] != claim.k:
        return False, f"the proof is for k = {proof['k']}, the plan for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return False, f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    classes = range(len(claim.by_class))
    per_byte, per_tick = proof["per_byte"], proof["per_tick"]
    if len(per_byte) != len(classes) or len(per_tick) != len(classes):
        return False, "there is not one price for each class of devices"
    paid = 0
    rows = [graph.work for graph, _ in claim.by_class]
    for v, size in enumerate(claim.graph.param_bytes):
        paid += min((_SCALE + per_tick[c]) * rows[c][v] + per_byte[c] * size for c in classes)
    for c in classes:
        room = _room(claim.by_class[c][1])
        if per_byte[c] and room is None:
            return False, f"there is a price of the memory of class {c}, which has no limit"
        if per_tick[c] and proof["limit"] is None:
            return False, "there is a price of time, and the bottleneck has no limit"
        count = list(claim.class_of).count(c)
        paid -= count * (per_tick[c] * (proof["limit"] or 0) + per_byte[c] * (room or 0))
    value = max(0, -(-paid // _SCALE))
    if value < claim.value:
        return False, f"simple: the proof's prices come to {value} ticks, the claim is {claim.value}"
    return True, f"simple: all ops take at least {claim.value} ticks, wherever they stand"


def _room(system: dict[str, Any]) -> int | None:
    """Return the bytes of parameters that a device holds at most; None: any."""
    limit: int | None = system.get("stage_memory_bytes")
    if limit is None:
        return None
    return limit - (system["activation_reserve_bytes"] if system["peak"] == "reserve" else 0)
