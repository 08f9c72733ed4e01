"""The convex-weights bound of a graph, and of relaxations of it where that is too wide."""

from __future__ import annotations

from mtpp.inference.certificate import Tier
from mtpp.inference.instance import Instance
from mtpp.names import CONVEX_WEIGHTS
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch
from mtpp.solvers.bounds.frontier.narrow_search import LARGEST, on_narrow_order
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.relaxed_race import Course, Race


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the highest limit that weights rule out of which no convex set holds more than a k-th, plus 1.

    Tier ``exact``. Where the graph itself leaves a gap in its share of the time, relaxations of it take turns.

    Notes
    -----
    Exponential in the number of tensors that are live together along the order of the scan; with that fixed,
    O(n · (weight of a full stage)) for each proposal of weights. Solved if limits 0.005 % above the last one ruled out
    could not be ruled out on the graph itself, as far as patience went.
    """
    if instance.k < 2:
        return BoundResult(None, solved=False)
    course = Course(
        CONVEX_WEIGHTS, Tier.EXACT, on_narrow_order(ConvexWeightSearch), LARGEST, fewest=0, handy=LARGEST, alone=0.5
    )
    return Race(instance, course, limits).run(limits)
