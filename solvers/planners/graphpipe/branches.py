"""Branches of a model: paths of layers entered only at their first and left only at their last layer, in equal groups.

A downset of layers is a number of layers of each branch. Equal branches have equal costs and neighbours, so that
downsets which differ only in their order stand for one another.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import pairwise

from mtpp.training.model import TrainingModel


def equal_branches(
    model: TrainingModel, kinds: Sequence[int], left_out: Set[int] = frozenset()
) -> list[list[list[int]]]:
    """Return groups of equal branches in a topological order.

    Parameters
    ----------
    kinds
        By layer: layers of one kind cost the same.
    left_out
        Layers that are ignored, with their edges.
    """
    count = len(model.layers)
    before: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for edge, (u, v) in zip(model.edges, model.ends, strict=True):
        if u not in left_out and v not in left_out:
            before[v].append((u, edge.communication_bytes))
            after[u].append((v, edge.communication_bytes))
    branches: list[list[int]] = []
    branch_of: dict[int, int] = {}
    for layer in model.order:
        if layer in left_out:
            continue
        last = before[layer][0][0] if len(before[layer]) == 1 else None
        if last is not None and len(after[last]) == 1:
            branches[branch_of[last]].append(layer)
            branch_of[layer] = branch_of[last]
        else:
            branch_of[layer] = len(branches)
            branches.append([layer])
    groups: dict[object, list[list[int]]] = {}
    for branch in branches:  # in the order of their first layers: those that a branch reads from come first
        inside = tuple(after[u][0][1] for u, _ in pairwise(branch))
        costs = tuple(kinds[layer] for layer in branch)
        key = costs, inside, tuple(sorted(before[branch[0]])), tuple(sorted(after[branch[-1]]))
        groups.setdefault(key, []).append(branch)
    return list(groups.values())


def cheap_layers(
    model: TrainingModel, kinds: Sequence[int], work: Sequence[int], shares: Sequence[float]
) -> list[frozenset[int]]:
    """Return layers that may be left out, for each share: cheap groups of equal branches that others run beside.

    Parameters
    ----------
    work
        Of each layer.
    shares
        Of all work, that the layers left out have at most.

    Notes
    -----
    The cheapest group first. The order of the other layers is kept: from what a branch reads there is another path to
    what it is read by. Layers left out for one share are left out for any larger one.
    """
    budget = max(shares) * sum(work)
    left_out: frozenset[int] = frozenset()
    found = [(0, left_out)]
    while True:
        groups = equal_branches(model, kinds, left_out)
        costs = [sum(work[layer] for branch in group for layer in branch) for group in groups]
        order = _Order(model, left_out)
        ascending = sorted(range(len(groups)), key=costs.__getitem__)
        cheapest = next((g for g in ascending if found[-1][0] + costs[g] > budget or order.without(groups[g])), None)
        if cheapest is None or found[-1][0] + costs[cheapest] > budget:
            break
        left_out |= {layer for branch in groups[cheapest] for layer in branch}
        found.append((found[-1][0] + costs[cheapest], left_out))
    return [
        max((one for one in found if one[0] <= share * sum(work)), key=lambda one: len(one[1]))[1] for share in shares
    ]


class _Order:
    """Order of the layers of a model, without some: bit sets of what follows each."""

    def __init__(self, model: TrainingModel, left_out: Set[int]) -> None:
        count = len(model.layers)
        self._before: list[list[int]] = [[] for _ in range(count)]
        self._after: list[list[int]] = [[] for _ in range(count)]
        for u, v in model.ends:
            if u not in left_out and v not in left_out:
                self._before[v].append(u)
                self._after[u].append(v)
        self._layers = [layer for layer in model.order if layer not in left_out]
        self._behind = [0] * count
        for u in reversed(self._layers):
            for w in self._after[u]:
                self._behind[u] |= self._behind[w] | 1 << w

    def without(self, group: Sequence[Sequence[int]]) -> bool:
        """Tell whether other layers are beside equal branches, and ordered the same without them."""
        members = {layer for branch in group for layer in branch}
        first, last = group[0][0], group[0][-1]
        ahead = sum(self._behind[u] >> first & 1 for u in self._layers)
        line = ahead + self._behind[last].bit_count() + len(group[0])  # layers before, in and after one branch
        if len(self._layers) in (line, len(members)):
            return False
        return all(
            any(v == w or self._behind[v] >> w & 1 for v in self._after[u] if v not in members)
            for u in self._before[first]
            for w in self._after[last]
        )
