"""Proofs by exhaustive search over downsets: their shape, what can be said of them without the search, and the search.

The search itself is not plain Python: the caller brings it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mtpp.checker.bounds.capacity import METHOD as CAPACITY
from mtpp.checker.bounds.capacity import check_capacity
from mtpp.checker.bounds.chain import check_chain
from mtpp.checker.bounds.chain_totals import check_chain_totals
from mtpp.checker.bounds.convex_weights import check_stage_shares, fault_in_shares
from mtpp.checker.claim import BOTTLENECK, LATENCY, PLAN_PROOF, RELAYS, BoundClaim, merges_hold
from mtpp.checker.machine import STAGE_TIMES
from mtpp.checker.report import SHALLOW, Outcome, Search
from mtpp.document_shape import Path, any_array, array, choice, flag, nullable, record, refuse, sha256, text, whole

METHODS = ("downset", "relaxation")
"""Methods of tier ``enumerated``: a search of the graph, and of one without some of its ops."""

WEIGHTS = "weights"
"""Rule, and key, of proofs that give weights of ops and a capacity: no stage holds more, nor k stages k times as much.

That no convex set within the limit holds more is proven by the scan of :mod:`mtpp.checker.bounds.convex_weights`, and
looked at whether the search is run again or not. Stages of a partition are convex: none holds more.
"""

RULES = (
    ["fit"],
    ["fit", "maximal"],
    ["crossings", "fit"],
    ["crossings", "fit", "maximal"],
    ["fit", "whole"],
    ["crossings", "fit", "whole"],
    ["fit", WEIGHTS],
    ["fit", "maximal", WEIGHTS],
    ["crossings", "fit", WEIGHTS],
    ["crossings", "fit", "maximal", WEIGHTS],
    ["fit", WEIGHTS, "whole"],
    ["crossings", "fit", WEIGHTS, "whole"],
    ["fit", RELAYS],
    ["fit", RELAYS, "whole"],
)
"""Rules by which a proof may have left pairs of downsets out; *whole*: stages hold whole what several ops read.

With *relays* devices may stand without ops between stages of neighbours, and pass on what crosses there.
"""


def check_downset_proof(proof: Any, path: Path = PLAN_PROOF) -> None:
    """Take the proof of a downset search, which stands at *path* of its document, apart from its merges."""
    record(
        {
            "merges": any_array,  # looked at when they are replayed
            "cutoff": whole(),
            "k": whole(1),
            "rules": array(text),
            "downsets": whole(1),
            "pairs": whole(),
            "digest": text,
        },
        {WEIGHTS: check_stage_shares},
    )(proof, path)
    if re.fullmatch("[0-9a-f]{64}", proof["digest"]) is None:
        refuse("the digest is no SHA-256 in 64 lower-case hexadecimal digits", (*path, "digest"))


def check_device_proof(proof: Any, path: Path = PLAN_PROOF) -> None:
    """Take the proof of a search on devices that differ, as :func:`check_downset_proof` does."""
    record(
        {
            "merges": any_array,
            "cutoff": whole(),
            "k": whole(1),
            "order": choice("fixed", "free"),
            "rules": array(text),
            "downsets": whole(1),
            "labels": whole(1),
            "digest": sha256,
        },
        {
            "objective": choice("bottleneck", "latency"),
            "limit": nullable(whole()),
            "replicated": flag,
            "prices": array(whole(1)),
            "latency_prices": record({"scale": whole(1), "per_byte": array(whole()), "per_tick": array(whole())}),
        },
    )(proof, path)


def fault_in_terms(k: int, value: int, proof: dict[str, Any]) -> str | None:
    """Return in what a proof is not one for k stages and this bound, None if it is."""
    if proof["k"] != k:
        return f"the proof is for k = {proof['k']}, the claim for k = {k}"
    if proof["cutoff"] != value:
        return f"the proof's cutoff is {proof['cutoff']} ticks, the claim is {value}"
    if list(proof["rules"]) not in RULES:
        return f"no search goes by these rules: {', '.join(proof['rules'])[:60] or 'none'}"
    if WEIGHTS in proof and WEIGHTS not in proof["rules"]:
        return "there are weights, and no rule goes by them"
    if WEIGHTS in proof["rules"] and WEIGHTS not in proof:
        return f"there are no weights for the rule {WEIGHTS!r}"
    return None


def fault_in_goal(claim: BoundClaim) -> str | None:
    """Return in what a proof is not one of the claim's objective within its limit, None if it is.

    What holds of all partitions within some limit holds within every smaller one.
    """
    own, limit = claim.proof.get("objective", BOTTLENECK), claim.proof.get("limit")
    if own != claim.objective:
        return f"the proof is of the {own}, the claim of the {claim.objective}"
    if limit is not None and (claim.limit is None or limit < claim.limit):
        return f"the proof is of partitions within {limit} ticks, the claim {said_limit(claim.limit)}"
    return _fault_in_prices(claim)


def _fault_in_prices(claim: BoundClaim) -> str | None:
    """Return in what a proof's prices are not of what is limited; None if it has none, or all are."""
    prices, by_class = claim.proof.get("latency_prices"), claim.by_class
    if prices is None or by_class is None:
        return None
    if claim.proof.get("objective") != LATENCY:
        return "prices are for the latency alone"
    if len(prices["per_byte"]) != len(by_class) or len(prices["per_tick"]) != len(by_class):
        return "there is not one price for each class of devices"
    if any(prices["per_tick"]) and claim.proof.get("limit") is None:
        return "there is a price of time, and the bottleneck has no limit"
    limits = [system.get("stage_memory_bytes") for _, system in by_class]
    if any(price and limit is None for price, limit in zip(prices["per_byte"], limits, strict=True)):
        return "there is a price of a memory that has no limit"
    return None


