"""The simple lower bound: the largest op, the average work of a stage, or the room of devices that differ."""

from __future__ import annotations

from mtpp.checker.bounds.device_room import check_device_room
from mtpp.checker.bounds.replica_room import check_replica_room
from mtpp.checker.claim import BoundClaim, Verdict, together_classes
from mtpp.checker.facts import counted
from mtpp.checker.graph import ceil_div
from mtpp.document_shape import array, record, text, whole


def check_simple(claim: BoundClaim) -> Verdict:
    """Re-check the simple bound: the most expensive op or group, or the average work of a stage.

    Notes
    -----
    Archer et al. (2024), Lemma 3.3. O(n), or O(n + pins) for several ops that must share a stage.
    """
    rule = claim.key("rule")
    text(rule, (*claim.path, "rule"))
    if rule == "largest-op":
        return _check_largest_op(claim)
    if rule == "average-work":
        return _check_average_work(claim)
    if rule == "device-room":
        return check_device_room(claim)
    if rule == "replica-room":
        return check_replica_room(claim)
    return False, f"no such rule: {rule[:60]!r}"


def _check_largest_op(claim: BoundClaim) -> Verdict:
    record({"rule": text, "ops": array(text), "work": whole()})(claim.proof, claim.path)
    names, stated = claim.proof["ops"], claim.proof["work"]
    number = {name: v for v, name in enumerate(claim.graph.op_names)}
    unknown = next((name for name in names if name not in number), None)
    if unknown is not None:
        return False, f"the graph has no op {unknown!r}"
    ops = {number[name] for name in names}
    if not ops or len(ops) < len(names):
        return False, "the proof lists no op" if not ops else "the proof lists an op twice"
    if len(ops) > 1:
        classes = together_classes(claim.graph, claim.together)
        apart = next((name for name in names if classes[number[name]] != classes[number[names[0]]]), None)
        if apart is not None:
            return False, f"nothing makes ops {names[0]!r} and {apart!r} share a stage"
    work = sum(claim.graph.work[v] for v in ops)
    if work != stated:
        return False, f"the work of the proof's ops is {work} ticks, not {stated}"
    if work != claim.value:
        return False, f"the proof gives {work} ticks, the plan says {claim.value}"
    what = f"op {names[0]!r} alone" if len(ops) == 1 else f"{len(ops)} ops that must share a stage"
    return True, f"simple: {what} takes {work} ticks"


def _check_average_work(claim: BoundClaim) -> Verdict:
    record({"rule": text, "total_work": whole(), "k": whole(1)})(claim.proof, claim.path)
    if claim.proof["k"] != claim.k:
        return False, f"the proof is for k = {claim.proof['k']}, the plan for k = {claim.k}"
    total = sum(claim.graph.work)
    if total != claim.proof["total_work"]:
        return False, f"the total work is {total} ticks, not {claim.proof['total_work']}"
    average = ceil_div(total, claim.k)
    if average != claim.value:
        return False, f"the proof gives {average} ticks, the plan says {claim.value}"
    return True, f"simple: {total} ticks of work in {counted(claim.k, 'stage')} leave {average} ticks for one of them"
