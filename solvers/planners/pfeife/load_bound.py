"""Bound from loads and the longest path: it holds for every split and every schedule, however tensors travel."""

from __future__ import annotations

from mtpp.training.pfeife.problem import SplitProblem
from mtpp.units import ceil_ratio


def load_bound(problem: SplitProblem) -> int:
    """Return ticks that no iteration is below.

    Notes
    -----
    Devices of speeds v_d do B · Σ (f + g) of work together: the iteration is at least that over Σ v_d. A micro-batch
    goes forward and back along every path of ops, at the speed of the fastest device at best; of a backward pass in
    halves, only the one for inputs has to come before the next stage's. O(n + pins).
    """
    costs, speeds, given = problem.line.costs, problem.speeds, problem.rules.schedule
    halves = given is not None and given[1].halves
    forward, backward = costs.forward.tolist(), costs.backward.tolist()
    twice = [2 * f + (1 if halves else 2) * g for f, g in zip(forward, backward, strict=True)]
    together, fastest = sum(speeds), max(speeds)
    work = problem.micro_batches * (sum(forward) + sum(backward))
    longest = list(twice)
    for one in sorted(costs.tensors, key=lambda tensor: tensor.producer):
        for reader in one.consumers:
            longest[reader] = max(longest[reader], longest[one.producer] + twice[reader])
    path = max(longest)
    return max(
        ceil_ratio(work * together.denominator, together.numerator),
        ceil_ratio(path * fastest.denominator, 2 * fastest.numerator),
    )
