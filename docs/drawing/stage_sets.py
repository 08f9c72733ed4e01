"""Sets of ops that can be stages, one by one: for graphs of a few ops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from docs.drawing.example import Example


def followers(example: Example) -> dict[str, set[str]]:
    """Return by op all ops that it leads to."""
    direct: dict[str, set[str]] = {op: set() for op in example.ops}
    for tensor in example.tensors:
        direct[tensor.producer] |= set(tensor.consumers)
    found: dict[str, set[str]] = {}

    def after(op: str) -> set[str]:
        if op not in found:
            found[op] = direct[op].union(*(after(reader) for reader in direct[op]))
        return found[op]

    return {op: after(op) for op in example.ops}


def all_sets(example: Example) -> Iterator[tuple[str, ...]]:
    """Yield all sets of ops but the empty one."""
    for size in range(1, len(example.ops) + 1):
        yield from combinations(example.ops, size)


def convex_sets(example: Example) -> Iterator[tuple[str, ...]]:
    """Yield the sets that hold what lies on paths between their ops, as stages do."""
    after = followers(example)
    for some in all_sets(example):
        outside = set(example.ops) - set(some)
        if not any(any(x in after[u] for u in some) and after[x] & set(some) for x in outside):
            yield some


def downsets(example: Example) -> list[tuple[str, ...]]:
    """Return the sets that hold, with an op, all that lead to it: from the empty one to all ops."""
    after = followers(example)
    found: list[tuple[str, ...]] = [()]
    for some in all_sets(example):
        if not any(set(some) & after[x] for x in set(example.ops) - set(some)):
            found.append(some)
    return found
