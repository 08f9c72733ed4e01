"""The configuration bound of a graph, and of relaxations of it, whichever gets further in the time there is."""

from __future__ import annotations

from mtpp.inference.certificate import Tier
from mtpp.inference.instance import Instance
from mtpp.names import CONFIGURATION
from mtpp.solvers.bounds.configuration.search import ConfigurationSearch
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.relaxed_race import Course, Race
from mtpp.solvers.threads import Threads

LARGEST = 2000
"""Ops at most: the paths between all pairs are kept in memory."""

_FEWEST = 250
"""Ops after merges up to which the graph itself is all that is looked at."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the highest limit that the configuration LP rules out, plus 1; tier ``exact``.

    Where the graph is large and the time limited, it races against relaxations of it: the fewer ops, the sooner the
    limit rises, and the lower it stays. After each round of turns the half that got less far is put off.

    Notes
    -----
    Solved if stages of the graph itself were met that no weights of more than k whole ones keep to, at the limit after
    the last one ruled out.
    """
    if instance.k < 2:
        return BoundResult(None, solved=False)
    with Threads(limits.jobs) as threads:

        def search(graph: Instance, limits: BoundLimits) -> ConfigurationSearch:
            return ConfigurationSearch(graph, limits, threads)

        course = Course(CONFIGURATION, Tier.EXACT, search, LARGEST, fewest=_FEWEST, handy=400)
        result = Race(instance, course, limits).run(limits)
    return BoundResult(result.lower, result.solved)
