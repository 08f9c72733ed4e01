"""Claims about a graph without some of its ops, on equal devices and on devices that differ.

On devices that differ ops are left out in the ticks of every class: what is charged, and what is left of a transfer, is
by its own work and transfers. The reasons of :mod:`mtpp.checker.relaxed` hold for each stage on its device, so that no
plan costs more on the relaxed graphs, whatever the order of its devices. A stage that loses all of its ops leaves its
device without one, which costs nothing. With transport by neighbours it would leave a boundary to others, whose link
may be slower; and times of stages are by their numbers of ops, which may be longer for fewer.
"""

from __future__ import annotations

from dataclasses import replace

from mtpp.checker.claim import BoundClaim
from mtpp.checker.machine import STAGE_TIMES
from mtpp.checker.relaxed import Relaxation, relaxed_graph


def relaxed_claim(claim: BoundClaim, relaxation: Relaxation) -> BoundClaim | str:
    """Return the claim for what a proof leaves of its graph, or which rule is broken.

    Raises
    ------
    TooManyPaths
        As :func:`mtpp.checker.relaxed.relaxed_graph`.
    """
    if claim.by_class is not None:
        if claim.pairs is not None:
            return "ops are left out, which does not hold where tensors pass from neighbour to neighbour"
        if any(STAGE_TIMES in system for _, system in claim.by_class):
            return "ops are left out, which does not hold of times of stages"
    rows = [(claim.graph, claim.system), *(claim.by_class or ())]
    relaxed = []
    for graph, system in rows:
        found = relaxed_graph(graph, relaxation)
        if isinstance(found, str):
            return found
        relaxed.append((found, system))
    rest = {key: value for key, value in claim.proof.items() if key != "relaxed"}
    by_class = None if claim.by_class is None else relaxed[1:]
    return replace(claim, graph=relaxed[0][0], by_class=by_class, proof=rest)
