"""Claims about a graph without some of its ops, on equal devices and on devices that differ.

On devices that differ ops are left out in the ticks of every class: what is charged, and what is left of a transfer, is
by its own work and transfers. The reasons of :mod:`mtpp.checker.relaxed` hold for each stage on its device, so that no
plan costs more on the relaxed graphs, whatever the order of its devices. A stage that loses all of its ops leaves its
device without one, which costs nothing. Times of stages are by their numbers of ops, and may be longer for fewer.

With transport by neighbours nothing is charged. Where a joined tensor passes a boundary, so did one of those that
became part of it, at no less over any link. A stage that loses all of its ops leaves a boundary between others: with
one link of all pairs it is as fast as both were; else the stage has to stay in place as a relay.
"""

from __future__ import annotations

from dataclasses import replace

from mtpp.checker.claim import RELAYS, BoundClaim
from mtpp.checker.machine import STAGE_TIMES
from mtpp.checker.pair_links import PairTicks
from mtpp.checker.relaxed import Relaxation, relaxed_graph


def relaxed_claim(claim: BoundClaim, relaxation: Relaxation) -> BoundClaim | str:
    """Return the claim for what a proof leaves of its graph, or which rule is broken.

    Raises
    ------
    TooManyPaths
        As :func:`mtpp.checker.relaxed.relaxed_graph`.
    """
    if claim.by_class is not None:
        fault = None if claim.pairs is None else _fault_of_neighbours(claim, claim.pairs, relaxation)
        if fault is not None:
            return fault
        if any(STAGE_TIMES in system for _, system in claim.by_class):
            return "ops are left out, which does not hold of times of stages"
    rows = [(claim.graph, claim.system), *(claim.by_class or ())]
    links = [] if claim.pairs is None else [replace(claim.graph, transfer=list(row)) for row in claim.pairs.rows]
    rows += [(graph, claim.system) for graph in links]
    relaxed = []
    for graph, system in rows:
        found = relaxed_graph(graph, relaxation)
        if isinstance(found, str):
            return found
        relaxed.append((found, system))
    rest = {key: value for key, value in claim.proof.items() if key != "relaxed"}
    end = len(relaxed) - len(links)
    by_class = None if claim.by_class is None else relaxed[1:end]
    pairs = None if claim.pairs is None else replace(claim.pairs, rows=[graph.transfer for graph, _ in relaxed[end:]])
    return replace(claim, graph=relaxed[0][0], by_class=by_class, pairs=pairs, proof=rest)


def _fault_of_neighbours(claim: BoundClaim, pairs: PairTicks, relaxation: Relaxation) -> str | None:
    if relaxation.charged or relaxation.lowered:
        return (
            "ops are charged or transfers lowered, which does not hold where tensors pass from neighbour to neighbour"
        )
    rules = claim.proof.get("rules")
    if not pairs.one_link and not (isinstance(rules, list) and RELAYS in rules):
        return "ops are left out, which does not hold without relays where links of neighbours differ"
    return None
