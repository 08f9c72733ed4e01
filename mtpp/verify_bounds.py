"""The checkers of proofs of the exact tier, by method: each re-checks a bound from the document that states it alone.

Part of the independent verifier (:mod:`mtpp.verify`). A checker gets what a document claims and the graph in ticks; it
says whether the value is proven for every partition into k stages that keeps the groups together.
"""

from __future__ import annotations

from collections.abc import Callable

from mtpp.verify_claim import BoundClaim, Verdict
from mtpp.verify_configuration import check_configuration
from mtpp.verify_crossings import check_crossings
from mtpp.verify_fraction import check_fraction
from mtpp.verify_node import check_node
from mtpp.verify_simple import check_simple

Checker = Callable[[BoundClaim], Verdict]

CHECKERS: dict[str, Checker] = {
    "simple": check_simple,
    "node": check_node,
    "fraction": check_fraction,
    "crossings": check_crossings,
    "configuration": check_configuration,
}
"""Method name → checker of its proofs; a method that is not here proves nothing in the exact tier."""
