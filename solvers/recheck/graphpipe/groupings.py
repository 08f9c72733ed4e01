"""All ways to group a few layers into stages: set partitions whose stage graph is acyclic, or all lines of stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

Grouping = Sequence[Sequence[int]]
"""Layers of each stage, stages in a topological order."""


def groupings(layers: int, edges: Sequence[tuple[int, int]], most: int, *, line: bool) -> Iterator[Grouping]:
    """Yield every grouping into at most *most* stages once; with *line* every order in which stages can be lined up.

    Notes
    -----
    Set partitions as strings of restricted growth: as many as the Bell number of *layers*.
    """
    for label in _labels(layers, most):
        count = max(label) + 1
        ends = {(label[u], label[v]) for u, v in edges if label[u] != label[v]}
        first = _topological(count, ends)
        if first is None:
            continue
        groups = [[v for v in range(layers) if label[v] == s] for s in range(count)]
        for order in _lines(count, ends) if line else [first]:
            yield [groups[s] for s in order]


def _labels(layers: int, most: int) -> Iterator[tuple[int, ...]]:
    def grow(label: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(label) == layers:
            yield label
            return
        for s in range(min(used + 1, most)):
            yield from grow((*label, s), max(used, s + 1))

    yield from grow((), 0)


def _topological(count: int, ends: set[tuple[int, int]]) -> list[int] | None:
    order: list[int] = []
    while len(order) < count:
        ready = [s for s in range(count) if s not in order and all(a in order for a, b in ends if b == s)]
        if not ready:
            return None
        order += ready
    return order


def _lines(count: int, ends: set[tuple[int, int]]) -> Iterator[Sequence[int]]:
    for order in permutations(range(count)):
        place = {s: i for i, s in enumerate(order)}
        if all(place[a] < place[b] for a, b in ends):
            yield order
