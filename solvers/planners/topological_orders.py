"""Several topological orders of a model, for planners that cut orders into stages."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeVar, cast

Index = TypeVar("Index", bound=int)
IndexOf = TypeVar("IndexOf", bound=int, covariant=True)
"""Positions of layers in a file and places of layers along a line, as types of their own."""

Next = Literal["newest", "oldest", "first"]
"""Which of the layers that could come next does: the one freed last, the one freed first, or the first in the file."""


class Ordered(Protocol[IndexOf]):
    """Layers, or ops, with edges between them and a topological order; such as a training model, or a line."""

    @property
    def layers(self) -> Sequence[object]:
        """All of them."""

    @property
    def ends(self) -> Sequence[tuple[IndexOf, IndexOf]]:
        """Source and target of each edge."""

    @property
    def order(self) -> Sequence[IndexOf]:
        """Their own topological order, counted as the ends are."""


def topological_orders(model: Ordered[Index]) -> list[Sequence[Index]]:
    """Return different topological orders of the layers, the model's own first.

    Each comes from the sources to the sinks, or, turned around, from the sinks to the sources; with layers and edges in
    the file's order, or against it; and takes next what :data:`Next` says. Taking the newest walks along branches, one
    after the other, as the published program of Piper does; taking the oldest goes through all branches at once.
    O(layers · log layers + edges) each, twelve at most.
    """
    orders = [tuple(model.order)]
    for following in ("newest", "oldest", "first"):
        for reverse_file in (False, True):
            for from_sinks in (False, True):
                orders.append(_walk(model, following, reverse_file=reverse_file, from_sinks=from_sinks))
    return list(dict.fromkeys(orders))


def depth_first(model: Ordered[Index]) -> Sequence[Index]:
    """Return the topological order that, from the sinks on, walks along branches, one after the other."""
    return _walk(model, "newest", reverse_file=False, from_sinks=True)


def random_orders(model: Ordered[Index], count: int) -> Iterator[Sequence[Index]]:
    """Yield topological orders, each free choice drawn evenly; the same ones every time.

    Every other one stays on a branch for longer: nine times out of ten it takes the layer that was freed last.
    O(layers + edges) each.
    """
    after, before = _ends_by_layer(model)
    for seed in range(count):
        pick = random.Random(seed)
        stay = 0.9 if seed % 2 else 0.0
        waiting = list(before)
        free = [v for v, missing in enumerate(waiting) if not missing]
        order: list[int] = []
        while free:
            at = len(free) - 1 if pick.random() < stay else pick.randrange(len(free))
            v = free.pop(at)
            order.append(v)
            for w in after[v]:
                waiting[w] -= 1
                if not waiting[w]:
                    free.append(w)
        yield cast("list[Index]", order)


def _ends_by_layer(model: Ordered[int], *, turned: bool = False) -> tuple[list[list[int]], list[int]]:
    """Return the targets of each layer's edges, and how many lead to it; with *turned*, of all edges turned around."""
    after: list[list[int]] = [[] for _ in model.layers]
    before = [0] * len(model.layers)
    for source, target in model.ends:
        tail, head = (target, source) if turned else (source, target)
        after[tail].append(head)
        before[head] += 1
    return after, before


def _walk(model: Ordered[Index], following: Next, *, reverse_file: bool, from_sinks: bool) -> tuple[Index, ...]:
    after, waiting = _ends_by_layer(model, turned=from_sinks)
    free = [v for v, count in enumerate(waiting) if not count]
    if reverse_file:
        free.reverse()
        for targets in after:
            targets.reverse()
    order = cast("tuple[Index, ...]", tuple(_take(free, after, waiting, following, -1 if reverse_file else 1)))
    return order[::-1] if from_sinks else order


def _take(
    free: Sequence[int], after: Sequence[Sequence[int]], waiting: list[int], following: Next, sign: int
) -> Iterator[int]:
    ready = deque(free)
    heap = sorted(sign * v for v in free)
    while ready if following != "first" else heap:
        if following == "first":
            v = sign * heapq.heappop(heap)
        else:
            v = ready.pop() if following == "newest" else ready.popleft()
        yield v
        for w in after[v]:
            waiting[w] -= 1
            if not waiting[w]:
                ready.append(w)
                heapq.heappush(heap, sign * w)
