"""The least cost of a stage with at least the simple bound's work: the three-superblock MIP."""

from __future__ import annotations

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.mip.three_blocks import middle_bound


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return min f(S) over the stages S with work(S) ≥ L that a partition can have, a lower bound on OPT.

    L is the simple bound (Lemma 3.3): some stage of any partition has that work. Of tier ``solver``.

    Notes
    -----
    O(n) variables, O(pins) constraints. Archer et al. (2024), section 3.2.
    """
    return middle_bound("bottleneck", instance, limits)
