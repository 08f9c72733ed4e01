"""The simple lower bound: the largest op, and the average stage."""

from __future__ import annotations

from mtpp.inference.certificate import LowerBound, Tier
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.units import ceil_ratio


def simple_bound(instance: Instance) -> LowerBound:
    """Return max(largest work of an op, ⌈Σ work / k⌉), a lower bound on OPT of tier ``exact``.

    Some stage holds the largest op, and some stage holds at least the average work; costs are integers, so the
    average rounds up. Ops that must share a stage count as one.

    Notes
    -----
    O(n). Archer et al. (2024), Lemma 3.3.
    """
    total = int(instance.work.sum())
    average = ceil_ratio(total, instance.k)
    heaviest = int(instance.work.argmax())
    largest = int(instance.work[heaviest])
    if largest >= average:
        members = list(instance.members_of(heaviest))
        return LowerBound(largest, "simple", Tier.EXACT, {"rule": "largest-op", "ops": members, "work": largest})
    return LowerBound(average, "simple", Tier.EXACT, {"rule": "average-work", "total_work": total, "k": instance.k})


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return :func:`simple_bound`, which takes no time to speak of."""
    return BoundResult(simple_bound(instance), solved=True)
