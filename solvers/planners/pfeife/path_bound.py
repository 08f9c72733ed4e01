"""Bounds from loads, the longest path, and mixtures of paths with the proofs that ``mtpp verify`` goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from mtpp.solvers.planners.pfeife.path_game import GameResult
from mtpp.solvers.planners.pfeife.path_network import NetworkPath, PathNetwork
from mtpp.training.pfeife.costs import SplitTimes
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.pfeife.schedule import PassKind
from mtpp.units import ceil_ratio

TOTAL = 10**9
"""Weights of all paths of a mixture together, about."""


@dataclass(frozen=True, eq=False)
class PathBound:
    """Ticks that no split takes less than, and the mixture of paths that proves it.

    Attributes
    ----------
    proof
        ``total`` and ``paths``, each with its ``weight``, its ``runs`` of passes, first and last, and the place of the
        run that is a load, ``load``, where one is.
    """

    value: int
    proof: dict[str, Any]


def path_bound(network: PathNetwork, times: SplitTimes, game: GameResult) -> PathBound:
    """Return the bound of a game's mixture of paths, in integers.

    Notes
    -----
    With weights λ of Λ in sum, Λ · iteration is at least Σ λ · length of path, for every split; the least of that over
    all splits is found as :func:`~mtpp.solvers.planners.pfeife.kernels.cheapest_split.cheapest_split` does, without
    rounding. A half of a backward pass of g ticks is at least g / 2 or (g − 1) / 2 ticks. O(S · n).
    """
    weighted = [(path, round(weight * TOTAL)) for path, weight in zip(game.paths, game.weights, strict=True)]
    weighted = [(path, weight) for path, weight in weighted if weight > 0]
    total = sum(weight for _, weight in weighted)
    if not total:
        return PathBound(0, {"total": 1, "paths": []})
    stages = network.stages
    price = [0] * (3 * stages)
    lost = 0
    for path, weight in weighted:
        for place, count in enumerate(network.prices(path).tolist()):
            if count:
                price[place] += round(2 * count) * weight
        lost += weight * sum(
            network.passes[node].kind == PassKind.WEIGHT and not network.message[node]
            for node in (*path.before, *path.behind)
        )
    value = max(0, ceil_ratio(least_price(price, times, stages) - lost, 2 * total))
    return PathBound(
        value, {"total": total, "paths": [_path_document(network, path, weight) for path, weight in weighted]}
    )


def least_price(price: Sequence[int], times: SplitTimes, stages: int) -> int:
    """Return the price of the cheapest split; *price* as :func:`cheapest_split` takes it, in integers."""
    n, rows = times.ops, times.speed_of.tolist()
    forward, backward = times.forward.tolist(), times.backward.tolist()
    handover = times.handover.tolist()
    devices = times.devices
    cost: list[int | None] = [0, *[None] * n]
    for s in range(1, stages):
        f, g = price[2 * s - 2], price[2 * s - 1]
        f_new, g_new, h = price[2 * s], price[2 * s + 1], price[2 * stages + s]
        old, new = rows[(s - 1) % devices], rows[s % devices]
        before = list(accumulate(cost, _lesser))
        following: list[int | None] = [None] * (n + 1)
        for p in range(s, n - (stages - s) + 1):
            least = before[p - 1]
            if least is not None:
                following[p] = (
                    least
                    + f * forward[old][p]
                    - f_new * forward[new][p]
                    + g * backward[old][p]
                    - g_new * backward[new][p]
                    + h * handover[p]
                )
        cost = following
    last = rows[(stages - 1) % devices]
    least = min(one for one in cost[:n] if one is not None)
    total: int = least + price[2 * stages - 2] * forward[last][n] + price[2 * stages - 1] * backward[last][n]
    return total


def _lesser(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _path_document(network: PathNetwork, path: NetworkPath, weight: int) -> dict[str, Any]:
    begun = _with_ends(network, path.before, first=True, last=path.load < 0)
    runs = _runs(network, begun)
    document: dict[str, Any] = {"weight": weight}
    if path.load >= 0:
        assert network.loads is not None
        document["load"] = len(runs)
        ends = network.loads.first[path.load], network.loads.last[path.load]
        runs.append([network.passes[int(node)].name for node in ends])
        runs += _runs(network, _with_ends(network, path.behind, first=False, last=True))
    document["runs"] = runs
    return document


def _with_ends(network: PathNetwork, nodes: Sequence[int], *, first: bool, last: bool) -> list[int]:
    """Return a path with the pass that sends its first message, and the one that waits for its last.

    Where such a pass takes no time, the longest path may begin or end beside it; runs are of passes.
    """
    path = list(nodes)
    if first and path and network.message[path[0]]:
        path.insert(0, next(int(one) for one in network.before[path[0]] if one >= 0 and not network.message[one]))
    if last and path and network.message[path[-1]]:
        waiting = np.flatnonzero((network.before == path[-1]).any(axis=1)).tolist()
        path.append(next(one for one in waiting if not network.message[one]))
    return path


def _runs(network: PathNetwork, nodes: Sequence[int]) -> list[list[str]]:
    """Return the first and the last pass of each stretch of a path that stays on a device."""
    runs: list[list[str]] = []
    at = -1
    for node in nodes:
        if network.message[node]:
            at = -1
            continue
        name = network.passes[node].name
        if at >= 0 and network.row_before[node] == at:
            runs[-1][1] = name
        else:
            runs.append([name, name])
        at = node
    return runs


def load_bound(problem: SplitProblem) -> int:
    """Return ticks that no iteration is below, of any split under any schedule, however tensors travel.

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
