"""The position-weights bound of a graph, and of relaxations of it where that is too wide."""

from __future__ import annotations

from mtpp.inference.certificate import Tier
from mtpp.inference.instance import Instance
from mtpp.names import POSITION_WEIGHTS
from mtpp.solvers.bounds.frontier.narrow_search import LARGEST, on_narrow_order
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.position_weights.search import PositionWeightSearch
from mtpp.solvers.bounds.relaxed_race import Course, Race


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the highest limit ruled out by weights that depend on the stage, plus 1; tier ``exact``.

    Where the graph itself leaves a gap in its share of the time, relaxations of it take turns.

    Notes
    -----
    Exponential in the number of tensors that are live together along the order of the scan; with that fixed,
    O(k · n · (weight of a full stage)) for each sweep. Solved if limits 0.005 % above the last one ruled out could not
    be ruled out on the graph itself before sweeps, mixtures and cases came to nothing more.
    """
    if instance.k < 2:
        return BoundResult(None, solved=False)
    course = Course(
        POSITION_WEIGHTS, Tier.EXACT, on_narrow_order(PositionWeightSearch), LARGEST, fewest=0, handy=LARGEST, alone=0.8
    )
    return Race(instance, course, limits).run(limits)
