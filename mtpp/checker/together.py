"""Ops that must share a stage because groups of ops do."""

from __future__ import annotations

from collections.abc import Iterable

from mtpp.checker.graph import TickGraph


def together_classes(graph: TickGraph, groups: Iterable[Iterable[str]]) -> list[int]:
    """Give each op a number so that ops with the same number must share a stage when each group shares one.

    Overlapping groups merge, and so do all ops on a cycle of the contracted graph: on a path that leaves a group
    and comes back, stages can neither rise nor fall. Names that no op has are passed over.

    Notes
    -----
    Strongly connected components by two depth-first passes (Sharir 1981), with explicit stacks. O(n + pins).
    """
    number = {name: v for v, name in enumerate(graph.op_names)}
    neighbours: list[list[int]] = [[] for _ in graph.op_names]
    backwards: list[list[int]] = [[] for _ in graph.op_names]
    links = [(u, v) for _, u, v in graph.edges()]
    for group in groups:
        members = [number[name] for name in group if name in number]
        # A cycle through the members makes the group strongly connected, which is what contracting it does.
        links.extend(zip(members, members[1:] + members[:1], strict=True))
    for u, v in links:
        neighbours[u].append(v)
        backwards[v].append(u)

    finished: list[int] = []
    seen = [False] * graph.op_count
    for root in range(graph.op_count):
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(neighbours[root]))]
        while stack:
            u, rest = stack[-1]
            unseen = next((v for v in rest if not seen[v]), None)
            if unseen is None:
                finished.append(u)
                stack.pop()
            else:
                seen[unseen] = True
                stack.append((unseen, iter(neighbours[unseen])))

    classes = [-1] * graph.op_count
    for root in reversed(finished):
        if classes[root] >= 0:
            continue
        classes[root] = root
        reached = [root]
        while reached:
            for u in backwards[reached.pop()]:
                if classes[u] < 0:
                    classes[u] = root
                    reached.append(u)
    return classes
