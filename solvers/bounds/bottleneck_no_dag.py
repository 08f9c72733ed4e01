"""The three-superblock MIP without the order of the ops: any set with the simple bound's work."""

from __future__ import annotations

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.bottleneck import middle_bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return min f(S) over all sets S of ops with work(S) ≥ L, a lower bound on OPT; L is the simple bound.

    Never above :mod:`~mtpp.solvers.bounds.bottleneck` once both are solved, and proven as it is.

    Notes
    -----
    O(n) variables, O(pins) constraints. Archer et al. (2023 draft), section 5.4: bottleneck-no-dag.
    """
    return middle_bound("bottleneck-no-dag", instance, limits, ordered=False)
