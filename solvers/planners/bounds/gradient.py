"""Lower bound on any plan from gradients, synchronised as often as its speed makes necessary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.certificate import Tier
from mtpp.solvers.planners.layer_options import LayerOption, most_degrees
from mtpp.training.plan import TimeBound
from mtpp.training.problem import PlanningProblem

WORTHWHILE = 1e-3
"""A bound that is higher by less than this part is not looked for."""

_PRECISION = 1e-6
_SCALE = 2**10


def gradient_bound(
    problem: PlanningProblem,
    options: Sequence[Sequence[LayerOption]],
    shares: Sequence[tuple[int, int]],
    above: Fraction,
) -> TimeBound | None:
    """Return a bound above *above* on the time per sample of every plan; None if none is found.

    Take a cutoff T₀ and a plan that takes T < T₀. The stage of a layer v, with degrees d and t, takes no less than v
    alone: (X(v).p + (d - 1) · w / r) / d ≤ T < T₀, with r = d, or N under the convention ``program``. So d is not too
    small, and X(v).p + (d - 1) · w / r, which grows with d, is at least some m(v) over all ways and d · t ≤ K with
    which v alone takes less than T₀. As for the rule ``mixed`` of
    :func:`~mtpp.solvers.planners.bounds.work.work_bound`, with α for a device and β for a micro-batch, (α · K + β · D)
    · T ≥ Σ (α · t + β) · (X(v).p + (d - 1) · w / r), of which each part is taken as small as it can be. Every plan
    takes at least the smaller of T₀ and that sum over α · K + β · D; T₀ if some layer has no way left. The larger T₀,
    the smaller the sum: the best T₀ is where they meet.

    Parameters
    ----------
    ways
        The ways of each layer that can be in a plan.
    shares
        Pairs of α and β to try.

    Notes
    -----
    Method ``work``, rule ``gradients``; the proof holds ``cutoff``, numerator and denominator, and ``per_device`` and
    ``per_degree``, α and β. The cutoff is looked for by halving an interval in floating point, to one part in a
    million; the bound is then worked out exactly. O(ways · log(degrees)) for each of at most thirty halvings.
    """
    best: TimeBound | None = None
    options = [_fastest(here) for here in options]
    columns = _Columns(problem, options)
    for per_device, per_degree in shares:
        held = per_device * problem.devices + per_degree * most_degrees(problem)
        cutoff = columns.meeting(per_device, per_degree, held, float(best.value if best else above))
        if cutoff is None:
            continue
        total = _total(problem, options, per_device, per_degree, cutoff)
        value = cutoff if total is None else min(cutoff, total / held)
        if value > (best.value if best else above):
            proof = {
                "rule": "gradients", "cutoff": [cutoff.numerator, cutoff.denominator], "per_device": per_device,
                "per_degree": per_degree,
            }  # fmt: skip
            best = TimeBound(value, "work", Tier.EXACT, proof)
    return best


def _total(
    problem: PlanningProblem,
    options: Sequence[Sequence[LayerOption]],
    per_device: int,
    per_degree: int,
    cutoff: Fraction,
) -> Fraction | None:
    """Return the sum for a cutoff, exactly; None if some layer has no way left."""
    total = Fraction(0)
    for here in options:
        parts = [
            (per_device * option.t + per_degree) * d * problem.stage_time(option.compute, option.choice.weight_ticks, d)
            for option in here
            for d in _least_degree(problem, option, cutoff)
        ]
        if not parts:
            return None
        total += min(parts)
    return total


def _least_degree(problem: PlanningProblem, option: LayerOption, cutoff: Fraction) -> Iterator[int]:
    """Yield the least d with which a layer alone takes less than *cutoff*, if there is one.

    What it takes is concave in 1 / d. So if one device is too slow, those that are fast enough are all d from some on.
    """
    choice = option.choice
    if choice.compute_ticks < cutoff:
        yield 1
        return

    def fast(d: int) -> bool:
        spread = problem.spread(d)
        time = choice.compute_ticks * spread + (d - 1) * choice.weight_ticks
        return time * cutoff.denominator < cutoff.numerator * d * spread

    degrees = problem.data_degrees
    slow, quick = 0, _last(degrees, problem.devices // option.t)
    if not fast(degrees[quick]):
        return
    while quick - slow > 1:
        middle = (slow + quick) // 2
        slow, quick = (slow, middle) if fast(degrees[middle]) else (middle, quick)
    yield degrees[quick]


def _fastest(options: Sequence[LayerOption]) -> list[LayerOption]:
    """Return the ways that no other for as many devices beats in both time and weights."""
    kept: list[LayerOption] = []
    for option in sorted(options, key=lambda option: (option.t, option.compute, option.choice.weight_ticks)):
        if not kept or kept[-1].t < option.t or option.choice.weight_ticks < kept[-1].choice.weight_ticks:
            kept.append(option)
    return kept


def _last(degrees: Sequence[int], most: int) -> int:
    return int(np.searchsorted(degrees, most, side="right")) - 1


class _Columns:
    """All ways of all layers in floating point, to look for the cutoff."""

    def __init__(self, problem: PlanningProblem, options: Sequence[Sequence[LayerOption]]) -> None:
        flat = [option for here in options for option in here]
        self._t = np.array([option.t for option in flat], dtype=np.float64)
        self._compute = np.array([option.compute for option in flat], dtype=np.float64)
        self._weights = np.array([option.choice.weight_ticks for option in flat], dtype=np.float64)
        self._starts = np.cumsum([0, *(len(here) for here in options[:-1])])
        self._degrees = np.array(problem.data_degrees, dtype=np.float64)
        spread = np.array([problem.spread(d) for d in problem.data_degrees], dtype=np.float64)
        self._gradients = (self._degrees - 1) / spread
        lasts = {t: _last(problem.data_degrees, problem.devices // t) for t in problem.degrees}
        self._lasts = np.array([lasts[option.t] for option in flat], dtype=np.int64)

    def meeting(self, per_device: int, per_degree: int, held: int, low: float) -> Fraction | None:
        """Return a cutoff above *low* that is at most what its sum comes to; None if floating point finds none."""
        weight = (per_device * self._t + per_degree) / held
        high = self._least(weight, low)
        if high <= low * (1 + WORTHWHILE):
            return None
        # Above the slowest way of all, one device is enough for every layer.
        high = min(high, 2 * float(self._compute.max()))
        while high - low > max(high * _PRECISION, 1 / _SCALE):
            middle = (low + high) / 2
            if self._least(weight, middle) >= middle:
                low = middle
            else:
                high = middle
        return Fraction(int(low * _SCALE), _SCALE)

    def _least(self, weight: NDArray[np.float64], cutoff: float) -> float:
        slow = np.zeros(len(self._t), dtype=np.int64)
        quick = self._lasts.copy()
        while (quick - slow > 1).any():
            middle = (slow + quick) // 2
            fast = self._alone(middle) < cutoff
            quick, slow = np.where(fast, middle, quick), np.where(fast, slow, middle)
        quick = np.where(self._compute < cutoff, 0, quick)
        cost = weight * (self._compute + self._gradients[quick] * self._weights)
        cost = np.where(self._alone(quick) < cutoff, cost, np.inf)
        return float(np.minimum.reduceat(cost, self._starts).sum())

    def _alone(self, degree: NDArray[np.int64]) -> NDArray[np.float64]:
        return (self._compute + self._gradients[degree] * self._weights) / self._degrees[degree]
