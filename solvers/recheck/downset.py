"""Exhaustive searches behind lower bounds of tier ``enumerated``, run again from what their proofs say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtpp.checker.claim import LATENCY
from mtpp.checker.downset import WEIGHTS, check_downset_proof, fault_in_terms
from mtpp.checker.facts import counted
from mtpp.solvers.recheck.claim import DownsetClaim, Found, SearchTooLarge
from mtpp.solvers.recheck.plain import search_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mtpp.checker.claim import BoundClaim
    from mtpp.checker.graph import TickGraph
    from mtpp.checker.merged import MergedGraph
    from mtpp.checker.report import Outcome
    from mtpp.solvers.recheck.compiled import Watcher

SMALL = 24
"""Ops, as merged, up to which plain Python is tried."""

MEMORY_BYTES = 2**30
"""Memory that a search may take unless told otherwise: a forged proof can ask for any amount."""

_MOST_SETS = 3_000

_MOST_SETS_OF_LARGE_NUMBERS = 100_000
_MOST_OPS_OF_LARGE_NUMBERS = 64


def recheck_downset(
    merged: MergedGraph,
    graph: TickGraph,
    system: dict[str, Any],
    k: int,
    value: int,
    proof: dict[str, Any],
    watcher: Watcher | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> Outcome:
    """Run a downset search again and compare what it comes to with what its proof says.

    Parameters
    ----------
    merged
        The graph after the proof's merges, which have been checked (:mod:`mtpp.checker.merges`).
    graph
        The graph in ticks before any merges.
    system, k, value, proof
        Of the plan, as read from JSON; *value* is that of the lower bound. That no stage holds more of the proof's
        weights than their capacity, if it has any, is looked at elsewhere (:mod:`mtpp.checker.downset`).
    memory_bytes
        That the search may take.

    Returns
    -------
    Whether the proof holds, and that in words, or the first thing about it that is false; None in place of the former
    if the search does not fit into memory.

    Raises
    ------
    InputError
        If the proof is malformed.

    Notes
    -----
    Small graphs are searched in plain Python, others by a kernel. The search ends early, and the proof fails, once it
    comes to more downsets or pairs than the proof says.
    """
    check_downset_proof(proof)
    fault = fault_in_terms(k, value, proof)
    if fault is not None:
        return False, fault
    if len(merged.work) ** 2 // 4 > memory_bytes:  # sets of neighbours, a bit per op each
        return None, f"the search was not run again: {len(merged.work)} ops are too many for it"
    claim = DownsetClaim.of(merged, graph, system, k, value, proof["rules"]).with_shares(merged, proof.get(WEIGHTS))
    if len(claim.order) < claim.op_count:
        return False, "the ops, as merged, wait for each other"
    if claim.maximal and claim.memory_matters and claim.memory.reserve is None:
        return False, "the rule 'maximal' does not hold where activations depend on the order of the ops"
    try:
        found = _search(claim, proof, watcher, memory_bytes)
    except SearchTooLarge as error:
        return None, f"the search was not run to its end: {error}"
    fault = _difference(found, proof)
    if fault is not None:
        return False, fault
    looked_at = f"{counted(found.downsets, 'downset')} and {counted(found.pairs, 'pair')}, as the proof says"
    return True, f"no partition into {counted(k, 'stage')} stays below {value} ticks: {looked_at}"


def recheck_on_devices(
    merged: Sequence[MergedGraph], claim: BoundClaim, watcher: Watcher | None = None, memory_bytes: int = MEMORY_BYTES
) -> Outcome:
    """Run a search on devices that differ again, as :func:`recheck_downset` does.

    Parameters
    ----------
    merged
        The graph after the proof's merges, which have been checked, in the ticks of each class of devices, then with
        transport by neighbours of each link of a pair.
    """
    from mtpp.solvers.recheck.arrays import LARGEST_TOTAL, fits_arrays
    from mtpp.solvers.recheck.compiled import Unwatched
    from mtpp.solvers.recheck.latency import Prices, search_latency_labels
    from mtpp.solvers.recheck.neighbours import NeighbourClaim, search_neighbours
    from mtpp.solvers.recheck.replicas import ReplicaClaim, search_replicas
    from mtpp.solvers.recheck.unequal import UnequalClaim, search_labels

    assert claim.by_class is not None
    proof = claim.proof
    if len(merged[0].work) ** 2 // 4 > memory_bytes:
        return None, f"the search was not run again: {len(merged[0].work)} ops are too many for it"
    stage_limit, most_latency = _limits(claim)
    systems = [system for _, system in claim.by_class]
    of_class = [
        DownsetClaim.of(one, graph, system, claim.k, stage_limit + 1, proof["rules"], systems)
        for one, (graph, system) in zip(merged, claim.by_class, strict=False)
    ]
    terms = tuple(of_class), tuple(claim.class_of), claim.k, proof["order"] == "free"
    whole = UnequalClaim(*terms)
    links: tuple[tuple[int, ...], ...] = ()
    if claim.pairs is not None:
        links = tuple(tuple(ticks for ticks, _, readers in one.tensors if readers) for one in merged[len(of_class) :])
        relays = "relays" in proof["rules"]
        whole = NeighbourClaim(*terms, links, tuple(map(tuple, claim.pairs.row_of)), relays)
    if len(of_class[0].order) < of_class[0].op_count:
        return False, "the ops, as merged, wait for each other"
    if "maximal" in proof["rules"] and whole.memory_matters and of_class[0].memory.reserve is None:
        return False, "the rule 'maximal' does not hold where activations depend on the order of the ops"
    if "crossings" in proof["rules"]:
        return False, "the rule 'crossings' is for equal devices"
    if "relays" in proof["rules"] and (not isinstance(whole, NeighbourClaim) or most_latency is not None):
        return False, "the rule 'relays' is for the bottleneck with transport by neighbours"
    if "maximal" in proof["rules"] and most_latency is not None:
        return False, "the rule 'maximal' does not hold where latency counts"
    if not all(map(fits_arrays, of_class)) or not all(2 * sum(row) < LARGEST_TOTAL // 4 for row in links):
        return None, "the search was not run again: its numbers are beyond 64 bits"
    if proof.get("replicated") and (proof["rules"] not in (["fit"], ["fit", "whole"]) or "prices" not in proof):
        return False, "no search with several devices a stage goes by these rules"
    if proof.get("replicated") and (isinstance(whole, NeighbourClaim) or most_latency is not None):
        return False, "a search with several devices a stage is of the bottleneck and of direct transport"
    if proof.get("replicated") and len(proof["prices"]) != len(of_class):
        return False, f"there are {len(proof['prices'])} prices for {len(of_class)} classes of devices"
    try:
        if proof.get("replicated"):
            shared = ReplicaClaim(whole.of_class, whole.class_of, whole.most, whole.free, tuple(proof["prices"]))
            again = search_replicas(shared, proof["labels"], watcher or Unwatched(), memory_bytes)
            if again is None:
                return None, "the search was not run again: its numbers are beyond 64 bits"
            found = again
        elif isinstance(whole, NeighbourClaim):
            found = search_neighbours(whole, most_latency, proof["labels"], watcher or Unwatched(), memory_bytes)
        elif most_latency is None:
            found = search_labels(whole, proof["labels"], watcher or Unwatched(), memory_bytes)
        else:
            prices = None
            if "latency_prices" in proof:
                prices = Prices(**proof["latency_prices"], limit=proof.get("limit") or 0)
            found = search_latency_labels(
                whole, most_latency, proof["labels"], watcher or Unwatched(), memory_bytes, prices
            )
    except SearchTooLarge as error:
        return None, f"the search was not run to its end: {error}"
    if found.complete:
        return False, f"there is a plan below {proof['cutoff']} ticks"
    if found.digest is None:
        return False, f"the search comes to more than the {proof['labels']} labels that the proof says"
    for what, mine in (("downsets", found.downsets), ("labels", found.labels), ("digest", found.digest)):
        if mine != proof[what]:
            return False, f"the search comes to {what} {mine}, the proof says {proof[what]}"
    looked_at = f"{counted(found.downsets, 'downset')} and {counted(found.labels, 'label')}, as the proof says"
    among = "in any order" if whole.free else "in order"
    devices = f"{counted(min(claim.k, len(claim.class_of)), 'device')} {among}"
    of = "" if most_latency is None else f" of {'latency' if claim.objective == LATENCY else 'bottleneck'}"
    return True, f"no plan on {devices} stays below {claim.value} ticks{of}: {looked_at}"


def _limits(claim: BoundClaim) -> tuple[int, int | None]:
    """Return the most ticks of a stage, and of all together, that a proof says no partition has; None: any."""
    below, limit = claim.value - 1, claim.proof.get("limit")
    if claim.proof.get("objective") == LATENCY:
        return below if limit is None else min(below, limit), below
    return below if limit is None else min(below, limit), limit


def _search(claim: DownsetClaim, proof: dict[str, Any], watcher: Watcher | None, memory_bytes: int) -> Found:
    alive = None if watcher is None else watcher.alive
    found = search_plain(claim, _MOST_SETS, alive) if claim.op_count <= SMALL else None
    if found is not None:
        return found
    from mtpp.solvers.recheck.arrays import fits_arrays

    if not fits_arrays(claim):
        few = claim.op_count <= _MOST_OPS_OF_LARGE_NUMBERS
        found = search_plain(claim, _MOST_SETS_OF_LARGE_NUMBERS, alive) if few else None
        if found is None:
            raise SearchTooLarge("numbers beyond 64 bits allow only small ones")
        return found
    from mtpp.solvers.recheck.compiled import Unwatched, search_compiled

    return search_compiled(claim, proof["downsets"], proof["pairs"], watcher or Unwatched(), memory_bytes=memory_bytes)


def _difference(found: Found, proof: dict[str, Any]) -> str | None:
    if found.stages is not None:
        return f"there is a partition into {counted(found.stages, 'stage')} below {proof['cutoff']} ticks"
    for what, mine in (("downsets", found.downsets), ("pairs", found.pairs)):
        if found.digest is None and mine > proof[what]:
            return f"the search comes to more than the {proof[what]} {what} that the proof says"
        if found.digest is not None and mine != proof[what]:
            return f"the search comes to {mine} {what}, the proof says {proof[what]}"
    if found.digest != proof["digest"]:
        return f"the digest of the downsets is {found.digest}, the proof says {proof['digest']}"
    return None
