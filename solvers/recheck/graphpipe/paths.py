"""Paths of layers that only follow one another, and which of them are equal.

Take two paths whose layers cost the same one by one, with the same bytes between them, that read from the same layers
outside and are read by the same, with the same bytes. Exchanging them maps the graph, with all its costs, onto itself.
So a chain of stages from a downset on exists exactly if one does from the downset with the two exchanged, with as many
devices; and of two stages that differ by exchanging paths of which the downset has taken as much, one is enough. As
paths of a group have the same layers before them, none reads from another of its group, nor do two groups read from
each other: they can be put in a topological order, equal ones side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mtpp.checker.training.graphpipe.costs import GraphModel


@dataclass(frozen=True)
class LayerPaths:
    """Layers by position, cut into paths in a topological order.

    Attributes
    ----------
    follows
        Whether a path is equal to the one before it.
    before
        Of each layer: those it reads from, with bytes.
    """

    paths: Sequence[Sequence[int]]
    follows: Sequence[bool]
    before: Mapping[int, Sequence[tuple[int, int]]]


def layer_paths(model: GraphModel, left_out: frozenset[int]) -> LayerPaths:
    """Cut the layers that are not left out into paths; edges of the others are ignored. O(layers + edges)."""
    kept = [v for v in range(len(model.ids)) if v not in left_out]
    before: dict[int, list[tuple[int, int]]] = {v: [] for v in kept}
    after: dict[int, list[tuple[int, int]]] = {v: [] for v in kept}
    for u, v, size in model.edges:
        if u not in left_out and v not in left_out:
            before[v].append((u, size))
            after[u].append((v, size))
    begins = [v for v in kept if not (len(before[v]) == 1 and len(after[before[v][0][0]]) == 1)]
    paths = []
    for v in begins:
        path = [v]
        while len(after[path[-1]]) == 1 and len(before[after[path[-1]][0][0]]) == 1:
            path.append(after[path[-1]][0][0])
        paths.append(path)
    groups: dict[object, list[list[int]]] = {}
    for path in paths:
        inner = tuple(after[u][0][1] for u, _ in pairwise(path))
        ends = tuple(sorted(before[path[0]])), tuple(sorted(after[path[-1]]))
        groups.setdefault((tuple(_costs(model, v) for v in path), inner, ends), []).append(path)
    order = _ordered(list(groups.values()), before)
    return LayerPaths(
        [path for group in order for path in group], [i > 0 for group in order for i in range(len(group))], before
    )


def _costs(model: GraphModel, layer: int) -> object:
    return tuple(
        (
            one.parameter_bytes,
            one.fixed_bytes,
            tuple(sorted(one.listed.items())),
            one.per_sample,
            one.kept_per_sample,
        )
        for one in model.choices[layer]
    )


def _ordered(
    groups: Sequence[list[list[int]]], before: Mapping[int, Sequence[tuple[int, int]]]
) -> list[list[list[int]]]:
    """Return groups so that those that a path reads from come first."""
    group_of = {v: g for g, group in enumerate(groups) for path in group for v in path}
    needed = [{group_of[u] for u, _ in before[group[0][0]]} for group in groups]
    order: list[int] = []
    placed: set[int] = set()
    left = list(range(len(groups)))
    while left:
        ready = [g for g in left if needed[g] <= placed]
        order += ready
        placed.update(ready)
        left = [g for g in left if g not in placed]
    return [groups[g] for g in order]
