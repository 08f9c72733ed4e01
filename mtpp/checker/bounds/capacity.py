"""The capacity bound: the most work that stages on all devices together have within a time.

The proof names a cutoff, a measure y(v) ≥ 0 of the ops, the work on devices of one class or the least of all classes,
and for each class c a room u_c. It claims of every convex set S of ops with y(S) > u_c that a device of class c cannot
run it as a stage below the cutoff: it takes too long, or needs too much memory. At most k devices have a stage each, a
stage is convex, and all y is in the stages. So no partition stays below the cutoff if the k largest rooms of devices
come to less than Σ y.

The sum is checked here. The claim on sets is not one that a formula decides: the search behind it is run again.
"""

from __future__ import annotations

from mtpp.checker.claim import BoundClaim
from mtpp.checker.facts import counted
from mtpp.checker.report import SHALLOW, Outcome, Search
from mtpp.document_shape import array, choice, nullable, record, whole

METHOD = "capacity"

COUNTED = ("both", "time", "bytes")
"""What the search holds a set of a class to: its time and memory, or one of them alone, which more sets keep to."""

_SHAPE = record(
    {
        "cutoff": whole(),
        "k": whole(1),
        "order": choice("fixed", "free"),
        "measure": nullable(whole()),
        "rooms": array(whole()),
        "counted": array(choice(*COUNTED)),
        "forgotten": array(whole()),
    }
)


def check_capacity(claim: BoundClaim, search: Search | None) -> Outcome:
    """Check the bound: the sum of the rooms, and by *search* each of them; without it that stays open.

    Parameters
    ----------
    search
        Is given the claim, whose measure is that of :func:`measure_of`.
    """
    _SHAPE(claim.proof, claim.path)
    claim = claim.holding_states()
    fault = _fault_in_terms(claim) or _fault_in_sum(claim)
    if fault is not None:
        return False, f"{METHOD}: {fault}"
    if claim.value == 0:
        return True, f"{METHOD}: no bottleneck is below 0 ticks"
    if search is None:
        return None, f"{METHOD}: the rooms come to less than all work; {SHALLOW}"
    passed, detail = search(claim, None)
    return passed, f"{METHOD}: {detail}"


def measure_of(claim: BoundClaim) -> list[int]:
    """Return the measure of each op that a claim's proof names."""
    rows = [claim.graph.work] if claim.by_class is None else [graph.work for graph, _ in claim.by_class]
    chosen = claim.proof["measure"]
    return [min(ticks) for ticks in zip(*rows, strict=True)] if chosen is None else rows[chosen]


def _fault_in_terms(claim: BoundClaim) -> str | None:
    proof, classes = claim.proof, 1 if claim.by_class is None else len(claim.by_class)
    if proof["k"] != claim.k:
        return f"the proof is for k = {proof['k']}, the claim for k = {claim.k}"
    if proof["cutoff"] != claim.value:
        return f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {claim.value}"
    if len(proof["rooms"]) != classes:
        return "there is not one room for each class of devices"
    if len(proof["counted"]) != classes:
        return "the proof does not say of each class of devices what counts"
    if proof["measure"] is not None and proof["measure"] >= classes:
        return f"there is no class {proof['measure']} of devices"
    if any(t >= len(claim.graph.transfer) for t in proof["forgotten"]):
        return "the proof forgets a tensor that the graph does not have"
    return None


def _fault_in_sum(claim: BoundClaim) -> str | None:
    class_of = [0] * claim.k if claim.by_class is None else claim.class_of
    rooms = sorted((claim.proof["rooms"][c] for c in class_of), reverse=True)[: claim.k]
    total = sum(measure_of(claim))
    if sum(rooms) >= total:
        return f"{counted(len(rooms), 'device')} have room for {sum(rooms)} of {total} ticks of work"
    return None
