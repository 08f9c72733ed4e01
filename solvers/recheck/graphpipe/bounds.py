"""Bounds of plans by ``graphpipe`` that rest on a search: which one runs again for which method."""

from __future__ import annotations

from mtpp.checker.report import Outcome
from mtpp.checker.training.graphpipe.bounds import CHAINS, EXHAUSTIVE, GraphClaim
from mtpp.solvers.recheck.graphpipe.chains import recheck_chains
from mtpp.solvers.recheck.graphpipe.exhaustive import recheck_exhaustive
from mtpp.solvers.recheck.pipelines import Watcher

_SEARCHES = {CHAINS: recheck_chains, EXHAUSTIVE: recheck_exhaustive}


def recheck_graph_bound(claim: GraphClaim, watcher: Watcher) -> Outcome:
    """Run the search behind a bound again.

    Returns
    -------
    Whether the bound holds, and that in words; None if that is out of reach.
    """
    return _SEARCHES[claim.method](claim, watcher)
