"""The three-superblock MIP without the cost of tensors that are cut."""

from __future__ import annotations

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.bottleneck import middle_bound
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return min work(S) + overflow(S) over the stages S with work(S) ≥ L that a partition can have.

    L is the simple bound. Never above :mod:`~mtpp.solvers.bounds.bottleneck` once both are solved, and proven as it is.

    Notes
    -----
    O(n) variables, O(edges) constraints. Archer et al. (2023 draft), section 5.4: bottleneck-no-cut-io.
    """
    return middle_bound("bottleneck-no-cut-io", instance, limits, cuts=False)
