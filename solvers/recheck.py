"""Exhaustive searches behind lower bounds of tier ``enumerated``, run again from what their proofs say of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mtpp.solvers.recheck_claim import DownsetClaim, Found
from mtpp.solvers.recheck_plain import search_plain
from mtpp.verify_claim import PLAN_PROOF
from mtpp.verify_document import Path, array, record, refuse, text, whole

if TYPE_CHECKING:
    from mtpp.solvers.recheck_compiled import Watcher
    from mtpp.verify_graph import TickGraph
    from mtpp.verify_merged import MergedGraph

RULES = (["fit"], ["fit", "maximal"], ["crossings", "fit"], ["crossings", "fit", "maximal"])
"""What a proof may have left pairs of downsets out by."""

SMALL = 24
"""Ops, as merged, up to which plain Python is tried."""

_MOST_SETS = 3_000


def recheck_downset(
    merged: MergedGraph,
    graph: TickGraph,
    system: dict[str, Any],
    k: int,
    value: int,
    proof: dict[str, Any],
    watcher: Watcher | None = None,
) -> tuple[bool, str]:
    """Run a downset search again and compare what it comes to with what its proof says.

    Parameters
    ----------
    merged
        The graph after the proof's merges, which have been checked (:mod:`mtpp.verify_merges`).
    graph
        The graph in ticks before any merges.
    system, k, value, proof
        Of the plan, as read from JSON; *value* is that of the lower bound.

    Returns
    -------
    Whether the proof holds, and that in words, or the first thing about it that is false.

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
    fault = _fault_in_terms(k, value, proof)
    if fault is not None:
        return False, fault
    claim = DownsetClaim.of(merged, graph, system, k, value, proof["rules"])
    if len(claim.order) < claim.op_count:
        return False, "the ops, as merged, wait for each other"
    if claim.maximal and claim.memory_matters and claim.memory.reserve is None:
        return False, "the rule 'maximal' does not hold where activations depend on the order of the ops"
    found = _search(claim, proof, watcher)
    fault = _difference(found, proof)
    if fault is not None:
        return False, fault
    counted = f"{found.downsets} downsets and {found.pairs} pairs, as the proof says"
    return True, f"no partition into {k} stages stays below {value} ticks: {counted}"


def check_downset_proof(proof: Any, path: Path = PLAN_PROOF) -> None:
    """Take the proof of a downset search, which stands at *path* of its document, apart from its merges.

    Raises
    ------
    InputError
        If it has other keys, or values of other types.
    """
    record(
        {
            "merges": array(lambda _value, _path: None),  # looked at when they are replayed
            "cutoff": whole(),
            "k": whole(1),
            "rules": array(text),
            "downsets": whole(1),
            "pairs": whole(),
            "digest": text,
        }
    )(proof, path)
    if re.fullmatch("[0-9a-f]{64}", proof["digest"]) is None:
        refuse("the digest is no SHA-256 in 64 lower-case hexadecimal digits", (*path, "digest"))


def _fault_in_terms(k: int, value: int, proof: dict[str, Any]) -> str | None:
    if proof["k"] != k:
        return f"the proof is for k = {proof['k']}, the plan for k = {k}"
    if proof["cutoff"] != value:
        return f"the proof's cutoff is {proof['cutoff']} ticks, the plan says {value}"
    if list(proof["rules"]) not in RULES:
        return f"no search goes by these rules: {', '.join(proof['rules'])[:60] or 'none'}"
    return None


def _search(claim: DownsetClaim, proof: dict[str, Any], watcher: Watcher | None) -> Found:
    found = search_plain(claim, _MOST_SETS) if claim.op_count <= SMALL else None
    if found is not None:
        return found
    from mtpp.solvers.recheck_arrays import fits_arrays

    if not fits_arrays(claim):
        found = search_plain(claim, None)
        assert found is not None
        return found
    from mtpp.solvers.compiling import load_recheck, recheck_compiled
    from mtpp.solvers.recheck_compiled import Unwatched, search_compiled

    watcher = watcher or Unwatched()
    if not recheck_compiled():
        watcher.compiling()
        load_recheck()  # all of them, also those that this search may not come to: the wait is said once
    return search_compiled(claim, proof["downsets"], proof["pairs"], watcher)


def _difference(found: Found, proof: dict[str, Any]) -> str | None:
    if found.stages is not None:
        stages = "1 stage" if found.stages == 1 else f"{found.stages} stages"
        return f"there is a partition into {stages} below {proof['cutoff']} ticks"
    for what, mine in (("downsets", found.downsets), ("pairs", found.pairs)):
        if found.digest is None and mine > proof[what]:
            return f"the search comes to more than the {proof[what]} {what} that the proof says"
        if found.digest is not None and mine != proof[what]:
            return f"the search comes to {mine} {what}, the proof says {proof[what]}"
    if found.digest != proof["digest"]:
        return f"the digest of the downsets is {found.digest}, the proof says {proof['digest']}"
    return None
