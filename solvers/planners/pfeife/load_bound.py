"""Bound from loads and the longest path: it holds for every split and every schedule, however tensors travel."""

from __future__ import annotations

from mtpp.training.pfeife.problem import SplitProblem
from mtpp.units import ceil_ratio

LOADS = "loads"
"""Method of the bound."""


def load_bound(problem: SplitProblem) -> int:
    """Return ticks that no iteration is below.

    Notes
    -----
    Devices of speeds v_d do B · Σ (f + g) of work together, at v_d an hour each: the iteration is at least that over
    Σ v_d. A micro-batch goes forward and back along every path of ops, at the speed of the fastest device at best.
    O(n + pins).
    """
    costs, speeds = problem.line.costs, problem.speeds
    both = [f + g for f, g in zip(costs.forward.tolist(), costs.backward.tolist(), strict=True)]
    together, fastest = sum(speeds), max(speeds)
    work = problem.micro_batches * sum(both)
    longest = list(both)
    for one in sorted(costs.tensors, key=lambda tensor: tensor.producer):
        for reader in one.consumers:
            longest[reader] = max(longest[reader], longest[one.producer] + both[reader])
    path = max(longest)
    return max(
        ceil_ratio(work * together.denominator, together.numerator),
        ceil_ratio(path * fastest.denominator, fastest.numerator),
    )