def said_limit(limit: int | None) -> str:
    """Return a limit in words."""
    return "of all" if limit is None else f"within {limit}"


def check_enumerated(claim: BoundClaim, method: str, search: Search | None) -> Outcome:
    """Check a bound of tier ``enumerated``: replay its merges, and run its search again.

    Parameters
    ----------
    search
        Is given the claim and the graph as merged, on devices that differ a graph for each class, and with transport by
        neighbours another one for each link; None: leave it out.

    Returns
    -------
    Whether the bound is proven, None if that stays open, and that in words.
    """
    if method == CAPACITY:
        return check_capacity(claim, search)
    if method not in METHODS:
        return False, f"no search is known by the name of {method[:60]!r}"
    if claim.by_class is not None:
        return _check_on_devices(claim, method, search)
    check_downset_proof(claim.proof, claim.path)
    fault = fault_in_terms(claim.k, claim.value, claim.proof)
    if fault is not None:
        return False, f"{method}: {fault}"
    merged = claim.merged()
    if isinstance(merged, str):
        return False, f"{method}: {merged}"
    hold = merges_hold(len(claim.proof["merges"]))
    if WEIGHTS in claim.proof:
        shares = claim.proof[WEIGHTS]
        fault = fault_in_shares(replace(claim, proof=shares, path=(*claim.path, WEIGHTS)), merged)
        if fault is not None:
            return False, f"{method}: {fault}"
        hold = f"{hold}; no convex set below {claim.value} ticks holds more of the weights than {shares['capacity']}"
    if search is None:
        return None, f"{method}: {hold}; {SHALLOW}"
    passed, detail = search(claim, merged)
    return passed, f"{method}: {hold}; {detail}"


def _check_on_devices(claim: BoundClaim, method: str, search: Search | None) -> Outcome:
    """Check a bound on devices that differ: its merges hold on devices of every class."""
    assert claim.by_class is not None
    if any(STAGE_TIMES in system for _, system in claim.by_class):
        if claim.counts_latency:
            fault = fault_in_goal(claim)
            proven, said = check_chain_totals(claim) if fault is None else (False, fault)
        else:
            proven, said = check_chain(claim)
        return proven, f"{method}: {said}"
    check_device_proof(claim.proof, claim.path)
    fault = fault_in_terms(claim.k, claim.value, claim.proof) or fault_in_goal(claim)
    if fault is not None:
        return False, f"{method}: {fault}"
    claims = alone = [claim.on_class(c) for c in range(len(claim.by_class))]
    if claim.pairs is not None:
        fault = _fault_of_neighbours(claim)
        if fault is not None:
            return False, f"{method}: {fault}"
        claims = alone + [claim.on_link(row) for row in range(len(claim.pairs.rows))]
        if not claim.pairs.one_link:
            links = [sorted({row for row in rows if row is not None}) for rows in claim.pairs.row_of]
            alone = [claim.on_link(row, c) for c, rows in enumerate(links) for row in rows]
    fault = next((found for one in alone if isinstance(found := one.merged(), str)), None)
    if fault is not None:
        return False, f"{method}: {fault}"
    merged = [one.merged(known=True) for one in claims]
    hold = f"{merges_hold(len(claim.proof['merges']))} on all devices"
    if search is None:
        return None, f"{method}: {hold}; {SHALLOW}"
    passed, detail = search(claim, merged)
    return passed, f"{method}: {hold}; {detail}"


def _fault_of_neighbours(claim: BoundClaim) -> str | None:
    """Return what a proof rests on that does not hold where tensors pass from neighbour to neighbour.

    An op that moves may leave a stage empty. The ones before and after it then have a boundary of their own, whose link
    may be slower than both that they had. So where links differ merges hold only with relays in place of such stages,
    and if they hold on each class of devices with each of its links.
    """
    assert claim.pairs is not None
    if claim.proof["merges"] and not claim.pairs.one_link and RELAYS not in claim.proof["rules"]:
        return "ops are merged, which does not hold where links of neighbours differ"
    if "maximal" in claim.proof["rules"]:
        return "the rule 'maximal' is for direct transport"
    return None
