"""The checkers of proofs of the exact tier, by method: each re-checks a bound from the document that states it alone.

A checker gets what a document claims and the graph in ticks; it says whether the value is proven for every partition
into k stages that keeps the groups together.
"""

from __future__ import annotations

from collections.abc import Callable

from mtpp.checker.bounds.branch_and_bound import check_branch_and_bound
from mtpp.checker.bounds.configuration import check_configuration
from mtpp.checker.bounds.convex_weights import check_convex_weights
from mtpp.checker.bounds.crossings import check_crossings
from mtpp.checker.bounds.fraction import check_fraction
from mtpp.checker.bounds.node import check_node
from mtpp.checker.bounds.position_weights import check_position_weights
from mtpp.checker.bounds.simple import check_simple
from mtpp.checker.claim import BoundClaim, Verdict

Checker = Callable[[BoundClaim], Verdict]
"""Raises InputError where a proof is malformed."""

CHECKERS: dict[str, Checker] = {
    "simple": check_simple,
    "node": check_node,
    "fraction": check_fraction,
    "crossings": check_crossings,
    "convex-weights": check_convex_weights,
    "position-weights": check_position_weights,
    "configuration": check_configuration,
    "branch-and-bound": check_branch_and_bound,
    **dict.fromkeys(("node-convex", "bottleneck", "bottleneck-no-dag", "bottleneck-no-cut-io"), check_branch_and_bound),
}
"""Method name → checker of its proofs; a method that is not here proves nothing in the exact tier."""
